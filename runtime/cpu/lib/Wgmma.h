//===- Wgmma.h - Products of warpgroups in flight ---------------*- C++ -*-===//
//
// The four warps of a warpgroup meet where a product begins; from there on each
// has a part of it to itself: 16 rows of A and of the accumulators, and all of
// B. A warp carries out its part at its wait for the group, which is as late as
// the program allows:
//
//   wgmma        A is copied from the lanes' registers, which may then change;
//                B is checked and held, so that nobody may write to it
//   commit       what was begun is one more group of the warp
//   wait n       products of all but the last n groups read B and add up
//
// Accumulators have no register meanwhile. A lane holds a number that says
// which accumulators they are and how often they were passed on, so that each
// product adds to what the one before has left, and a second use is found.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_WGMMA_H
#define LOWLP_CPU_LIB_WGMMA_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lowlp {
namespace cpu {

/// B of one product, as a matrix descriptor says it.
struct MatrixTile {
  const void *base;
  int64_t byteOffset, leadingBytes, strideBytes, swizzleBytes;

  static constexpr int64_t bytesPerChunk = 16;
  static constexpr int64_t chunksPerRow = 2;

  /// The byte offset from `base` of chunk `chunk` of row `row`.
  int64_t offsetOf(int64_t row, int64_t chunk) const;
  bool operator==(const MatrixTile &other) const;
};

/// What a lane brings to a product.
struct WgmmaOperands {
  const void *a;        ///< 4 registers
  const void *c;        ///< null: none, or they are in flight
  int64_t accumulators; ///< those in flight; 0: none
  MatrixTile b;
  int64_t result; ///< the accumulators, when the product has begun
};

/// A warp's accumulators, which products in flight are going to change.
struct WarpAccumulators {
  static constexpr int maxPerLane = 128;

  uint32_t words[32][maxPerLane];
  int32_t numPerLane;
  uint32_t version = 0;           ///< how often they were passed on
  int32_t numPending = 0;         ///< products in flight that add to them
  const char *lastSite = nullptr; ///< of those products
  uint32_t taken = 0;             ///< lanes that have them back
};

/// A warp's part of a product in flight.
struct PendingProduct {
  int32_t kind; ///< a `LowlpMmaKind`
  int32_t n;
  const char *site;
  MatrixTile b;
  uint32_t a[32][4];
  size_t accumulators; ///< by index
  uint64_t group;
};

/// The products of one warp.
class WarpProducts {
public:
  void reset();

  /// The numbers of accumulators that lanes hold.
  static int64_t nameOf(size_t index, const WarpAccumulators &accumulators) {
    return int64_t(index + 1) << 32 | accumulators.version;
  }
  /// The accumulators of that number, or null if there are none any more.
  WarpAccumulators *find(int64_t name);
  static size_t indexOf(int64_t name) { return size_t(name >> 32) - 1; }
  /// Accumulators that nobody uses; returns their index.
  size_t make(int32_t numPerLane);
  WarpAccumulators &get(size_t index) { return *pool[index]; }
  /// Notes that a lane has its accumulators back.
  void take(size_t index, uint32_t laneBit);

  void add(PendingProduct product);
  void commit() {
    ++numCommitted;
    isFenced = false;
  }
  bool isEmpty() const { return products.empty(); }
  const PendingProduct &oldest() const { return products.front(); }
  /// Whether a product that the op at `site` began is in flight.
  bool isPending(const char *site) const;
  /// Whether the oldest product is in none of the last `n` groups.
  bool isDue(uint64_t n) const {
    return !isEmpty() && products.front().group + n < numCommitted;
  }
  void removeOldest() { products.erase(products.begin()); }

  bool isFenced = false; ///< since the last commit

private:
  std::vector<PendingProduct> products; ///< in order
  uint64_t numCommitted = 0;
  std::vector<std::unique_ptr<WarpAccumulators>> pool;
  std::vector<size_t> freeAccumulators;
};

/// The bytes of shared memory that products in flight are going to read.
class HeldTiles {
public:
  /// Who holds bytes.
  struct Holder {
    const char *site;
    int32_t thread;
  };

  void reset(const void *shared, int64_t sharedBytes);
  void hold(const PendingProduct &product, int32_t thread);
  void free(const PendingProduct &product);
  bool isEmpty() const { return numHeld == 0; }
  /// Who holds one of the bytes, or null.
  const Holder *find(const void *address, int64_t bytes) const;

private:
  struct Line {
    uint32_t count = 0;
    Holder last = {nullptr, 0};
  };
  template <typename Visit>
  void forEachLine(const PendingProduct &product, Visit visit);

  uintptr_t shared = 0;
  int64_t sharedBytes = 0;
  int64_t numHeld = 0;
  std::vector<Line> lines; ///< of 16 bytes each
};

/// Adds a product to its accumulators, reading B. Requires: B lies where its
/// tile says.
void carryOut(const PendingProduct &product, WarpAccumulators &accumulators);

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_WGMMA_H
