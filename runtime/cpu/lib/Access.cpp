//===- Access.cpp - What a single thread asks of the executor -------------===//

#include "Block.h"

using namespace lowlp::cpu;

void lowlp::cpu::rejectOp(LowlpThread &thread, const char *site,
                          const char *what, int64_t value) {
  thread.block->setError(thread, site, what + std::to_string(value));
  thread.block->abandon();
}

int64_t lowlpCpuThreadId(LowlpThread *thread, int32_t dim) {
  return thread->position.along[dim];
}

int64_t lowlpCpuBlockId(LowlpThread *thread, int32_t dim) {
  return thread->block->position.along[dim];
}

int64_t lowlpCpuBlockDim(LowlpThread *thread, int32_t dim) {
  return thread->block->config.block[dim];
}

int64_t lowlpCpuGridDim(LowlpThread *thread, int32_t dim) {
  return thread->block->config.grid[dim];
}

void lowlpCpuPoll(LowlpThread *thread) { thread->block->poll(); }

void *lowlpCpuSharedMemory(LowlpThread *thread, int64_t byteOffset) {
  return thread->block->sharedMemory() + byteOffset;
}

const Place &Block::checkAccess(LowlpThread &thread, const Access &access,
                                const char *site, bool usesValue) {
  const Place *place = memory.find(access, site);
  if (!place) {
    setError(thread, site, memory.explain(access));
    abandon();
  }
  if (access.bytes <= 0)
    return *place;
  if (somethingPends())
    checkFree(thread, access, *place, site);
  if (!remember(thread, access, *place, site, usesValue))
    abandon();
  if (traffic)
    traffic->add(site, thread.index, warpOf(thread).lanes,
                 memory.isShared(*place), place->offsetOf(access),
                 access.bytes);
  return *place;
}

void lowlp::cpu::checkAccess(LowlpThread &thread, const Access &access,
                             const char *site, bool usesValue) {
  if (thread.block->config.checks)
    thread.block->checkAccess(thread, access, site, usesValue);
}

void lowlpCpuCheckAccess(LowlpThread *thread, const void *base,
                         int64_t byteOffset, int64_t bytes,
                         int64_t alignmentBytes, int32_t isWrite,
                         const char *site) {
  LaunchCounters &counters = thread->block->counters;
  ++(isWrite ? counters.stores : counters.loads);
  (isWrite ? counters.bytesStored : counters.bytesLoaded) += uint64_t(bytes);
  checkAccess(*thread,
              {base, byteOffset, bytes, alignmentBytes,
               isWrite ? PlainWrite : PlainRead},
              site, /*usesValue=*/!isWrite);
}

void lowlpCpuAssert(LowlpThread *thread, int32_t holds, const char *message,
                    const char *site) {
  Block &block = *thread->block;
  if (holds || !block.config.checks)
    return;
  block.setError(*thread, site, message);
  block.abandon();
}

void lowlpCpuLeaveBarriers(LowlpThread *thread) {
  thread->block->leaveBarriers(*thread);
}

void lowlpCpuBarrier(LowlpThread *thread, const char *site) {
  thread->arrival.kind = MeetingKind::Barrier;
  thread->arrival.mode = 0;
  thread->arrival.site = site;
  thread->arrival.members = 0;
  thread->block->meet(*thread);
}

/// Reports a warp instruction in a warp that lacks lanes.
static void requireFullWarp(LowlpThread *thread, const char *op,
                            const char *site) {
  uint32_t lanes = thread->block->warpOf(*thread).lanes;
  if (lanes == UINT32_MAX)
    return;
  thread->block->setError(*thread, site,
                          std::string(op) +
                              " takes a warp of 32 lanes, but the last warp of "
                              "the block has " +
                              std::to_string(__builtin_popcount(lanes)));
  thread->block->abandon();
}

void lowlpCpuMma(LowlpThread *thread, int32_t kind, const void *a,
                 const void *b, const void *c, void *d, const char *site) {
  if (!isMmaKind(kind))
    rejectOp(*thread, site, "there is no mma of kind ", kind);
  requireFullWarp(thread, "mma", site);
  thread->arrival.kind = MeetingKind::Mma;
  thread->arrival.mode = kind;
  thread->arrival.site = site;
  thread->arrival.members = UINT32_MAX;
  thread->arrival.mma = {a, b, c, d};
  thread->block->meet(*thread);
}

/// Brings a lane's part of an ldmatrix or stmatrix to its meeting.
static void moveMatrices(LowlpThread *thread, bool isStore, int32_t count,
                         bool transposed, const MatrixOperands &operands,
                         const char *site) {
  if (count != 1 && count != 2 && count != 4)
    rejectOp(*thread, site, "matrices move by 1, 2 or 4, not by ", count);
  requireFullWarp(thread, isStore ? "stmatrix" : "ldmatrix", site);
  if (thread->lane() < 8 * count)
    thread->block->announceRow(*thread, operands, count, isStore, site);
  thread->arrival.kind =
      isStore ? MeetingKind::StoreMatrix : MeetingKind::LoadMatrix;
  thread->arrival.mode = MatrixOperands::modeOf(count, transposed);
  thread->arrival.site = site;
  thread->arrival.members = UINT32_MAX;
  thread->arrival.matrix = operands;
  thread->block->meet(*thread);
}

void lowlpCpuLoadMatrix(LowlpThread *thread, const void *base,
                        int64_t byteOffset, int32_t count, int32_t transposed,
                        void *words, const char *site) {
  moveMatrices(thread, /*isStore=*/false, count, transposed != 0,
               {base, byteOffset, words}, site);
}

void lowlpCpuStoreMatrix(LowlpThread *thread, void *base, int64_t byteOffset,
                         int32_t count, int32_t transposed, const void *words,
                         const char *site) {
  moveMatrices(thread, /*isStore=*/true, count, transposed != 0,
               {base, byteOffset, const_cast<void *>(words)}, site);
}

uint32_t lowlpCpuShuffle(LowlpThread *thread, int32_t mode, uint32_t value,
                         uint32_t laneOrDelta, uint32_t clampAndMask,
                         uint32_t memberMask, int32_t *pred, const char *site) {
  if (mode < LowlpShuffleIdx || mode > LowlpShuffleBfly)
    rejectOp(*thread, site, "there is no shuffle of mode ", mode);
  if (!(memberMask & thread->laneBit()))
    rejectOp(*thread, site, "the member mask leaves out its own lane ",
             thread->lane());
  thread->arrival.kind = MeetingKind::Shuffle;
  thread->arrival.mode = mode;
  thread->arrival.site = site;
  thread->arrival.members = memberMask & thread->block->warpOf(*thread).lanes;
  thread->arrival.shuffle = {value, laneOrDelta, clampAndMask, 0, false};
  thread->block->meet(*thread);
  if (pred)
    *pred = thread->arrival.shuffle.inRange;
  return thread->arrival.shuffle.result;
}
