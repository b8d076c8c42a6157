//===- Order.h - Orders of threads and blocks drawn from a seed -*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_ORDER_H
#define LOWLP_CPU_LIB_ORDER_H

#include <cstdint>

namespace lowlp {
namespace cpu {

/// A well-mixed function of `value` (the finaliser of splitmix64).
inline uint64_t mixBits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// A small generator of random numbers (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(mixBits(seed)) {}

  /// A number in [0, bound). Requires: 0 < `bound` <= 2^31.
  uint32_t below(uint32_t bound) {
    state += 0x9e3779b97f4a7c15u;
    return uint32_t(((mixBits(state) >> 32) * bound) >> 32);
  }

private:
  uint64_t state;
};

/// A permutation of [0, size) without a table, since grids are large: a Feistel
/// network permutes the next power of four, and values outside the range are
/// sent through it again until they fall inside.
class Permutation {
public:
  /// Requires: 0 < `size` < 2^62.
  Permutation(uint64_t size, uint64_t seed) : size(size), seed(seed) {
    while ((uint64_t(1) << (2 * halfBits)) < size)
      ++halfBits;
  }

  /// The element at `position`. Requires: `position` < size.
  uint64_t operator()(uint64_t position) const {
    do
      position = permutePowerOfFour(position);
    while (position >= size);
    return position;
  }

private:
  uint64_t permutePowerOfFour(uint64_t value) const {
    uint64_t mask = (uint64_t(1) << halfBits) - 1;
    uint64_t left = value >> halfBits, right = value & mask;
    for (uint64_t round = 1; round <= 4; ++round) {
      uint64_t mixed = mixBits(mixBits(seed + round) ^ right) & mask;
      uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    return left << halfBits | right;
  }

  uint64_t size;
  uint64_t seed;
  unsigned halfBits = 0;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_ORDER_H
