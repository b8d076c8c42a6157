//===- TargetInfo.h - the architectures -------------------------*- C++ -*-===//
//
// The GPU architectures that lowlp compiles for. All of them have what kernels
// use today: mma.sync on f16 and bf16, which sm_80 brought (PTX ISA). Nothing
// else knows an architecture by name.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_TARGET_TARGETINFO_H
#define LOWLP_TARGET_TARGETINFO_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace lowlp {

/// One architecture.
struct TargetInfo {
  llvm::StringLiteral chip; ///< as PTX names it, such as "sm_90a"

  /// The description of `chip`, or null if lowlp does not know it.
  static const TargetInfo *lookup(llvm::StringRef chip);

  /// The message for a `chip` that lowlp does not know.
  static std::string describeUnknown(llvm::StringRef chip);
};

} // namespace lowlp

#endif // LOWLP_TARGET_TARGETINFO_H
