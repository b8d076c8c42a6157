//===- Warpgroup.cpp - Where a warpgroup meets and multiplies -------------===//
//
// A barrier of a warpgroup and beginning a product are meetings of 128 threads;
// fence, commit and wait are meetings of a warp. B is read through the async
// proxy, by the first lane of each warp on behalf of it: once when the product
// begins, since it may be read from then on, and again when the warp waits for
// it (see AsyncCopies.cpp).
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include "lowlp/CPU/ABI.h"

#include <algorithm>
#include <cstring>

using namespace lowlp::cpu;

/// What a warp of 16 rows adds up in a lane, of `n` columns.
static int32_t getAccumulatorsPerLane(int32_t n) { return n / 2; }

/// The n that an arrival's mode holds, and its kind.
static int32_t modeOf(int32_t kind, int32_t n) { return kind | n << 8; }
static int32_t kindOf(int32_t mode) { return mode & 0xff; }
static int32_t columnsOf(int32_t mode) { return mode >> 8; }

static Access accessOf(const MatrixTile &tile, int64_t row, int64_t chunk) {
  return {tile.base, tile.offsetOf(row, chunk), MatrixTile::bytesPerChunk,
          MatrixTile::bytesPerChunk, PlainRead};
}

//===----------------------------------------------------------------------===//
// Who meets
//===----------------------------------------------------------------------===//

/// Whether all four warps of the warpgroup are where `thread` is.
bool Block::isWarpgroupComplete(const LowlpThread &thread) {
  int32_t first = firstWarpOfGroup(thread);
  for (int32_t index = first; index < first + warpsPerGroup; ++index) {
    const Warp &warp = warps[size_t(index)];
    if (warp.atCollective != UINT32_MAX || !warp.uniform ||
        !threads[size_t(index * lanesPerWarp)].arrival.agreesWith(
            thread.arrival))
      return false;
  }
  return true;
}

/// A thread of another warp of the warpgroup that waits at one place while
/// `thread` waits at another, neither of which the other can pass; or null.
const LowlpThread *Block::findStrayWarp(const LowlpThread &thread) {
  bool meetsWarps = isOfWarpgroup(thread.arrival.kind);
  if (!meetsWarps && thread.arrival.kind != MeetingKind::Barrier)
    return nullptr;
  int32_t first = firstWarpOfGroup(thread);
  int32_t end = std::min(first + warpsPerGroup, int32_t(warps.size()));
  for (int32_t index = first; index < end; ++index) {
    const Warp &warp = warps[size_t(index)];
    if (index == thread.warpIndex())
      continue;
    const LowlpThread *lanes = &threads[size_t(index * lanesPerWarp)];
    if (meetsWarps && warp.atBarrier)
      return lanes + __builtin_ctz(warp.atBarrier);
    if (!warp.atCollective)
      continue;
    const LowlpThread &other = lanes[__builtin_ctz(warp.atCollective)];
    if (isOfWarpgroup(other.arrival.kind) &&
        !other.arrival.agreesWith(thread.arrival))
      return &other;
  }
  return nullptr;
}

/// A thread of the warpgroup that has exited, or null.
const LowlpThread *Block::findExitedInGroup(const LowlpThread &waiting) {
  int32_t first = firstWarpOfGroup(waiting);
  for (int32_t index = first; index < first + warpsPerGroup; ++index)
    if (uint32_t exited = warps[size_t(index)].exited)
      return &threads[size_t(index * lanesPerWarp + __builtin_ctz(exited))];
  return nullptr;
}

/// A thread that waits for the warpgroup of `exited`, or null.
const LowlpThread *Block::findGroupWithout(const LowlpThread &exited) {
  int32_t first = firstWarpOfGroup(exited);
  int32_t end = std::min(first + warpsPerGroup, int32_t(warps.size()));
  for (int32_t index = first; index < end; ++index) {
    uint32_t waiting = warps[size_t(index)].atCollective;
    if (!waiting)
      continue;
    const LowlpThread &other =
        threads[size_t(index * lanesPerWarp + __builtin_ctz(waiting))];
    if (isOfWarpgroup(other.arrival.kind))
      return &other;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Checks that B may be read, from now on. Returns false on an error.
bool Block::checkTile(LowlpThread &reader, const MatrixTile &tile, int32_t n,
                      const char *site) {
  for (int64_t row = 0; row < n; ++row)
    for (int64_t chunk = 0; chunk < MatrixTile::chunksPerRow; ++chunk) {
      Access access = accessOf(tile, row, chunk);
      const Place *place = memory.find(access, site);
      if (!place || !memory.isShared(*place)) {
        setError(reader, site,
                 place ? "the operand in memory lies in shared memory, but "
                         "this one in " +
                             memory.nameOf(*place)
                       : memory.explain(access));
        return false;
      }
      if (somethingPends() && !isFree(reader, access, *place, site))
        return false;
      if (!rememberAsync(reader, access, *place, site, Agent::Product))
        return false;
    }
  return true;
}

/// The accumulators that a warp's product adds to; null, with an error, if its
/// lanes do not agree, or have passed them on before.
WarpAccumulators *Block::findAccumulators(const LowlpThread &first,
                                          WarpProducts &products, int32_t n,
                                          size_t &index) {
  const WgmmaOperands &operands = *first.arrival.wgmma;
  for (int lane = 0; lane < lanesPerWarp; ++lane) {
    const LowlpThread &thread = neighbour(first, lane);
    if (thread.arrival.wgmma->accumulators != operands.accumulators) {
      setError(thread, thread.arrival.site,
               "the lanes of a warp pass accumulators of different products");
      return nullptr;
    }
  }
  if (operands.accumulators) {
    WarpAccumulators *accumulators = products.find(operands.accumulators);
    if (!accumulators || accumulators->taken) {
      setError(
          first, first.arrival.site,
          "the accumulators were used before: those in flight have one use");
      return nullptr;
    }
    index = WarpProducts::indexOf(operands.accumulators);
    ++accumulators->version;
    return accumulators;
  }
  index = products.make(getAccumulatorsPerLane(n));
  WarpAccumulators &accumulators = products.get(index);
  size_t bytes = size_t(accumulators.numPerLane) * sizeof(uint32_t);
  for (int lane = 0; lane < lanesPerWarp; ++lane) {
    const void *c = neighbour(first, lane).arrival.wgmma->c;
    if (c)
      std::memcpy(accumulators.words[lane], c, bytes);
    else
      std::memset(accumulators.words[lane], 0, bytes);
  }
  return &accumulators;
}

/// Begins a warp's part. Returns false on an error.
bool Block::beginPart(LowlpThread &first) {
  const char *site = first.arrival.site;
  WarpProducts &products = warpProducts[size_t(first.warpIndex())];
  if (!products.isFenced) {
    setError(first, site,
             "missing fence: no simt.wgmma_fence comes before the products of "
             "this group");
    return false;
  }
  // Values do not change, but the registers of an instruction do when it comes
  // again (PTX ISA, "wgmma.wait_group": the fragments of A may not be accessed
  // before the wait).
  if (products.isPending(site)) {
    setError(first, site,
             "the product that this op began before still reads its registers "
             "of A, which a loop writes again: wait for it before, or unroll "
             "the loop");
    return false;
  }
  PendingProduct product;
  product.kind = kindOf(first.arrival.mode);
  product.n = columnsOf(first.arrival.mode);
  product.site = site;
  product.b = first.arrival.wgmma->b;
  if (config.checks && !checkTile(first, product.b, product.n, site))
    return false;
  WarpAccumulators *accumulators =
      findAccumulators(first, products, product.n, product.accumulators);
  if (!accumulators)
    return false;
  for (int lane = 0; lane < lanesPerWarp; ++lane) {
    WgmmaOperands &operands = *neighbour(first, lane).arrival.wgmma;
    std::memcpy(product.a[lane], operands.a, sizeof(product.a[lane]));
    operands.result = WarpProducts::nameOf(product.accumulators, *accumulators);
  }
  products.add(product);
  if (landsLate())
    held.hold(product, first.index);
  counters.mmas += uint64_t(product.n / 8);
  return true;
}

bool Block::beginProduct(const LowlpThread &thread) {
  int32_t warp = firstWarpOfGroup(thread);
  LowlpThread *group = &threads[size_t(warp * lanesPerWarp)];
  for (int i = 0; i < warpsPerGroup * lanesPerWarp; ++i)
    if (!(group[i].arrival.wgmma->b == group[0].arrival.wgmma->b)) {
      setError(group[i], thread.arrival.site,
               "the threads of a warpgroup name different tiles of shared "
               "memory");
      return false;
    }
  for (int i = 0; i < warpsPerGroup; ++i)
    if (!beginPart(group[i * lanesPerWarp]))
      return false;
  return true;
}

/// Carries out what the warp of `thread` has waited for. Returns false on an
/// error.
bool Block::finishProducts(const LowlpThread &thread, int32_t numInFlight) {
  const LowlpThread &reader = neighbour(thread, 0);
  WarpProducts &products = warpProducts[size_t(thread.warpIndex())];
  while (products.isDue(uint64_t(numInFlight))) {
    const PendingProduct &product = products.oldest();
    if (landsLate()) {
      held.free(product);
      for (int64_t row = 0; row < product.n; ++row)
        for (int64_t chunk = 0; chunk < MatrixTile::chunksPerRow; ++chunk) {
          Access access = accessOf(product.b, row, chunk);
          const Place *place = memory.find(access, product.site);
          if (!rememberAsync(reader, access, *place, product.site,
                             Agent::Product))
            return false;
        }
    }
    WarpAccumulators &accumulators = products.get(product.accumulators);
    carryOut(product, accumulators);
    --accumulators.numPending;
    products.removeOldest();
  }
  return true;
}

/// Lets the threads of the warpgroup know what each of them knows.
void Block::joinThreads(const LowlpThread &thread) {
  int32_t first = firstWarpOfGroup(thread) * lanesPerWarp;
  int32_t end = first + warpsPerGroup * lanesPerWarp;
  if (order)
    order->join(first, end);
  Knowledge together;
  for (int32_t index = first; index < end; ++index)
    together.add(threads[size_t(index)].acquired);
  if (!together.isEmpty())
    for (int32_t index = first; index < end; ++index)
      threads[size_t(index)].acquired = together;
}

bool Block::joinWarpgroup(LowlpThread &thread) {
  WarpProducts &products = warpProducts[size_t(thread.warpIndex())];
  switch (thread.arrival.kind) {
  case MeetingKind::WarpgroupBarrier:
    joinThreads(thread);
    return true;
  case MeetingKind::Wgmma:
    return beginProduct(thread);
  case MeetingKind::WgmmaFence:
    products.isFenced = true;
    return true;
  case MeetingKind::WgmmaCommit:
    products.commit();
    return true;
  default:
    return finishProducts(thread, thread.arrival.mode);
  }
}

void Block::takeAccumulators(LowlpThread &thread, int64_t name, void *words,
                             const char *site) {
  WarpProducts &products = warpProducts[size_t(thread.warpIndex())];
  WarpAccumulators *accumulators = products.find(name);
  if (!accumulators || (accumulators->taken & thread.laneBit())) {
    setError(thread, site,
             "the accumulators were used before: those in flight have one use");
    abandon();
  }
  if (accumulators->numPending) {
    setError(
        thread, site,
        std::string("the accumulators are not there yet: the product at ") +
            accumulators->lastSite +
            " is not committed, or among the groups that this wait leaves "
            "in flight");
    abandon();
  }
  std::memcpy(words, accumulators->words[thread.lane()],
              size_t(accumulators->numPerLane) * sizeof(uint32_t));
  products.take(WarpProducts::indexOf(name), thread.laneBit());
}

/// Reports products that `thread` leaves in flight. Returns false then.
bool Block::checkProductsFinished(const LowlpThread &thread) {
  const WarpProducts &products = warpProducts[size_t(thread.warpIndex())];
  if (products.isEmpty())
    return true;
  setError(thread, products.oldest().site,
           "the thread ended before this product was waited for");
  return false;
}

//===----------------------------------------------------------------------===//
// What compiled code calls
//===----------------------------------------------------------------------===//

/// Reports a thread that is in no whole warpgroup.
static void requireWarpgroup(LowlpThread *thread, const char *site) {
  int64_t numThreads = 1;
  for (int64_t extent : thread->block->config.block)
    numThreads *= extent;
  constexpr int64_t perGroup = warpsPerGroup * lanesPerWarp;
  int64_t inLast = numThreads % perGroup;
  if (thread->index < numThreads - inLast)
    return;
  thread->block->setError(
      *thread, site,
      "this takes warpgroups of 128 threads, but the last of the block has " +
          std::to_string(inLast));
  thread->block->abandon();
}

static void meetAs(LowlpThread *thread, MeetingKind kind, int32_t mode,
                   const char *site) {
  requireWarpgroup(thread, site);
  thread->arrival.kind = kind;
  thread->arrival.mode = mode;
  thread->arrival.site = site;
  thread->arrival.members = UINT32_MAX;
  thread->block->meet(*thread);
}

void lowlpCpuWgmmaFence(LowlpThread *thread, const char *site) {
  meetAs(thread, MeetingKind::WgmmaFence, 0, site);
}

int64_t lowlpCpuWgmma(LowlpThread *thread, int32_t kind, int32_t n,
                      const void *a, const void *base, int64_t byteOffset,
                      int64_t swizzleBytes, int64_t leadingBytes,
                      int64_t strideBytes, const void *c, int64_t accumulators,
                      const char *site) {
  if (!isMmaKind(kind) || kind == LowlpMmaM16N8K128B1And)
    rejectOp(*thread, site, "there is no wgmma of kind ", kind);
  if (n < 8 || n > 256 || n % 8)
    rejectOp(*thread, site, "there is no wgmma whose N is ", n);
  WgmmaOperands operands = {
      a,
      c,
      accumulators,
      {base, byteOffset, leadingBytes, strideBytes, swizzleBytes},
      0};
  thread->arrival.wgmma = &operands;
  meetAs(thread, MeetingKind::Wgmma, modeOf(kind, n), site);
  return operands.result;
}

void lowlpCpuWarpgroupBarrier(LowlpThread *thread, const char *site) {
  meetAs(thread, MeetingKind::WarpgroupBarrier, 0, site);
}

void lowlpCpuWgmmaCommit(LowlpThread *thread, const char *site) {
  meetAs(thread, MeetingKind::WgmmaCommit, 0, site);
}

void lowlpCpuWgmmaWait(LowlpThread *thread, int64_t numInFlight,
                       const char *site) {
  meetAs(thread, MeetingKind::WgmmaWait, int32_t(numInFlight), site);
}

void lowlpCpuWgmmaTake(LowlpThread *thread, int64_t accumulators, void *words,
                       const char *site) {
  thread->block->takeAccumulators(*thread, accumulators, words, site);
}
