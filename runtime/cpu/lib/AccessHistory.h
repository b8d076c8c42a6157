//===- AccessHistory.h - Accesses that nothing orders yet -------*- C++ -*-===//
//
// The shadow (Shadow.h) knows of no order within a block but its barriers, and
// remembers two threads a byte. Where mbarriers order threads too, this takes
// its place for shared memory: for every few bytes it keeps all accesses that a
// later one may have to be ordered after, each with the time and the component
// of its thread (ThreadOrder.h). An access that is ordered after another one
// takes its place if whatever races with the earlier also races with it: a
// write that of everything, a read that of reads.
//
// So a race is found in every run that has one, as far as the order of the
// arrivals at mbarriers in that run goes.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_ACCESSHISTORY_H
#define LOWLP_CPU_LIB_ACCESSHISTORY_H

#include "Shadow.h"
#include "ThreadOrder.h"

#include <vector>

namespace lowlp {
namespace cpu {

/// Who touches the bytes: a thread itself, or something that goes through the
/// async proxy.
enum class Agent : uint8_t { Thread, BulkCopy, Product };

/// One access in the history of its bytes.
struct PastAccess {
  uint32_t time;
  uint16_t component; ///< whose clock tells who has seen it
  Actor actor;
  AccessKind kind;
  Agent agent;

  bool isAsync() const { return agent != Agent::Thread; }
};

/// What an access collides with.
struct Collision {
  enum Kind : uint8_t { Nothing, Race, MissingFence };
  Kind kind = Nothing;
  PastAccess other = {};
};

/// The accesses to the shared memory of one block.
class AccessHistory {
public:
  void reset(int64_t sharedBytes);

  /// Compares the access with those before and, where there is no collision,
  /// adds it. Requires: `access.component` is its thread's; the bytes lie in
  /// shared memory.
  Collision visit(int64_t byteOffset, int64_t bytes, const PastAccess &access,
                  const ThreadOrder &order);

  /// Only compares.
  Collision compare(int64_t byteOffset, int64_t bytes, const PastAccess &access,
                    const ThreadOrder &order);

  /// Lets `access` take the place of all others. Requires: `compare` found it
  /// ordered after them.
  void replace(int64_t byteOffset, int64_t bytes, const PastAccess &access);

private:
  using Cell = std::vector<PastAccess>;
  /// As fine as the accesses to it need: cells of 1 to 16 bytes.
  struct Page {
    std::vector<Cell> cells;
    int granuleShift = 0;
  };
  static constexpr int64_t bytesPerPage = 1024;
  static constexpr int maxGranuleShift = 4;

  static void refine(Page &page, int64_t byteOffset, int64_t bytes);
  /// Calls `visitCell` for each cell of the bytes until it returns false.
  template <typename VisitCell>
  void forEachCell(int64_t byteOffset, int64_t bytes, VisitCell visitCell);
  static Collision collide(const Cell &cell, const PastAccess &access,
                           const ThreadOrder &order);

  std::vector<Page> pages;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_ACCESSHISTORY_H
