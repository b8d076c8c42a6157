//===- TargetInfo.cpp - what an architecture has --------------------------===//
#include "lowlp/Target/TargetInfo.h"

#include "lowlp/Analysis/SourceOp.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLExtras.h"

using namespace lowlp;

static constexpr TargetInfo targets[] = {
#define LOWLP_TARGET(...) TargetInfo{__VA_ARGS__},
#include "lowlp/Target/Targets.def"
};

namespace {

/// One row of the table.
struct FeatureInfo {
  llvm::StringLiteral instruction;
  int ptxVersion;
  Support support[std::size(targets)];
};

} // namespace

static constexpr FeatureInfo features[] = {
#define LOWLP_FEATURE(enumerator, instruction, ptxVersion, ...)                \
  FeatureInfo{instruction, ptxVersion, {__VA_ARGS__}},
#include "lowlp/Target/Targets.def"
};

static constexpr Feature enumerators[] = {
#define LOWLP_FEATURE(enumerator, ...) Feature::enumerator,
#include "lowlp/Target/Targets.def"
};

static const FeatureInfo &getInfo(Feature feature) {
  return features[static_cast<size_t>(feature)];
}

llvm::ArrayRef<TargetInfo> TargetInfo::getAll() { return targets; }

const TargetInfo *TargetInfo::lookup(llvm::StringRef chip) {
  const TargetInfo *found = llvm::find_if(
      targets, [&](const TargetInfo &target) { return target.chip == chip; });
  return found == std::end(targets) ? nullptr : found;
}

const TargetInfo *TargetInfo::lookupFor(mlir::Operation *root,
                                        llvm::StringRef arch) {
  const TargetInfo *info = lookup(arch);
  if (info)
    return info;
  bool isProgram = !root->getParentOp();
  (isProgram ? emitErrorAtProgram(root) : mlir::emitError(root->getLoc()))
      << describeUnknown(arch);
  return nullptr;
}

std::string TargetInfo::describeUnknown(llvm::StringRef chip) {
  std::string message = "unknown architecture '" + chip.str() + "'; known are ";
  llvm::interleave(
      targets, [&](const TargetInfo &target) { message += target.chip; },
      [&] { message += ", "; });
  return message;
}

Support TargetInfo::getSupport(Feature feature) const {
  assert(this >= std::begin(targets) && this < std::end(targets) &&
         "an architecture is one of the table");
  return getInfo(feature).support[this - targets];
}

int TargetInfo::getPTXVersion() const {
  int version = firstPTXVersion;
  for (Feature feature : enumerators)
    if (!getSupport(feature).isAbsent())
      version = std::max(version, lowlp::getPTXVersion(feature));
  return version;
}

llvm::LogicalResult TargetInfo::require(mlir::Operation *op,
                                        Feature feature) const {
  if (!getSupport(feature).isAbsent())
    return llvm::success();
  mlir::InFlightDiagnostic error =
      mlir::emitError(op->getLoc())
      << "'" << getSourceOpName(op) << "' op needs " << getInstruction(feature)
      << ", which " << chip << " does not have; it is on ";
  llvm::interleave(
      llvm::make_filter_range(targets,
                              [&](const TargetInfo &target) {
                                return !target.getSupport(feature).isAbsent();
                              }),
      [&](const TargetInfo &target) { error << target.chip; },
      [&] { error << ", "; });
  return error;
}

llvm::ArrayRef<Feature> lowlp::getAllFeatures() { return enumerators; }

llvm::StringRef lowlp::getInstruction(Feature feature) {
  return getInfo(feature).instruction;
}

int lowlp::getPTXVersion(Feature feature) {
  return getInfo(feature).ptxVersion;
}
