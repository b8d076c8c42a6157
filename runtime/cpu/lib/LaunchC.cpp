//===- LaunchC.cpp - Launches from C --------------------------------------===//

#include "lowlp/CPU/Executor.h"

#include <algorithm>
#include <cstring>

using namespace lowlp::cpu;

/// A `LaunchConfig` of the same meaning.
static LaunchConfig toCxx(const LowlpLaunchConfig &config) {
  LaunchConfig result;
  result.kernel = config.kernel;
  std::copy(config.grid, config.grid + 3, result.grid);
  std::copy(config.block, config.block + 3, result.block);
  result.sharedBytes = config.sharedBytes;
  result.args = config.args;
  result.stackBytes = config.stackBytes;
  for (int64_t i = 0; i < config.numAllocations; ++i) {
    const LowlpAllocation &allocation = config.allocations[i];
    result.allocations.push_back({allocation.begin, allocation.bytes,
                                  allocation.name, allocation.writable != 0,
                                  allocation.initialised != 0});
  }
  result.seed = config.seed;
  result.workers = config.workers;
  result.checks = config.checks;
  result.countsSites = config.onSite != nullptr;
  result.shouldStop = config.shouldStop;
  result.shouldStopData = config.shouldStopData;
  return result;
}

void lowlp::cpu::passSites(const LaunchReport &report, LowlpSiteCallback onSite,
                           void *userData) {
  if (!onSite)
    return;
  for (const SiteTraffic &traffic : report.sites) {
    LowlpSiteTraffic plain = {traffic.site.c_str(), traffic.accesses,
                              traffic.bytes,        traffic.requests,
                              traffic.sectors,      traffic.extraPasses};
    onSite(&plain, userData);
  }
}

int32_t lowlpCpuLaunch(const LowlpLaunchConfig *config,
                       LowlpLaunchCounters *counters, char *error,
                       int64_t errorCapacity) {
  LaunchReport report = launch(toCxx(*config));
  if (counters)
    *counters = {report.loads,       report.stores,  report.bytesLoaded,
                 report.bytesStored, report.mmas,    report.barriers,
                 report.shuffles,    report.atomics, report.blocks};
  passSites(report, config->onSite, config->onSiteData);
  if (errorCapacity > 0) {
    size_t length = std::min(report.error.size(), size_t(errorCapacity - 1));
    std::memcpy(error, report.error.data(), length);
    error[length] = '\0';
  }
  return report.ok;
}
