//===- TargetInfo.cpp - what an architecture has --------------------------===//
#include "lowlp/Target/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace lowlp;

// Shared memory of a block is 1 KiB less than that of the multiprocessor: the
// system keeps 1 KiB a block.
static constexpr TargetInfo targets[] = {
    {"sm_80", 80, 163 * 1024, 164 * 1024, 65536, 2048},
    {"sm_86", 86, 99 * 1024, 100 * 1024, 65536, 1536},
    {"sm_89", 89, 99 * 1024, 100 * 1024, 65536, 1536},
    {"sm_90a", 90, 227 * 1024, 228 * 1024, 65536, 2048},
    {"sm_100a", 100, 227 * 1024, 228 * 1024, 65536, 2048},
    {"sm_120a", 120, 99 * 1024, 100 * 1024, 65536, 1536},
};

static bool isNative(const TargetInfo &target, MachineOp op) {
  switch (op) {
  case MachineOp::MmaF16:
  case MachineOp::MmaBF16:
  case MachineOp::MmaB1:
  case MachineOp::LoadMatrix:
  case MachineOp::CopyAsync:
    return target.computeCapability >= 80;
  case MachineOp::MmaF8:
    return target.computeCapability >= 89;
  case MachineOp::CopyBulk:
    return target.computeCapability >= 90;
  case MachineOp::WarpgroupMma:
    return target.chip == "sm_90a";
  case MachineOp::TensorMemoryMma:
    return target.chip == "sm_100a";
  }
  llvm_unreachable("unknown machine op");
}

Support TargetInfo::getSupport(MachineOp op) const {
  return isNative(*this, op) ? Support::Native : Support::Absent;
}

llvm::ArrayRef<TargetInfo> TargetInfo::getAll() { return targets; }

const TargetInfo *TargetInfo::lookup(llvm::StringRef chip) {
  const TargetInfo *found = llvm::find_if(
      targets, [&](const TargetInfo &target) { return target.chip == chip; });
  return found == std::end(targets) ? nullptr : found;
}

std::string TargetInfo::describeUnknown(llvm::StringRef chip) {
  std::string message = "unknown architecture '" + chip.str() + "'; known are ";
  llvm::interleave(
      targets, [&](const TargetInfo &target) { message += target.chip; },
      [&] { message += ", "; });
  return message;
}
