//===- Arrival.h - What a thread brings to where it waits -------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_ARRIVAL_H
#define LOWLP_CPU_LIB_ARRIVAL_H

#include "Mbarrier.h"
#include "Mma.h"
#include "Wgmma.h"

#include <cstdint>

namespace lowlp {
namespace cpu {

/// The operands of one lane's `shfl.sync`, and its results.
struct ShuffleOperands {
  uint32_t value;
  uint32_t laneOrDelta;
  uint32_t clampAndMask;
  uint32_t result;
  bool inRange;
};

/// One lane's part of an ldmatrix or stmatrix.
struct MatrixOperands {
  const void *base; ///< with `byteOffset`, the row whose address it gives
  int64_t byteOffset;
  void *words; ///< the lane's registers

  /// What tells instructions apart: how many matrices, and `.trans`.
  static int32_t modeOf(int32_t count, bool transposed) {
    return count | (transposed ? 8 : 0);
  }
  static int32_t countOf(int32_t mode) { return mode & 7; }
  static bool isTransposed(int32_t mode) { return (mode & 8) != 0; }
};

/// A thread that waits for a word or an mbarrier meets nobody; the word or the
/// mbarrier lets it go on.
enum class MeetingKind : uint8_t {
  Barrier,
  Mma,
  Shuffle,
  LoadMatrix,
  StoreMatrix,
  WarpgroupBarrier,
  Wgmma, ///< of a warpgroup; the following three of a warp
  WgmmaFence,
  WgmmaCommit,
  WgmmaWait,
  Word,
  Mbarrier
};

/// Whether four warps meet, and not one.
inline bool isOfWarpgroup(MeetingKind kind) {
  return kind == MeetingKind::WarpgroupBarrier || kind == MeetingKind::Wgmma;
}

/// The word a thread waits for, and the value it is to have.
struct AwaitedWord {
  const uint32_t *word;
  uint32_t value;
};

/// What a thread brings to a place where it waits for others.
struct Arrival {
  MeetingKind kind;
  int32_t mode;     ///< kind of mma or wgmma, mode of shuffle or of matrices,
                    ///< number of mbarrier, or groups that a wait leaves
  const char *site; ///< compared by address
  uint32_t members; ///< the lanes of the warp that take part; not for barriers
  union {
    MmaOperands mma;
    ShuffleOperands shuffle;
    MatrixOperands matrix;
    WgmmaOperands *wgmma; ///< on the lane's stack
    AwaitedWord awaited;
    const Mbarrier *mbarrier;
  };

  /// Whether both come to the same op in the same way.
  bool agreesWith(const Arrival &other) const {
    return site == other.site && kind == other.kind && mode == other.mode &&
           members == other.members;
  }
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_ARRIVAL_H
