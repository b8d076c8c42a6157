//===- SourcePlace.h - where in the user's program an op is ----*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_SOURCEPLACE_H
#define LOWLP_LIB_TRANSFORMS_SOURCEPLACE_H

#include "mlir/IR/Operation.h"

namespace lowlp {

/// Such as `conversion at softmax.py:12`, where `name` is `conversion`; `name`
/// alone for a location that has no place.
std::string describePlace(mlir::Location loc, llvm::StringRef name);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_SOURCEPLACE_H
