//===- TargetInfo.cpp - the architectures ---------------------------------===//
#include "lowlp/Target/TargetInfo.h"

#include "llvm/ADT/STLExtras.h"

using namespace lowlp;

static constexpr TargetInfo targets[] = {
    {"sm_80"}, {"sm_86"}, {"sm_89"}, {"sm_90a"}, {"sm_100a"}, {"sm_120a"},
};

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
