//===- DecodedType.h - element types of decoded weights ---------*- C++ -*-===//
#ifndef LOWLP_IR_DECODEDTYPE_H
#define LOWLP_IR_DECODEDTYPE_H

#include "lowlp/Decode/FragmentFamily.h"

#include "mlir/IR/Types.h"

namespace lowlp {

/// Whether operands of type `element` are what decoding for a compute type may
/// make: bytes are integers with or without a sign.
bool isDecodedType(mlir::Type element, ComputeType compute);

} // namespace lowlp

#endif // LOWLP_IR_DECODEDTYPE_H
