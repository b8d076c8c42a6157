//===- PlanMemory.cpp - lowlp-plan-memory ---------------------------------===//
//
// 1. Which tiles must not overlap (SharedLiveness.cpp).
// 2. Places, from the largest tile to the smallest, each in the smallest gap
//    between those that it must not overlap:
//
//      apart from both:  | A      |   gap   | B      |
//      this tile:                 | C    |
//
// 3. Barriers. Forwards through the program goes the set of tiles that have
//    been read and written since the last barrier. An access of a tile whose
//    bytes another one of these has too gets a barrier before it, unless both
//    only read; and so does one use of a scratch tile after another.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "SharedLiveness.h"

#include "lowlp/IR/Report.h"
#include "lowlp/Transforms/Passes.h"

#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#define DEBUG_TYPE "lowlp-plan-memory"

namespace lowlp {
#define GEN_PASS_DEF_PLANMEMORY
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;
using llvm::BitVector;

namespace {

/// The bytes of a tile, from one to the one after the last.
struct Place {
  int64_t begin, end;

  bool overlaps(const Place &other) const {
    return begin < other.end && other.begin < end;
  }
};

using Places = SmallVector<std::optional<Place>>;

} // namespace

static int64_t getBytes(AllocSharedOp alloc) {
  return llvm::alignTo(alloc.getType().getSizeInBytes(),
                       AllocSharedOp::kAlignBytes);
}

/// Where `bytes` that begin at a multiple of `alignBytes` go: into the smallest
/// gap between `taken` that has room for them; the last one, which has no end,
/// if no other has.
static int64_t findGap(SmallVector<Place> taken, int64_t bytes,
                       int64_t alignBytes) {
  llvm::sort(taken, [](const Place &a, const Place &b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::optional<Place> best;
  int64_t free = 0;
  for (const Place &place : taken) {
    Place gap{static_cast<int64_t>(llvm::alignTo(free, alignBytes)),
              place.begin};
    bool fits = gap.end - gap.begin >= bytes;
    if (fits && (!best || gap.end - gap.begin < best->end - best->begin))
      best = gap;
    free = std::max(free, place.end);
  }
  return best ? best->begin : llvm::alignTo(free, alignBytes);
}

/// A place for every tile; those that have an offset keep it.
static Places findPlaces(const SharedTiles &tiles,
                         ArrayRef<BitVector> interference) {
  Places places(tiles.size());
  SmallVector<unsigned> order;
  for (unsigned tile = 0; tile < tiles.size(); ++tile) {
    AllocSharedOp alloc = tiles[tile];
    if (IntegerAttr offset = alloc.getOffsetAttr())
      places[tile] = {offset.getInt(), offset.getInt() + getBytes(alloc)};
    else
      order.push_back(tile);
  }
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(-getBytes(tiles[a]), a) <
           std::pair(-getBytes(tiles[b]), b);
  });
  for (unsigned tile : order) {
    SmallVector<Place> taken;
    for (unsigned other : interference[tile].set_bits())
      if (places[other])
        taken.push_back(*places[other]);
    int64_t bytes = getBytes(tiles[tile]);
    int64_t begin = findGap(std::move(taken), bytes,
                            AllocSharedOp(tiles[tile]).getAlignBytes());
    places[tile] = {begin, begin + bytes};
  }
  return places;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

namespace {

/// The tiles accessed since the last barrier.
struct Accesses {
  BitVector read, written;
  PendingCopies copies;

  explicit Accesses(unsigned numTiles)
      : read(numTiles), written(numTiles), copies(numTiles) {}
  Accesses &operator|=(const Accesses &other) {
    read |= other.read;
    written |= other.written;
    copies |= other.copies;
    return *this;
  }
  bool operator==(const Accesses &other) const {
    return read == other.read && written == other.written &&
           copies == other.copies;
  }
  void forget() {
    read.reset();
    written.reset();
  }
};

class Barriers {
public:
  Barriers(const SharedTiles &tiles, const Places &places)
      : tiles(tiles), sharing(tiles.size(), BitVector(tiles.size())) {
    for (unsigned a = 0; a < tiles.size(); ++a)
      for (unsigned b = 0; b < tiles.size(); ++b)
        if (a == b ? tiles[a].getScratch() : places[a]->overlaps(*places[b]))
          sharing[a].set(b);
  }

  /// Adds those that are missing; returns how many.
  unsigned add(KernelOp kernel) {
    unsigned count = 0;
    auto step = [&](Operation *op, Accesses &since) { follow(op, since); };
    auto visit = [&](Operation *op, Accesses &since) {
      std::optional<SharedUse> use = tiles.getUse(op);
      if (!use || !needsBarrier(*use, since))
        return;
      OpBuilder builder(op);
      SynchronizeOp::create(builder, op->getLoc());
      ++count;
    };
    Accesses since(tiles.size());
    ForwardWalk<Accesses>(step, visit).follow(kernel.getBody().front(), since);
    return count;
  }

private:
  bool needsBarrier(const SharedUse &use, const Accesses &since) const {
    const BitVector &others = sharing[use.tile];
    return others.anyCommon(since.written) ||
           (use.writes && others.anyCommon(since.read));
  }

  void follow(Operation *op, Accesses &since) const {
    if (isa<SynchronizeOp>(op))
      since.forget();
    std::optional<SharedUse> use = tiles.getUse(op);
    if (use && needsBarrier(*use, since))
      since.forget();
    since.written |= since.copies.step(op, use);
    if (use)
      (use->writes ? since.written : since.read).set(use->tile);
  }

  const SharedTiles &tiles;
  /// For each tile those whose accesses a barrier must keep apart from its own.
  SmallVector<BitVector> sharing;
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

struct PlanMemory : lowlp::impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SharedTiles tiles(kernel);
    if (tiles.size() == 0)
      return;
    if (failed(verifyScratch(tiles)))
      return signalPassFailure();
    Places places = findPlaces(tiles, findInterference(kernel, tiles));
    int64_t bytes = 0, unsharedBytes = 0;
    for (unsigned tile = 0; tile < tiles.size(); ++tile) {
      bytes = std::max(bytes, places[tile]->end);
      unsharedBytes += getBytes(tiles[tile]);
      LDBG() << tiles[tile].getType() << " at " << places[tile]->begin;
      tellPinned(tiles, tile);
    }
    if (bytes > AllocSharedOp::kMaxBytes)
      return refuse(tiles, places, bytes);
    Builder builder(&getContext());
    for (unsigned tile = 0; tile < tiles.size(); ++tile)
      tiles[tile].setOffsetAttr(builder.getI64IntegerAttr(places[tile]->begin));
    setReport(kernel, "unshared_bytes",
              builder.getI64IntegerAttr(unsharedBytes));
    numBytes += bytes;
    numUnsharedBytes += unsharedBytes;
    numBarriers += Barriers(tiles, places).add(kernel);
  }

  /// A tile that shares its bytes with none, whatever its life.
  static void tellPinned(const SharedTiles &tiles, unsigned tile) {
    if (tiles.size() == 1 || !tiles.isPinned(tile))
      return;
    // That is what the tile of a codebook is for.
    if (llvm::any_of(tiles[tile].getShared().getUsers(),
                     llvm::IsaPred<LoadCodebookOp>))
      return;
    remarkDeclined(tiles[tile], DEBUG_TYPE, "sharing", [&] {
      for (Operation *user : tiles[tile].getShared().getUsers())
        if (!tiles.getUse(user))
          return user->getName().getStringRef().str() +
                 " uses the tile in a way that does not say when its life ends";
      return std::string("the tile is used in a region of an op other than "
                         "scf.for, scf.if and scf.while");
    });
  }

  /// Barriers between two uses of scratch can be added only where the order of
  /// ops is known.
  static LogicalResult verifyScratch(const SharedTiles &tiles) {
    for (unsigned tile = 0; tile < tiles.size(); ++tile)
      if (tiles[tile].getScratch() && tiles.isPinned(tile))
        return tiles[tile].emitOpError(
            "scratch is used in a region of an op other than scf.for, scf.if "
            "and scf.while");
    return success();
  }

  /// Reports the first tile that reaches beyond the end, and names the others.
  void refuse(const SharedTiles &tiles, const Places &places, int64_t bytes) {
    unsigned first = 0;
    while (places[first]->end <= AllocSharedOp::kMaxBytes)
      ++first;
    InFlightDiagnostic error =
        tiles[first].emitOpError("does not fit: a block has at most ")
        << AllocSharedOp::kMaxBytes
        << " bytes of shared memory, but its tiles take " << bytes;
    for (unsigned tile = 0; tile < tiles.size(); ++tile)
      error.attachNote(tiles[tile].getLoc())
          << tiles[tile].getType() << " takes "
          << places[tile]->end - places[tile]->begin << " bytes from "
          << places[tile]->begin << " on";
    signalPassFailure();
  }
};

} // namespace
