//===- Atomics.cpp - Atomics and semaphores ------------------------------===//
//
// A plain atomic is relaxed and orders nothing. A release and an acquire work
// on a word as well, but carry what is known of other blocks' accesses with it
// (Knowledge.h).
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include "lowlp/CPU/HalfFloat.h"

using namespace lowlp::cpu;

/// Whether `op` makes use of what was there before it.
static bool usesValue(int32_t op) {
  return op != LowlpAtomicAnd && op != LowlpAtomicOr;
}

/// The sums of two 16-bit floats each; 24 bits are enough for a float to round
/// the sum of two as if it had been exact.
static uint16_t addF16(uint32_t a, uint32_t b) {
  return floatToF16(f16ToFloat(uint16_t(a)) + f16ToFloat(uint16_t(b)));
}
static uint16_t addBF16(uint32_t a, uint32_t b) {
  return floatToBF16(bf16ToFloat(uint16_t(a)) + bf16ToFloat(uint16_t(b)));
}

/// What `op` makes of a word. Requires: `op` is a `LowlpAtomicOp`.
static uint32_t apply(int32_t op, uint32_t word, uint32_t operand) {
  switch (op) {
  case LowlpAtomicAnd:
    return word & operand;
  case LowlpAtomicOr:
    return word | operand;
  case LowlpAtomicAdd:
    return word + operand;
  case LowlpAtomicXor:
    return word ^ operand;
  case LowlpAtomicMinU:
    return word < operand ? word : operand;
  case LowlpAtomicMaxU:
    return word > operand ? word : operand;
  case LowlpAtomicMinS:
    return int32_t(word) < int32_t(operand) ? word : operand;
  case LowlpAtomicMaxS:
    return int32_t(word) > int32_t(operand) ? word : operand;
  case LowlpAtomicAddF32:
    return floatToBits(bitsToFloat(word) + bitsToFloat(operand));
  case LowlpAtomicAddF16x2:
    return addF16(word, operand) | uint32_t(addF16(word >> 16, operand >> 16))
                                       << 16;
  case LowlpAtomicAddBF16x2:
    return addBF16(word, operand) | uint32_t(addBF16(word >> 16, operand >> 16))
                                        << 16;
  default:
    return operand;
  }
}

// Blocks on other host threads may change the word in between. The order is the
// total one, which `Schedule::wake` needs.
uint32_t lowlp::cpu::changeWord(int32_t op, uint32_t *word, uint32_t operand) {
  uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, apply(op, old, operand),
                                      /*weak=*/true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

/// Counts and checks an atomic access, then lets other threads go first, or
/// not; returns its address.
static void *comeToAtomic(LowlpThread &thread, const void *base,
                          int64_t byteOffset, int64_t bytes, bool usesValue,
                          const char *site) {
  Block &block = *thread.block;
  ++block.counters.atomics;
  checkAccess(thread, {base, byteOffset, bytes, bytes, AtomicUpdate}, site,
              usesValue);
  block.sharePhasesByAtomic(thread);
  block.yield(thread);
  return const_cast<char *>(static_cast<const char *>(base)) + byteOffset;
}

uint32_t lowlpCpuAtomic(LowlpThread *thread, int32_t op, void *base,
                        int64_t byteOffset, uint32_t operand,
                        const char *site) {
  if (op < LowlpAtomicAnd || op > LowlpAtomicAddBF16x2)
    rejectOp(*thread, site, "there is no atomic operation ", op);
  auto *word = static_cast<uint32_t *>(
      comeToAtomic(*thread, base, byteOffset, 4, usesValue(op), site));
  uint32_t old = changeWord(op, word, operand);
  thread->block->wakeOthers();
  return old;
}

uint32_t lowlpCpuAtomicAdd16(LowlpThread *thread, int32_t isBF16, void *base,
                             int64_t byteOffset, uint32_t operand,
                             const char *site) {
  auto *half = static_cast<uint16_t *>(
      comeToAtomic(*thread, base, byteOffset, 2, /*usesValue=*/true, site));
  uint16_t old = __atomic_load_n(half, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(
      half, &old, isBF16 ? addBF16(old, operand) : addF16(old, operand),
      /*weak=*/true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

uint32_t lowlpCpuAtomicCas(LowlpThread *thread, void *base, int64_t byteOffset,
                           uint32_t expected, uint32_t desired,
                           const char *site) {
  auto *word = static_cast<uint32_t *>(
      comeToAtomic(*thread, base, byteOffset, 4, /*usesValue=*/true, site));
  __atomic_compare_exchange_n(word, &expected, desired, /*weak=*/false,
                              __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  thread->block->wakeOthers();
  return expected;
}

void lowlpCpuAwait(LowlpThread *thread, const void *base, int64_t byteOffset,
                   uint32_t value, const char *site) {
  auto *word = static_cast<const uint32_t *>(
      comeToAtomic(*thread, base, byteOffset, 4, /*usesValue=*/true, site));
  thread->block->await(*thread, word, value, site);
  thread->block->sharePhasesByAtomic(*thread);
}

void lowlpCpuRelease(LowlpThread *thread, int32_t op, void *base,
                     int64_t byteOffset, uint32_t operand, const char *site) {
  if (op != LowlpAtomicExch && op != LowlpAtomicAdd)
    rejectOp(*thread, site, "there is no release by atomic operation ", op);
  auto *word = static_cast<uint32_t *>(
      comeToAtomic(*thread, base, byteOffset, 4, op == LowlpAtomicAdd, site));
  thread->block->publish(*thread, op, word, operand);
  thread->block->wakeOthers();
}
