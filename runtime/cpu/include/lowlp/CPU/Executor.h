//===- Executor.h - Run a kernel on the CPU and check it --------*- C++ -*-===//
//
// Launching a kernel compiled to host code (see ABI.h). Every GPU thread is a
// fiber; the threads of a block take turns on one host thread, blocks run in
// parallel on several. A seed shuffles both orders, that of blocks within
// windows of increasing index, so that a block may wait for blocks of lower
// index
// (`lowlpCpuAwait`). For a given seed the report is the same however many host
// threads there are, as long as the blocks of the kernel do not communicate.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_EXECUTOR_H
#define LOWLP_CPU_EXECUTOR_H

#include "lowlp/CPU/ABI.h"

/// What a launch looks for, as bits. Every check includes bounds.
enum LowlpCheck {
  LowlpCheckNothing = 0,
  /// Bounds, alignment and permission of accesses, and assertions.
  LowlpCheckBounds = 1,
  /// Two threads that touch the same byte, one of them by a plain write or only
  /// one of them by an atomic, with nothing that orders the two: no barrier
  /// between them within a block, no release and acquire between blocks. Found
  /// because of the missing order and not of a wrong result, in every run that
  /// has a race (but see Shadow.h for what many blocks do to the same bytes);
  /// writing the value that is there already counts too. Relaxed atomics order
  /// nothing, and neither does a collective of a warp.
  LowlpCheckRaces = 2,
  /// Reads of shared memory that the block has not written, and of allocations
  /// that are not `initialised`. An atomic reads what it adds to, compares or
  /// returns in exchange; `and` and `or` count as writes alone, as they are how
  /// fields narrower than a byte are stored.
  LowlpCheckUninitialised = 4,
  LowlpCheckAll = 7,
};

/// What one op did to memory. A request is one access of all lanes of a warp
/// that take part; it touches `sectors` of 32 bytes of global memory, or takes
/// `extraPasses` beyond the least that shared memory without bank conflicts
/// would take. Arguments count as aligned to a sector. Ops of the same name and
/// place are one.
typedef struct LowlpSiteTraffic {
  const char *site;
  uint64_t accesses;
  uint64_t bytes;
  uint64_t requests;
  uint64_t sectors;
  uint64_t extraPasses;
} LowlpSiteTraffic;

/// Whether the launch is to be stopped; asked again and again by the thread
/// that launches, on its own stack.
typedef int32_t (*LowlpStopCallback)(void *userData);

/// Receives the counts of one op, which are valid during the call.
typedef void (*LowlpSiteCallback)(const LowlpSiteTraffic *traffic,
                                  void *userData);

#ifdef __cplusplus
#include <string>
#include <vector>

namespace lowlp {
namespace cpu {

/// Global memory that a kernel may touch. Allocations may overlap or coincide:
/// an access is allowed if any allocation that its base points into allows it.
struct Allocation {
  const void *begin = nullptr;
  int64_t bytes = 0;
  const char *name = ""; ///< as reports call it, usually the argument's name
  bool writable = false;
  /// Holds values before the launch. Of allocations that overlap, one that does
  /// speaks for all.
  bool initialised = true;
};

/// One launch. Everything pointed to must stay alive until `launch` returns.
struct LaunchConfig {
  LowlpKernelFn kernel = nullptr;
  int64_t grid[3] = {1, 1, 1};
  int64_t block[3] = {1, 1, 1}; ///< at most 1024 threads in all
  int64_t sharedBytes = 0;
  void *const *args = nullptr; ///< handed to every thread as it is
  int64_t stackBytes = 0;      ///< that the kernel's frames take; 0: few
  std::vector<Allocation> allocations;
  uint64_t seed = 0;
  int workers = 0; ///< host threads; 0: as many as the machine has
  uint32_t checks = LowlpCheckAll; ///< bits of `LowlpCheck`
  bool countsSites = false; ///< also count by op; needs `LowlpCheckBounds`
  /// Null: the launch ends when the kernel does. Else the launching thread runs
  /// no blocks but asks it about every 50 ms, and stops the launch, with an
  /// error, where it gives anything but 0. The kernel has to poll (ABI.h).
  LowlpStopCallback shouldStop = nullptr;
  void *shouldStopData = nullptr;
};

/// What the executed threads did. Loads and stores are the accesses announced
/// by `lowlpCpuCheckAccess`, one per thread; atomics count per thread too; mmas
/// and shuffles count once per warp (per set of members), a wgmma as one mma
/// for each 8 columns and warp, barriers once per block.
struct LaunchCounters {
  uint64_t loads = 0;
  uint64_t stores = 0;
  uint64_t bytesLoaded = 0;
  uint64_t bytesStored = 0;
  uint64_t mmas = 0;
  uint64_t barriers = 0;
  uint64_t shuffles = 0;
  uint64_t atomics = 0;
  uint64_t blocks = 0; ///< blocks that ran to their end
};

/// `LowlpSiteTraffic` that owns its text.
struct SiteTraffic {
  std::string site;
  uint64_t accesses = 0; ///< of single threads
  uint64_t bytes = 0;
  uint64_t requests = 0;
  uint64_t sectors = 0;
  uint64_t extraPasses = 0;

  SiteTraffic &operator+=(const SiteTraffic &other) {
    accesses += other.accesses;
    bytes += other.bytes;
    requests += other.requests;
    sectors += other.sectors;
    extraPasses += other.extraPasses;
    return *this;
  }
};

/// The outcome of a launch. If not `ok`, `error` is the first error in the
/// seed's order of blocks (a race between blocks is the error of the one that
/// comes second, which several workers leave to chance), memory holds what was
/// written until then, and the counters cover what had run.
struct LaunchReport : LaunchCounters {
  bool ok = false;
  std::string error;
  std::vector<SiteTraffic> sites; ///< by name; empty unless `countsSites`
};

/// Runs the kernel on the whole grid and waits for it. Never throws for what
/// the kernel does: errors of the program and of `config` come in the report.
/// May be called from several host threads at once.
LOWLP_CPU_EXPORT LaunchReport launch(const LaunchConfig &config);

/// Calls `onSite`, unless it is null, for each of the report's sites.
LOWLP_CPU_EXPORT void passSites(const LaunchReport &report,
                                LowlpSiteCallback onSite, void *userData);

} // namespace cpu
} // namespace lowlp

extern "C" {
#endif // __cplusplus

/// `Allocation`, `LaunchConfig` and `LaunchCounters` as plain C.
typedef struct LowlpAllocation {
  const void *begin;
  int64_t bytes;
  const char *name;
  int32_t writable;
  int32_t initialised;
} LowlpAllocation;

typedef struct LowlpLaunchConfig {
  LowlpKernelFn kernel;
  int64_t grid[3];
  int64_t block[3];
  int64_t sharedBytes;
  void *const *args;
  int64_t stackBytes;
  const LowlpAllocation *allocations;
  int64_t numAllocations;
  uint64_t seed;
  int32_t workers;
  uint32_t checks;
  LowlpSiteCallback onSite; ///< called for each op; null: none is counted
  void *onSiteData;
  LowlpStopCallback shouldStop; ///< null: nothing stops the launch
  void *shouldStopData;
} LowlpLaunchConfig;

typedef struct LowlpLaunchCounters {
  uint64_t loads;
  uint64_t stores;
  uint64_t bytesLoaded;
  uint64_t bytesStored;
  uint64_t mmas;
  uint64_t barriers;
  uint64_t shuffles;
  uint64_t atomics;
  uint64_t blocks;
} LowlpLaunchCounters;

/// `lowlp::cpu::launch` for callers without C++. Returns 1 if the launch was
/// ok, else 0 with the error at `error`, NUL-terminated and cut to
/// `errorCapacity` bytes. `counters` may be null; `error` may be if
/// `errorCapacity` is 0.
LOWLP_CPU_EXPORT int32_t lowlpCpuLaunch(const LowlpLaunchConfig *config,
                                        LowlpLaunchCounters *counters,
                                        char *error, int64_t errorCapacity);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // LOWLP_CPU_EXECUTOR_H
