//===- Block.cpp - The scheduler of a block's threads ---------------------===//

#include "Block.h"

#include <cstring>

using namespace lowlp::cpu;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

namespace {

// Swizzled shared layouts repeat every 1024 bytes, and rely on the address.
constexpr size_t sharedAlignmentBytes = 1024;

char *allocateShared(int64_t bytes) {
  size_t units = (size_t(bytes) + sharedAlignmentBytes) / sharedAlignmentBytes;
  return static_cast<char *>(
      std::aligned_alloc(sharedAlignmentBytes, units * sharedAlignmentBytes));
}

} // namespace

Coordinates lowlp::cpu::delinearize(int64_t index, const int64_t extents[3]) {
  return {{index % extents[0], index / extents[0] % extents[1],
           index / extents[0] / extents[1]}};
}

std::string lowlp::cpu::toString(const Coordinates &coordinates) {
  return "(" + std::to_string(coordinates.along[0]) + ", " +
         std::to_string(coordinates.along[1]) + ", " +
         std::to_string(coordinates.along[2]) + ")";
}

/// The shadow of a block's shared memory, or null if no check needs one.
static std::unique_ptr<Shadow> makeSharedShadow(const LaunchConfig &config) {
  Shadow::Options options;
  options.findsRaces = config.checks & LowlpCheckRaces;
  options.findsUninitialised = config.checks & LowlpCheckUninitialised;
  options.isInitialised = false;
  options.isOwnedByBlock = true;
  if (!config.sharedBytes ||
      !(options.findsRaces || options.findsUninitialised))
    return nullptr;
  return std::make_unique<Shadow>(config.sharedBytes, options);
}

Block::Block(LaunchState &launch, StackPool &stacks)
    : config(launch.config), position(), memory(launch.memory),
      traffic(launch.config.countsSites ? std::make_unique<Traffic>()
                                        : nullptr),
      launch(launch), stacks(stacks), siteNumbers(launch.sites),
      shared(allocateShared(config.sharedBytes)),
      sharedShadow(makeSharedShadow(config)) {
  int64_t numThreads = config.block[0] * config.block[1] * config.block[2];
  if (shared)
    memory.setShared(shared.get(), config.sharedBytes, sharedShadow.get());
  threads.resize(size_t(numThreads));
  warps.resize(size_t((numThreads + lanesPerWarp - 1) / lanesPerWarp));
  warpProducts.resize(warps.size());
  ready.reserve(size_t(numThreads));
  for (int64_t index = 0; index < numThreads; ++index) {
    LowlpThread &thread = threads[size_t(index)];
    thread.block = this;
    thread.stackTop = nullptr;
    thread.index = int32_t(index);
    thread.position = delinearize(index, config.block);
  }
}

void Block::begin(int64_t blockIndex, int64_t newPosition) {
  launchPosition = newPosition;
  position = delinearize(blockIndex, config.grid);
  // Seeded by the block, not by the worker: which worker runs a block is not
  // reproducible.
  random = Random(mixBits(config.seed) + uint64_t(blockIndex));
  numAtBarrier = numLeft = numExited = 0;
  // Grids beyond 2^32 blocks do not run to their end in a lifetime.
  number = uint32_t(blockIndex) + 1;
  epoch = time = epochTime = 0;
  failed = false;
  unwritten.reset();
  ready.clear();
  pending.reset(shared.get(), config.sharedBytes);
  held.reset(shared.get(), config.sharedBytes);
  for (WarpProducts &products : warpProducts)
    products.reset();
  mbarriers.clear();
  if (order)
    startOrder();
  awaiting.clear();
  known.clear();
  for (Warp &warp : warps)
    warp = {0, 0, 0, 0, true};
  for (LowlpThread &thread : threads) {
    warpOf(thread).lanes |= thread.laneBit();
    thread.hasLeft = false;
    thread.copies.reset();
    thread.bulkCopies.reset();
    thread.acquired.clear();
    makeReady(thread);
  }
  if (config.checks && shared)
    std::memset(shared.get(), 0xff, size_t(config.sharedBytes));
}

BlockState Block::advance() {
  if (!shared || (sharedShadow && !sharedShadow->isValid())) {
    error = "launch: no memory for " + std::to_string(config.sharedBytes) +
            " bytes of shared memory";
    return BlockState::Failed;
  }
  wakeArrived();
  while (!failed && (!ready.empty() || landAwaitedCopy())) {
    if (ready.empty())
      continue;
    uint32_t pick = random.below(uint32_t(ready.size()));
    LowlpThread &thread = threads[size_t(ready[pick])];
    ready[pick] = ready.back();
    ready.pop_back();
    resume(thread);
    wakeArrived();
  }
  if (!failed && unwritten)
    giveUpOnWriter();
  if (!failed && !awaiting.empty())
    return BlockState::Parked;
  if (!failed && size_t(numExited) != threads.size())
    setDeadlockError();
  if (!failed)
    checkAllLanded();
  drop();
  if (traffic)
    traffic->endBlock();
  if (failed)
    return BlockState::Failed;
  ++counters.blocks;
  return BlockState::Finished;
}

void Block::drop() {
  for (LowlpThread &thread : threads) {
    if (!thread.stackTop)
      continue;
    stacks.give(thread.stackTop);
    thread.stackTop = nullptr;
  }
}

/// Gives the thread a fiber. Returns false, with an error, if there is no
/// memory for its stack.
bool Block::start(LowlpThread &thread) {
  thread.stackTop = stacks.take();
  if (!thread.stackTop) {
    failed = true;
    error = "launch: no memory for the stack of a GPU thread, " +
            std::to_string(stacks.bytesPerStack) + " bytes";
    return false;
  }
  thread.context =
      make_fcontext(thread.stackTop, stacks.bytesPerStack, runFiber);
  return true;
}

/// Runs the thread until it switches back, on the scheduler's side.
void Block::resume(LowlpThread &thread) {
  if (!thread.stackTop && !start(thread))
    return;
  thread.context = jump_fcontext(thread.context, &thread).fctx;
  if (thread.state != ThreadState::Exited)
    return;
  // An exited thread is not resumed, so the next one may use its stack.
  stacks.give(thread.stackTop);
  thread.stackTop = nullptr;
}

void Block::runFiber(transfer_t transfer) {
  auto &thread = *static_cast<LowlpThread *>(transfer.data);
  Block &block = *thread.block;
  block.scheduler = transfer.fctx;
  block.config.kernel(&thread, block.config.args);
  block.finish(thread);
  block.abandon();
}

/// Switches to the scheduler until the running thread is resumed.
void Block::suspend() { scheduler = jump_fcontext(scheduler, nullptr).fctx; }

void Block::abandon() {
  jump_fcontext(scheduler, nullptr);
  // The scheduler resumes neither exited threads nor those of a failed block.
  std::abort();
}

void Block::abandonOvertaken() {
  // The schedule has an error that comes before this one.
  failed = true;
  error = "overtaken";
  abandon();
}

void Block::makeReady(LowlpThread &thread) {
  thread.state = ThreadState::Ready;
  ready.push_back(thread.index);
}

void Block::yield(LowlpThread &thread) {
  if (ready.empty())
    return;
  makeReady(thread);
  suspend();
}

void Block::trackOrder() {
  if (order || !(config.checks & LowlpCheckRaces))
    return;
  order = std::make_unique<ThreadOrder>();
  startOrder();
}

/// Makes order and history those of a block in which nothing has happened.
void Block::startOrder() {
  order->reset(int32_t(threads.size()));
  history.reset(config.sharedBytes);
}

/// Marks the thread exited; an error if others wait for it, or if one of its
/// copies is wrong.
void Block::finish(LowlpThread &thread) {
  finishCopies(thread);
  if (failed || !checkProductsFinished(thread))
    return;
  thread.state = ThreadState::Exited;
  ++numExited;
  warpOf(thread).exited |= thread.laneBit();
  if (const LowlpThread *waiting = findWaitingFor(thread))
    setExitError(thread, waiting->arrival);
}

void Block::setError(const LowlpThread &thread, const char *site,
                     const std::string &text) {
  if (unwritten) {
    giveUpOnWriter();
    return;
  }
  failed = true;
  error = std::string(site) + ": " + text + "; block " + toString(position) +
          ", thread " + toString(thread.position);
}
