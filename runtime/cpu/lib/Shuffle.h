//===- Shuffle.h - Which lane a shuffle reads -------------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_SHUFFLE_H
#define LOWLP_CPU_LIB_SHUFFLE_H

#include <cstdint>

namespace lowlp {
namespace cpu {

/// The lane a shuffle reads, and whether it lay in range (the predicate p).
struct ShuffleSource {
  int lane;
  bool inRange;
};

/// What `lane` reads. Requires: `mode` is a `LowlpShuffleMode`. Ensures: the
/// result's lane is in [0, 32), and is `lane` itself if out of range.
ShuffleSource shuffleSource(int32_t mode, int lane, uint32_t laneOrDelta,
                            uint32_t clampAndMask);

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_SHUFFLE_H
