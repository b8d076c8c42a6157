//===- TargetInfo.h - what an architecture has ------------------*- C++ -*-===//
//
// The GPU architectures that lowlp compiles for, and what each has. All facts
// are in Targets.def; nothing else knows an architecture by name. A lowering
// that needs an instruction asks for it:
//
//   if (failed(target.require(op, Feature::StoreMatrix)))
//     return failure();
//
// and one that can do without it chooses:
//
//   if (target.getSupport(Feature::StoreMatrix).isNative()) ...
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_TARGET_TARGETINFO_H
#define LOWLP_TARGET_TARGETINFO_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace mlir {
class Operation;
} // namespace mlir

namespace lowlp {

/// Instructions that some architectures have and others lack or emulate.
enum class Feature {
#define LOWLP_FEATURE(enumerator, ...) enumerator,
#include "lowlp/Target/Targets.def"
};

/// How an architecture carries out an instruction.
class Support {
public:
  static constexpr Support absent() { return Support(0); }
  static constexpr Support native() { return Support(1); }
  /// By `numInstructions` machine instructions, at least 2.
  static constexpr Support emulated(int numInstructions) {
    return Support(numInstructions);
  }

  constexpr bool isAbsent() const { return numInstructions == 0; }
  constexpr bool isNative() const { return numInstructions == 1; }
  constexpr bool isEmulated() const { return numInstructions > 1; }

  /// How many machine instructions stand for one; 0 where it is absent.
  constexpr int getNumInstructions() const { return numInstructions; }

private:
  constexpr explicit Support(int numInstructions)
      : numInstructions(numInstructions) {}
  int numInstructions;
};

/// One architecture. What the compiler cannot know, such as the number of SMs
/// and their clock, is a property of the device and not here.
struct TargetInfo {
  llvm::StringLiteral chip; ///< as PTX names it, such as "sm_90a"
  /// The first version of PTX that has the chip, times ten.
  int firstPTXVersion;
  /// The most shared memory that one block may have.
  int64_t maxSharedBytesPerBlock;
  int64_t sharedBytesPerSM;
  int maxWarpsPerSM;
  int maxBlocksPerSM;
  /// Results of an f32 multiply-add per clock of one SM.
  int f32LanesPerSM;
  /// The same of LOP3, PRMT and shifts.
  int bitLanesPerSM;
  /// The same of multiply-adds of f16x2 and bf16x2, pairs of results.
  int halfPairLanesPerSM;
  /// The same of conversions of two f32 to f16x2.
  int conversionLanesPerSM;

  // The same for all (CUDA Programming Guide, "Compute Capabilities", table
  // 31).
  static constexpr int kRegistersPerSM = 64 * 1024;
  static constexpr int kMaxRegistersPerThread = 255;
  static constexpr int kSharedMemoryBanks = 32;

  /// All architectures, from the oldest.
  static llvm::ArrayRef<TargetInfo> getAll();

  /// The description of `chip`, or null if lowlp does not know it.
  static const TargetInfo *lookup(llvm::StringRef chip);

  /// The same for the option `arch` of a pass: where lowlp does not know it, an
  /// error at `root`, what the pass runs on.
  static const TargetInfo *lookupFor(mlir::Operation *root,
                                     llvm::StringRef arch);

  /// The message for a `chip` that lowlp does not know.
  static std::string describeUnknown(llvm::StringRef chip);

  /// How the architecture carries out `feature`.
  Support getSupport(Feature feature) const;

  /// The version of PTX, times ten, that has the chip and all that it can do.
  int getPTXVersion() const;

  /// Succeeds if the architecture has `feature`, be it emulated. Otherwise
  /// reports at `op` that it needs it and which architectures have it.
  llvm::LogicalResult require(mlir::Operation *op, Feature feature) const;
};

/// All features, in the order of Targets.def.
llvm::ArrayRef<Feature> getAllFeatures();

/// The instruction of `feature` as PTX names it, such as "cp.async".
llvm::StringRef getInstruction(Feature feature);

/// The first version of PTX that has the instruction, times ten.
int getPTXVersion(Feature feature);

} // namespace lowlp

#endif // LOWLP_TARGET_TARGETINFO_H
