//===- WarpgroupProducts.cpp - which products warpgroups make -------------===//
#include "WarpgroupProducts.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/Result.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lowlp;

/// What a tile of single bits is a view of where that is words of 32 along its
/// rows, low bits first; else the tile itself.
static Value seeWords(Value tile) {
  auto view = tile.getDefiningOp<ViewOp>();
  if (!view || !view.getType().getElementType().isUnsignedInteger(1) ||
      !view.getSource().getType().getElementType().isUnsignedInteger(32) ||
      view.getType().getRank() != 2)
    return tile;
  Layout bits = view.getSource().getType().getLayout() * Layout::local({1, 32});
  return bits == view.getType().getLayout() ? view.getSource() : tile;
}

/// The transpose of the tile that operand b of a product is: with slices of K
/// of one [slices, N, K of a slice], seen as [K, N]; or null.
static TransposeOp findTurned(DotOp dot) {
  int64_t numSlices = dot.getNumSlices();
  SmallVector<int64_t> permutation = {1, 0};
  Value tile = dot.getB();
  if (numSlices > 1) {
    permutation = {0, 2, 1};
    auto view = tile.getDefiningOp<ViewOp>();
    if (!view)
      return {};
    TileType of = view.getSource().getType(), seen = view.getType();
    if (of.getRank() != 3 || of.getShape()[0] != numSlices)
      return {};
    Result<Layout> merged =
        reshape(of.getLayout(), {seen.getShape()[0], seen.getShape()[1]});
    if (!merged || *merged != seen.getLayout())
      return {};
    tile = view.getSource();
  }
  auto turned = tile.getDefiningOp<TransposeOp>();
  bool isTurned =
      turned && turned.getPermutation() == ArrayRef<int64_t>(permutation);
  return isTurned ? turned : TransposeOp();
}

/// The load of shared memory that operand b of a product is, turned; or why it
/// is none that a descriptor describes.
static Result<LoadSharedOp> findLoadOfB(DotOp dot) {
  TransposeOp turned = findTurned(dot);
  if (!turned)
    return Error{"operand b is not the transpose of a tile"};
  auto load = seeWords(turned.getSource()).getDefiningOp<LoadSharedOp>();
  if (!load || load->getBlock() != dot->getBlock())
    return Error{"operand b is not loaded from shared memory in the block of "
                 "the product"};
  if (!load.getInBounds())
    return Error{"operand b may reach outside of its shared tile"};
  SharedType shared = load.getSource().getType();
  int64_t bits = *getElementBits(shared.getElementType());
  if (shared.getRank() < turned.getType().getRank() || bits % 8 != 0 ||
      (bits > 16 && turned.getSource() == load.getTile()) ||
      !findWgmmaTile(shared.getLayout(), bits / 8))
    return Error{"the shared layout of operand b is none that a matrix "
                 "descriptor describes"};
  return load;
}

LoadSharedOp lowlp::getLoadOfB(DotOp dot) { return *findLoadOfB(dot); }

std::string lowlp::findObstacle(DotOp dot) {
  Result<LoadSharedOp> load = findLoadOfB(dot);
  if (!load)
    return load.error();
  int64_t numThreads = dot.getC().getType().getNumThreads();
  if (numThreads % kThreadsPerWarpgroup != 0)
    return "the kernel's threads are not whole warpgroups";
  if (numThreads % (dot.getNumSlices() * kThreadsPerWarpgroup) != 0)
    return "the threads of a slice of K are not whole warpgroups";
  if (dot.getType().getShape()[1] > 256)
    return "the product has more than 256 columns";
  return "";
}

/// Whether threads write to the shared tile themselves.
static bool isWrittenByThreads(Value shared) {
  return llvm::any_of(shared.getUsers(), [](Operation *user) {
    return isa<CopyAsyncOp, StoreSharedOp>(user);
  });
}

bool lowlp::orderStores(DotOp dot) {
  LoadSharedOp load = getLoadOfB(dot);
  if (!isWrittenByThreads(load.getSource()))
    return true;
  Operation *barrier = load->getPrevNode();
  while (barrier && !isa<SynchronizeOp>(barrier))
    barrier = barrier->getPrevNode();
  if (!barrier)
    return false;
  if (!isa_and_nonnull<FenceAsyncOp>(barrier->getPrevNode())) {
    OpBuilder builder(barrier);
    FenceAsyncOp::create(builder, dot.getLoc());
  }
  return true;
}
