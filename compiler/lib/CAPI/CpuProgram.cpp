//===- CpuProgram.cpp - the CPU target for callers in C -------------------===//
#include "lowlp-c/Lowlp.h"

#include "lowlp/Target/RunCPU.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "llvm/Support/JSON.h"

using namespace lowlp;

static CpuProgram *unwrap(LowlpCpuProgram program) {
  return static_cast<CpuProgram *>(program.ptr);
}

/// Passes `text` to `onError`.
static void report(MlirStringCallback onError, void *userData,
                   llvm::StringRef message) {
  std::string text = llvm::json::fixUTF8(message);
  onError(mlirStringRefCreate(text.data(), text.size()), userData);
}

static cpu::LaunchConfig toConfig(const LowlpLaunchConfig &launch) {
  cpu::LaunchConfig config;
  std::copy(std::begin(launch.grid), std::end(launch.grid), config.grid);
  std::copy(std::begin(launch.block), std::end(launch.block), config.block);
  config.sharedBytes = launch.sharedBytes;
  config.args = launch.args;
  for (int64_t i = 0; i < launch.numAllocations; ++i) {
    const LowlpAllocation &from = launch.allocations[i];
    config.allocations.push_back({from.begin, from.bytes, from.name,
                                  from.writable != 0, from.initialised != 0});
  }
  config.seed = launch.seed;
  config.workers = launch.workers;
  config.checks = launch.checks;
  config.countsSites = launch.onSite != nullptr;
  config.shouldStop = launch.shouldStop;
  config.shouldStopData = launch.shouldStopData;
  return config;
}

LowlpCpuProgram lowlpCpuProgramCreate(MlirOperation module, int32_t optLevel,
                                      MlirStringCallback onError,
                                      void *userData) {
  llvm::Expected<std::unique_ptr<CpuProgram>> program =
      CpuProgram::create(unwrap(module), static_cast<unsigned>(optLevel));
  if (program)
    return {program->release()};
  report(onError, userData, llvm::toString(program.takeError()));
  return {nullptr};
}

void lowlpCpuProgramDestroy(LowlpCpuProgram program) { delete unwrap(program); }

bool lowlpCpuProgramRun(LowlpCpuProgram program, MlirStringRef kernel,
                        const LowlpLaunchConfig *launch,
                        LowlpLaunchCounters *counters,
                        MlirStringCallback onError, void *userData) {
  llvm::Expected<cpu::LaunchReport> result =
      unwrap(program)->run(unwrap(kernel), toConfig(*launch));
  if (!result) {
    report(onError, userData, llvm::toString(result.takeError()));
    return false;
  }
  if (counters)
    *counters = {result->loads,       result->stores,  result->bytesLoaded,
                 result->bytesStored, result->mmas,    result->barriers,
                 result->shuffles,    result->atomics, result->blocks};
  cpu::passSites(*result, launch->onSite, launch->onSiteData);
  if (!result->ok)
    report(onError, userData, result->error);
  return result->ok;
}
