//===- TargetInfo.h - what an architecture has ------------------*- C++ -*-===//
//
// A description of the GPU architectures that lowlp compiles for. Passes,
// verifiers and the cost model ask it; nothing else knows an architecture by
// name. Figures are those of the CUDA C++ Programming Guide, "Compute
// Capabilities", and the minimal architectures those of the PTX ISA.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_TARGET_TARGETINFO_H
#define LOWLP_TARGET_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace lowlp {

/// Instructions that some architectures have and others lack.
enum class MachineOp {
  MmaF16,          ///< mma.sync.m16n8k16, f16 with sums in f32
  MmaBF16,         ///< mma.sync.m16n8k16, bf16 with sums in f32
  MmaF8,           ///< mma.sync.m16n8k32, e4m3 and e5m2
  MmaB1,           ///< mma.sync.m16n8k256, bits, and with popcount
  LoadMatrix,      ///< ldmatrix
  CopyAsync,       ///< cp.async
  CopyBulk,        ///< cp.async.bulk, with mbarriers
  WarpgroupMma,    ///< wgmma.mma_async
  TensorMemoryMma, ///< tcgen05.mma
};

/// How an architecture carries out a machine op.
enum class Support { Native, Absent };

/// What one architecture has.
struct TargetInfo {
  llvm::StringLiteral chip; ///< as PTX names it, such as "sm_90a"
  int computeCapability;    ///< 10 * major + minor, such as 90
  int64_t maxSharedBytesPerBlock;
  int64_t sharedBytesPerMultiprocessor;
  int64_t registersPerMultiprocessor;
  int64_t maxThreadsPerMultiprocessor;

  /// Whether the architecture has `op`.
  Support getSupport(MachineOp op) const;

  /// The description of `chip`, or null if lowlp does not know it.
  static const TargetInfo *lookup(llvm::StringRef chip);

  /// All architectures that lowlp knows, oldest first.
  static llvm::ArrayRef<TargetInfo> getAll();

  /// The message for a `chip` that lowlp does not know.
  static std::string describeUnknown(llvm::StringRef chip);
};

} // namespace lowlp

#endif // LOWLP_TARGET_TARGETINFO_H
