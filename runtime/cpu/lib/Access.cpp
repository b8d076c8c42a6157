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

void *lowlpCpuSharedMemory(LowlpThread *thread, int64_t byteOffset) {
  return thread->block->sharedMemory() + byteOffset;
}

void lowlp::cpu::checkAccess(LowlpThread &thread, const Access &access,
                             const char *site, bool usesValue) {
  Block &block = *thread.block;
  if (!block.config.checks)
    return;
  const Place *place = block.memory.find(access, site);
  if (!place) {
    block.setError(thread, site, block.memory.explain(access));
    block.abandon();
  }
  if (access.bytes <= 0)
    return;
  if (place->shadow && !block.remember(thread, access, *place, site, usesValue))
    block.abandon();
  if (block.traffic)
    block.traffic->add(site, thread.index, block.warpOf(thread).lanes,
                       block.memory.isShared(*place), place->offsetOf(access),
                       access.bytes);
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

void lowlpCpuBarrier(LowlpThread *thread, const char *site) {
  thread->arrival.kind = MeetingKind::Barrier;
  thread->arrival.mode = 0;
  thread->arrival.site = site;
  thread->arrival.members = 0;
  thread->block->meet(*thread);
}

void lowlpCpuMma(LowlpThread *thread, int32_t kind, const void *a,
                 const void *b, const void *c, void *d, const char *site) {
  if (kind != LowlpMmaM16N8K16F16 && kind != LowlpMmaM16N8K16BF16)
    rejectOp(*thread, site, "there is no mma of kind ", kind);
  uint32_t lanes = thread->block->warpOf(*thread).lanes;
  if (lanes != UINT32_MAX)
    rejectOp(*thread, site,
             "mma takes a warp of 32 lanes, but the last warp of the block "
             "has ",
             __builtin_popcount(lanes));
  thread->arrival.kind = MeetingKind::Mma;
  thread->arrival.mode = kind;
  thread->arrival.site = site;
  thread->arrival.members = UINT32_MAX;
  thread->arrival.mma = {a, b, c, d};
  thread->block->meet(*thread);
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
