//===- PendingCopies.h - Asynchronous copies in flight ----------*- C++ -*-===//
//
// A copy that was issued and not yet waited for holds bytes on both sides: what
// it writes, nobody may touch, and what it reads, nobody may write. Both are
// marked here until the copy lands:
//
//   shared memory written   a table with a copy's number for each 4 bytes
//   everything else         a hash table with the copies of each 16 bytes
//
// The first takes nearly all of the traffic: copies into shared memory from
// arguments that the kernel only reads. The same table marks the bytes of
// mbarriers, which loads and stores may not touch either.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_PENDINGCOPIES_H
#define LOWLP_CPU_LIB_PENDINGCOPIES_H

#include "MemoryMap.h"

#include <unordered_map>
#include <vector>

namespace lowlp {
namespace cpu {

/// One copy in flight.
struct PendingCopy {
  int32_t thread; ///< that issued it, by its index
  const char *site;
  Access source, destination;
  const Place *sourcePlace, *destinationPlace;
  /// Bytes of the destination that lie before those of the source, and become
  /// zero like what lies after them.
  int64_t leadingBytes = 0;
  bool isRead = false; ///< the source is not needed any more

  /// Carries it out.
  void moveBytes() const;
};

/// What stands in the way of an access.
struct Obstacle {
  const PendingCopy *copy = nullptr;
  bool isWritten = false; ///< the copy writes the bytes, else it reads them
  bool isMbarrier = false;
};

/// The copies in flight of one block.
class PendingCopies {
public:
  using Number = uint32_t;

  /// Requires: shared memory begins at `shared` and has `sharedBytes` bytes.
  void reset(const char *shared, int64_t sharedBytes);

  /// Marks the bytes of a copy. Requires: they are whole words of 4 bytes, and
  /// `find` says that they are free.
  Number add(const PendingCopy &copy);
  const PendingCopy &get(Number number) const { return pool[number]; }
  /// Frees what the copy has read now.
  void setRead(Number number);
  /// Frees all of it; then its number is free as well.
  void remove(Number number);

  /// Marks 8 bytes of shared memory as an mbarrier.
  void addMbarrier(int64_t byteOffset);

  /// Whether `find` has anything to look for.
  bool isEmpty() const { return !numMarks; }

  /// What keeps the bytes from being read, or written.
  Obstacle find(const char *address, int64_t bytes, bool isWrite) const;

private:
  struct Mark {
    Number number;
    bool isWritten;
  };
  static constexpr uint32_t mbarrierMark = UINT32_MAX;

  bool isShared(const char *address) const {
    return uintptr_t(address) - uintptr_t(shared) < uintptr_t(sharedBytes);
  }
  void setWords(int64_t byteOffset, int64_t bytes, uint32_t mark);
  void addLines(const char *address, int64_t bytes, Mark mark);
  void removeLines(const char *address, int64_t bytes, Mark mark);
  bool marksSource(const PendingCopy &copy) const;

  const char *shared = nullptr;
  int64_t sharedBytes = 0;
  std::vector<uint32_t> words; ///< 0: free; else a number plus one
  std::unordered_multimap<uintptr_t, Mark> lines;
  std::vector<PendingCopy> pool;
  std::vector<Number> freeNumbers;
  int64_t numMarks = 0;
};

/// The copies of one thread that it waits for by groups, in order.
class CopyGroups {
public:
  void reset() {
    copies.clear();
    first = 0;
    numCommitted = 0;
  }
  void add(PendingCopies::Number copy) {
    copies.push_back({copy, numCommitted});
  }
  void commit() { ++numCommitted; }
  bool isEmpty() const { return first == copies.size(); }

  /// Takes the oldest copy if it is in none of the last `n` groups that were
  /// committed; false if there is none.
  bool take(uint64_t n, PendingCopies::Number &copy) {
    if (isEmpty() || copies[first].group + n >= numCommitted)
      return false;
    copy = copies[first++].copy;
    if (isEmpty()) {
      copies.clear();
      first = 0;
    }
    return true;
  }

  /// Calls `visit` with each copy that `take` would give, and leaves them.
  template <typename Visit> void forEachDue(uint64_t n, Visit visit) const {
    for (size_t i = first;
         i < copies.size() && copies[i].group + n < numCommitted; ++i)
      visit(copies[i].copy);
  }

private:
  struct Entry {
    PendingCopies::Number copy;
    uint64_t group;
  };
  std::vector<Entry> copies;
  size_t first = 0;
  uint64_t numCommitted = 0;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_PENDINGCOPIES_H
