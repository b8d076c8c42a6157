//===- DecomposeBitSlices.cpp - lowlp-decompose-bit-slices ----------------===//
//
// Which unpacked tiles may be split depends on the tables in which they are
// looked up, and which tables may have slices depends on those tiles. Both sets
// begin with all that might be, and shrink until they agree.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"

#include "lowlp/Decode/Placement.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Transforms/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

#define DEBUG_TYPE "lowlp-decompose-bit-slices"

namespace lowlp {
#define GEN_PASS_DEF_DECOMPOSEBITSLICES
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

/// The widths of the slices in which the codes of `unpack` lie, if they lie in
/// several and `unpack` gives them whole.
static SmallVector<int64_t> findSlices(UnpackOp unpack) {
  const Placement &placement = *unpack.getPlacement();
  Type code = unpack.getCodes().getType().getElementType();
  std::vector<int> slices = placement.findSlices();
  if (!code.isUnsignedInteger() || slices.size() < 2 ||
      static_cast<int>(code.getIntOrFloatBitWidth()) !=
          placement.getFormat().bits)
    return {};
  return {slices.begin(), slices.end()};
}

/// Whether single codes can be looked up there by their slices.
static bool takesSlices(SharedType table, int64_t bits) {
  int64_t numEntries = table.getShape()[0];
  return bits <= 8 && numEntries >= int64_t(1) << bits &&
         llvm::isPowerOf2_64(numEntries) && !table.getLayout().swizzle() &&
         !getScalarFormat(table.getElementType());
}

namespace {

using Slices = SmallVector<int64_t>;

/// What may be split, with the slices.
struct Candidates {
  llvm::MapVector<Operation *, Slices> unpacks;
  /// Tables of pairs, by the op that allocates them.
  llvm::MapVector<Operation *, Slices> tables;
  /// What stays whole, with the op that takes its codes so.
  llvm::MapVector<Operation *, Operation *> whole;

  explicit Candidates(KernelOp kernel) {
    kernel.walk([&](UnpackOp unpack) {
      if (Slices slices = findSlices(unpack); !slices.empty())
        unpacks.insert({unpack.getOperation(), slices});
    });
    for (auto &[unpack, slices] : unpacks)
      for (Operation *user : unpack->getUsers())
        if (auto lookup = dyn_cast<LookupPairsOp>(user))
          if (Operation *table = lookup.getTable().getDefiningOp())
            tables.insert({table, slices});
    while (shrink()) {
    }
  }

private:
  bool canSplit(Operation *user, const Slices &slices) const {
    if (auto lookup = dyn_cast<LookupOp>(user))
      return lookup.getSlices().size() == 1 &&
             takesSlices(
                 lookup.getTable().getType(),
                 std::accumulate(slices.begin(), slices.end(), int64_t(0)));
    auto lookup = dyn_cast<LookupPairsOp>(user);
    if (!lookup || lookup.getSlices().size() != 1)
      return false;
    auto table = tables.find(lookup.getTable().getDefiningOp());
    return table != tables.end() && table->second == slices;
  }

  /// Whether the use of a table is one that can have the slices.
  bool canSlice(Operation *user, Operation *table, const Slices &slices) const {
    if (auto expand = dyn_cast<ExpandTableOp>(user))
      return expand.getExpanded().getDefiningOp() == table &&
             !expand.getSlices();
    auto lookup = dyn_cast<LookupPairsOp>(user);
    if (!lookup || lookup.getSlices().size() != 1)
      return false;
    auto unpack = unpacks.find(lookup.getSlices().front().getDefiningOp());
    return unpack != unpacks.end() && unpack->second == slices;
  }

  /// Removes what cannot be split; returns whether there was any.
  bool shrink() {
    size_t before = unpacks.size() + tables.size();
    unpacks.remove_if([&](auto &entry) {
      for (Operation *user : entry.first->getUsers())
        if (!canSplit(user, entry.second)) {
          whole.insert({entry.first, user});
          return true;
        }
      return false;
    });
    tables.remove_if([&](auto &entry) {
      return !isa<AllocSharedOp>(entry.first) ||
             llvm::any_of(entry.first->getUsers(), [&](Operation *user) {
               return !canSlice(user, entry.first, entry.second);
             });
    });
    return unpacks.size() + tables.size() != before;
  }
};

struct DecomposeBitSlices
    : lowlp::impl::DecomposeBitSlicesBase<DecomposeBitSlices> {
  using Base::Base;

  void runOnOperation() override {
    Candidates candidates(getOperation());
    for (auto &[table, slices] : candidates.tables)
      for (Operation *user : table->getUsers())
        if (auto expand = dyn_cast<ExpandTableOp>(user))
          expand.setSlices(slices);
    for (auto &[unpack, user] : candidates.whole)
      tellWhole(unpack, user);
    for (auto &[unpack, slices] : candidates.unpacks)
      split(cast<UnpackOp>(unpack), slices);
  }

private:
  static void tellWhole(Operation *unpack, Operation *user) {
    LDBG() << "whole for " << user->getName();
    remarkDeclined(unpack, DEBUG_TYPE, "slices", [&] {
      std::string name = user->getName().getStringRef().str();
      return isa<LookupOp, LookupPairsOp>(user)
                 ? "the table of a " + name + " cannot be looked up by slices"
                 : name + " takes whole codes";
    });
  }

  void split(UnpackOp unpack, ArrayRef<int64_t> slices) {
    OpBuilder builder(unpack);
    TileType codes = unpack.getCodes().getType();
    SmallVector<Value> tiles;
    int64_t bit = unpack.getBit();
    for (int64_t width : slices) {
      Type code = builder.getIntegerType(width, /*isSigned=*/false);
      tiles.push_back(UnpackOp::create(
          builder, unpack.getLoc(), codes.cloneWith(code), unpack.getWords(),
          unpack.getPlacement(), unpack.getStep(), bit, unpack.getBookAttr()));
      bit += width;
    }
    for (Operation *user : llvm::make_early_inc_range(unpack->getUsers())) {
      if (auto lookup = dyn_cast<LookupOp>(user))
        lookup.getSlicesMutable().assign(tiles);
      else
        cast<LookupPairsOp>(user).getSlicesMutable().assign(tiles);
    }
    unpack.erase();
    ++numSplit;
    numSlices += slices.size();
  }
};

} // namespace
