//===- Block.h - One thread block in flight ---------------------*- C++ -*-===//
//
// A block's threads are fibers that take turns on the host thread of a worker:
// a thread runs until it waits, polls, exits or reports. The next one is drawn
// at random from those that can run, so a program that depends on an order
// which no barrier enforces shows it under some seed. The scheduler below it
// all is `run`, on the worker's own stack.
//
// Where threads meet (Meeting.cpp): a barrier waits for every thread of the
// block, a collective for its member lanes. The last one to arrive does the
// work and wakes all. Whether two threads wait for each other at different
// places is looked at on every arrival and exit, so that the report names the
// very ops; longer cycles end as a deadlock.
//
// A thread may also wait for a word of memory to have a value, which another
// block gives it (Semaphore.cpp). When all threads of a block wait and one of
// them for a word, the block is parked: its worker runs others meanwhile.
//
// Fibers are raw fcontexts. boost::context::fiber would unwind a suspended
// fiber on destruction by throwing through its frames, and the frames of
// compiled kernels have no unwind tables. A fiber of a block that failed is
// never resumed instead: its stack goes back to the pool, and nothing on it
// owns anything (ABI.h binds kernels to that; here `setError` returns before
// `abandon` leaves, and no function holds an owning local across a switch).
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_BLOCK_H
#define LOWLP_CPU_LIB_BLOCK_H

#include "AccessHistory.h"
#include "Arrival.h"
#include "Knowledge.h"
#include "Mbarrier.h"
#include "MemoryMap.h"
#include "Order.h"
#include "PendingCopies.h"
#include "Schedule.h"
#include "SiteTable.h"
#include "StackPool.h"
#include "ThreadOrder.h"
#include "Traffic.h"
#include "Wgmma.h"

#include <boost/context/detail/fcontext.hpp>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

namespace lowlp {
namespace cpu {

class Block;

constexpr int lanesPerWarp = 32;
constexpr int warpsPerGroup = 4;

enum class ThreadState : uint8_t {
  Ready,
  AtBarrier,
  AtCollective,
  AtMbarrier,
  AtWord,
  Exited
};

/// The lanes of a warp by what they are doing, as bit masks.
struct Warp {
  uint32_t lanes;        ///< lanes that the block has
  uint32_t atBarrier;    ///< lanes that wait at a barrier
  uint32_t atCollective; ///< lanes that wait in a collective
  uint32_t exited;
  bool uniform; ///< all lanes in `atCollective` agree with each other
};

/// Coordinates along x, y and z.
struct Coordinates {
  int64_t along[3];
};

} // namespace cpu
} // namespace lowlp

/// A GPU thread: where it is, and the fiber it runs on.
struct LowlpThread {
  lowlp::cpu::Block *block;
  boost::context::detail::fcontext_t context;
  void *stackTop; ///< null until it first runs and after it exits
  int32_t index;  ///< linearised index in the block
  lowlp::cpu::ThreadState state;
  lowlp::cpu::Coordinates position;
  lowlp::cpu::Arrival arrival;       ///< valid while it waits
  lowlp::cpu::Knowledge acquired;    ///< since the block's last barrier
  lowlp::cpu::CopyGroups copies;     ///< by cp.async
  lowlp::cpu::CopyGroups bulkCopies; ///< to global memory
  bool hasLeft;                      ///< takes no part in barriers any more

  int32_t warpIndex() const { return index / lowlp::cpu::lanesPerWarp; }
  int32_t lane() const { return index % lowlp::cpu::lanesPerWarp; }
  uint32_t laneBit() const { return uint32_t(1) << lane(); }
};

namespace lowlp {
namespace cpu {

/// What all blocks of a launch share. Outlives them.
struct LaunchState {
  LaunchState(const LaunchConfig &config, Schedule &schedule)
      : config(config), memory(config), schedule(schedule) {}

  const LaunchConfig &config;
  const GlobalMemory memory;
  SiteTable sites;
  PublishedWords published;
  Schedule &schedule;
};

/// A read of shared memory that nothing has written, while other threads run
/// on to show whether one of them writes there without a barrier in between.
struct UnwrittenRead {
  const LowlpThread *reader;
  const char *site;
  std::string text;   ///< what is wrong, without a writer
  int64_t begin, end; ///< byte offsets in shared memory
  int64_t patience;   ///< accesses until the search is given up
};

/// How far a block has come.
enum class BlockState : uint8_t { Finished, Failed, Parked };

/// Runs blocks of one launch one after another, on one host thread.
class Block {
public:
  /// Requires: the configuration is valid; `stacks` outlives the block.
  Block(LaunchState &launch, StackPool &stacks);

  /// Makes this the block of linear index `blockIndex`, at its beginning and at
  /// `launchPosition` of the order of blocks. No other may be in flight in it.
  void begin(int64_t blockIndex, int64_t launchPosition);

  /// Runs the block until it ends, fails (`getError` says why), or can go on
  /// only when a word of memory has changed.
  BlockState advance();

  /// Gives up a block that is parked.
  void drop();

  const std::string &getError() const { return error; }
  int64_t getPosition() const { return launchPosition; }
  int64_t getIndex() const { return int64_t(number) - 1; }

  /// Whether a parked block need not wait any more.
  bool canGoOn() const;

  /// "block (0, 0, 0), thread (0, 0, 0) at S waits for 1 ...", of a parked one.
  std::string describeWaits() const;

  const LaunchConfig &config;
  LaunchCounters counters; ///< summed over the blocks run so far
  Coordinates position;    ///< of the block now running
  MemoryMap memory;
  std::unique_ptr<Traffic> traffic; ///< null unless `countsSites`

  char *sharedMemory() { return shared.get(); }

  /// Waits until other threads had a chance to run.
  void yield(LowlpThread &thread);

  /// Leaves the thread's fiber for good if the launch goes on without the
  /// block: one before it has failed, or the caller has stopped the launch.
  void poll() {
    if (!launch.schedule.matters(launchPosition))
      abandonOvertaken();
  }

  /// Brings `thread.arrival`, which the caller has filled in, to its meeting;
  /// returns when the meeting has taken place.
  void meet(LowlpThread &thread);

  /// The thread takes no part in barriers from here on.
  void leaveBarriers(LowlpThread &thread);

  /// Waits until the word has the value `wanted`; learns what came with it.
  void await(LowlpThread &thread, const uint32_t *word, uint32_t wanted,
             const char *site);

  /// Changes `word` by `op`, a `LowlpAtomicOp`, and publishes through it what
  /// comes before in this thread. Returns the old word.
  uint32_t publish(LowlpThread &thread, int32_t op, uint32_t *word,
                   uint32_t operand);

  /// Lets blocks that wait for a word look at it again.
  void wakeOthers() { launch.schedule.wake(); }

  /// Reports "site: text; block (..), thread (..)", after which `thread` must
  /// call `abandon` as soon as it holds no object that owns anything.
  void setError(const LowlpThread &thread, const char *site,
                const std::string &text);

  /// Adds an access to the history of its bytes, the shadow of `place`. Returns
  /// false, with an error, if it races or uses what was never written.
  bool remember(const LowlpThread &thread, const Access &access,
                const Place &place, const char *site, bool usesValue);

  /// Reports what the launch's checks find wrong with an access; returns where
  /// it goes. `usesValue`: what was there before comes to matter. Requires: the
  /// launch has checks.
  const Place &checkAccess(LowlpThread &thread, const Access &access,
                           const char *site, bool usesValue);

  // Asynchronous copies (AsyncCopies.cpp). Each function that returns a bool
  // gives false where an access that comes with it is wrong; the error is set.

  void copyAsync(LowlpThread &thread, const Access &source,
                 const Access &destination, const char *site);
  /// Lands all but the last `numInFlight` groups of the thread.
  bool landCopies(LowlpThread &thread, int64_t numInFlight);
  /// Reports a number of bytes that no bulk copy moves.
  void checkBulkBytes(const LowlpThread &thread, int64_t bytes,
                      const char *site);
  /// Begins a bulk copy, whose places are still to be found.
  void copyBulk(LowlpThread &thread, const PendingCopy &copy,
                Mbarrier &barrier);
  void copyBulkToGlobal(LowlpThread &thread, const PendingCopy &copy);
  bool landBulkCopies(LowlpThread &thread, int64_t numInFlight, bool onlyRead);

  // Mbarriers (Mbarrier.cpp).

  /// From now on mbarriers and fences of proxies order accesses, where a check
  /// asks for it.
  void trackOrder();
  /// The mbarrier at an address, or a report.
  Mbarrier &findMbarrier(LowlpThread &thread, void *base, int64_t byteOffset,
                         const char *site);
  void initMbarrier(LowlpThread &thread, void *base, int64_t byteOffset,
                    int64_t arrivals, const char *site);
  void fenceMbarrierInit(const LowlpThread &thread);
  void fenceAsync(const LowlpThread &thread);
  void arriveAtMbarrier(LowlpThread &thread, Mbarrier &barrier,
                        int64_t expectedBytes, const char *site);
  void waitForMbarrier(LowlpThread &thread, Mbarrier &barrier, int32_t parity,
                       const char *site);
  /// An atomic by the thread: it may learn by it what others know.
  void sharePhasesByAtomic(const LowlpThread &thread) {
    if (order)
      order->sharePhasesByAtomic(thread.index);
  }
  /// Counts the row of a matrix whose address `thread` gives, and checks that
  /// it may be touched; after an error does not return.
  void announceRow(LowlpThread &thread, const MatrixOperands &row,
                   int32_t count, bool isStore, const char *site);

  /// Gives the thread back its share of accumulators that no product changes
  /// any more, or reports why not (Warpgroup.cpp).
  void takeAccumulators(LowlpThread &thread, int64_t name, void *words,
                        const char *site);

  /// Leaves the thread's fiber for good.
  [[noreturn]] void abandon();

  Warp &warpOf(const LowlpThread &thread) {
    return warps[size_t(thread.warpIndex())];
  }

private:
  void startOrder();
  void wakeArrived();
  void passBarrier();
  bool start(LowlpThread &thread);
  void resume(LowlpThread &thread);
  void suspend();
  void makeReady(LowlpThread &thread);
  void finish(LowlpThread &thread);
  static void runFiber(boost::context::detail::transfer_t transfer);

  bool hold(LowlpThread &thread);
  bool isComplete(const LowlpThread &thread);
  bool takePlace(LowlpThread &thread);
  void release(const LowlpThread &thread);
  void releaseWarp(const LowlpThread &thread);
  void multiply(const LowlpThread &thread);
  bool exchange(const LowlpThread &thread);
  bool moveMatrices(const LowlpThread &thread);
  bool rememberPart(const LowlpThread &thread, const Access &part);

  LowlpThread &neighbour(const LowlpThread &thread, int lane) {
    return threads[size_t(thread.warpIndex() * lanesPerWarp + lane)];
  }
  uint32_t lanesArrivedWith(const LowlpThread &thread);
  uint32_t lanesInConflict(const LowlpThread &thread);
  const LowlpThread *findExited(const LowlpThread &waiting);
  const LowlpThread *findWaitingFor(const LowlpThread &exited);

  // Warpgroups (Warpgroup.cpp).

  static int32_t firstWarpOfGroup(const LowlpThread &thread) {
    return thread.warpIndex() / warpsPerGroup * warpsPerGroup;
  }
  bool isWarpgroupComplete(const LowlpThread &thread);
  const LowlpThread *findStrayWarp(const LowlpThread &thread);
  const LowlpThread *findExitedInGroup(const LowlpThread &waiting);
  const LowlpThread *findGroupWithout(const LowlpThread &exited);
  bool checkTile(LowlpThread &reader, const MatrixTile &tile, int32_t n,
                 const char *site);
  WarpAccumulators *findAccumulators(const LowlpThread &first,
                                     WarpProducts &products, int32_t n,
                                     size_t &index);
  bool beginPart(LowlpThread &first);
  bool beginProduct(const LowlpThread &thread);
  bool finishProducts(const LowlpThread &thread, int32_t numInFlight);
  bool joinWarpgroup(LowlpThread &thread);
  void joinThreads(const LowlpThread &thread);
  bool checkProductsFinished(const LowlpThread &thread);

  bool landsLate() const { return config.checks & LowlpCheckRaces; }
  /// Whether an access may touch what is in flight.
  bool somethingPends() const { return !pending.isEmpty() || !held.isEmpty(); }
  bool isFree(const LowlpThread &thread, const Access &access,
              const Place &place, const char *site);
  void checkFree(const LowlpThread &thread, const Access &access,
                 const Place &place, const char *site) {
    if (!isFree(thread, access, place, site))
      abandon();
  }
  bool rememberAsync(const LowlpThread &thread, const Access &access,
                     const Place &place, const char *site, Agent agent);
  bool issueBulkCopy(LowlpThread &thread, PendingCopy copy,
                     PendingCopies::Number &number);
  bool landCopy(const LowlpThread &thread, PendingCopies::Number number);
  void landBulkCopy(Mbarrier &barrier, PendingCopies::Number number);
  bool readBulkSource(const LowlpThread &thread, PendingCopies::Number number);
  void finishCopies(LowlpThread &thread);

  int64_t checkMbarrierPlace(LowlpThread &thread, void *base,
                             int64_t byteOffset, const char *site);
  bool completePhase(const LowlpThread &thread, Mbarrier &barrier,
                     const char *site);
  void checkParity(const LowlpThread &thread, const Mbarrier &barrier,
                   int32_t parity, const char *site);
  void passOn(LowlpThread &thread, const Mbarrier &barrier);
  bool landAwaitedCopy();
  void checkAllLanded();

  bool compareWithHistory(const LowlpThread &thread, const Access &access,
                          const Place &place, const char *site, Agent agent);
  bool visitShadow(const LowlpThread &thread, const Access &access,
                   const Place &place, const char *site, bool usesValue,
                   bool waitsForWriter);
  void setCollisionError(const LowlpThread &thread, const char *site,
                         const std::string &access, Agent agent,
                         const Collision &collision);
  [[noreturn]] void abandonOvertaken();

  // Reads of what nothing has written (UnwrittenReads.cpp).

  void waitForWriter(const LowlpThread &reader, const char *site,
                     const std::string &text, int64_t begin, int64_t end);
  bool isWriterAwaited(const LowlpThread &thread, const Access &access,
                       const Place &place, const char *site);
  void giveUpOnWriter();

  bool knowsOf(uint32_t block) const;
  void setRaceError(const LowlpThread &thread, const char *site,
                    const std::string &access, const Finding &finding);
  void setDivergenceError(const LowlpThread &thread, uint32_t conflict);
  void setStrayWarpError(const LowlpThread &thread, const LowlpThread &stray);
  void setExitError(const LowlpThread &exited, const Arrival &missed);
  void setDeadlockError();
  std::string listWaiting() const;

  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };

  LaunchState &launch;
  StackPool &stacks;
  SiteNumbers siteNumbers;
  std::unique_ptr<char, Free> shared;
  std::unique_ptr<Shadow> sharedShadow; ///< null if no check needs it
  PendingCopies pending;
  HeldTiles held; ///< by products in flight
  std::vector<WarpProducts> warpProducts;
  std::map<int64_t, Mbarrier> mbarriers; ///< by byte offset in shared memory
  std::unique_ptr<ThreadOrder> order; ///< null unless mbarriers order accesses
  AccessHistory history;              ///< of shared memory; valid with `order`
  std::vector<LowlpThread> threads;
  std::vector<Warp> warps;
  std::vector<int32_t> ready;    ///< threads that can run, in no order
  std::vector<int32_t> awaiting; ///< threads that wait for a word
  Knowledge
      known; ///< what all threads of the block know since its last barrier
  boost::context::detail::fcontext_t scheduler = nullptr;
  Random random{0};
  const char *barrierSite = nullptr; ///< valid while `numAtBarrier` > 0
  int32_t numAtBarrier = 0;
  int32_t numLeft = 0; ///< threads that take no part in barriers
  int32_t numExited = 0;
  uint32_t number = 0;    ///< of the block now running, for shadows; never 0
  uint32_t epoch = 0;     ///< barriers it has passed
  uint32_t time = 0;      ///< barriers it has passed and releases
  uint32_t epochTime = 0; ///< when the epoch began
  int64_t launchPosition = 0;
  std::optional<UnwrittenRead> unwritten;
  bool failed = false;
  std::string error;
};

/// Reports what the launch's checks find wrong with `access`, and then does not
/// return. `usesValue`: what was there before comes to matter.
void checkAccess(LowlpThread &thread, const Access &access, const char *site,
                 bool usesValue);

/// Reports an operand that selects no instruction, or a warp that is too small
/// for it, as `what` and `value`. Such programs are wrong in ways no check may
/// be switched off for.
[[noreturn]] void rejectOp(LowlpThread &thread, const char *site,
                           const char *what, int64_t value);

/// Atomically replaces `word` by what `op` makes of it; returns the old one.
uint32_t changeWord(int32_t op, uint32_t *word, uint32_t operand);

/// Where element `index` lies, x counting first.
Coordinates delinearize(int64_t index, const int64_t extents[3]);

/// "(1, 2, 3)"
std::string toString(const Coordinates &coordinates);

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_BLOCK_H
