//===- LowlpOrderOps.cpp - what blocks of a launch share ------------------===//
#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Semaphores
//===----------------------------------------------------------------------===//

static LogicalResult verifySemaphore(Operation *op, Value view,
                                     size_t numOffsets) {
  auto type = cast<GlobalType>(view.getType());
  if (!view.getDefiningOp<ViewGlobalOp>())
    return op->emitOpError("the view must be a result of lowlp.view_global");
  if (!type.getElementType().isSignedInteger(32))
    return op->emitOpError("semaphores must be si32, but the view holds ")
           << type.getElementType();
  if (static_cast<int64_t>(numOffsets) != type.getRank())
    return op->emitOpError("expected one offset for each of the view's ")
           << type.getRank() << " dimensions, found " << numOffsets;
  return success();
}

LogicalResult SemaphoreAcquireOp::verify() {
  return verifySemaphore(*this, getView(), getOffsets().size());
}

LogicalResult SemaphoreReleaseOp::verify() {
  return verifySemaphore(*this, getView(), getOffsets().size());
}

//===----------------------------------------------------------------------===//
// AtomicRMWOp
//===----------------------------------------------------------------------===//

/// Element type and rank of a view or a shared tile.
static std::pair<Type, int64_t> getElementsOf(Type memory) {
  if (auto shared = dyn_cast<SharedType>(memory))
    return {shared.getElementType(), shared.getRank()};
  auto view = cast<GlobalType>(memory);
  return {view.getElementType(), view.getRank()};
}

static bool hasAtomic(AtomicKind kind, Type element) {
  if (element.isF32() || element.isF16() || element.isBF16())
    return kind == AtomicKind::Add;
  return element.isSignedInteger(32) || element.isUnsignedInteger(32);
}

LogicalResult AtomicRMWOp::verify() {
  TileType tile = getTile().getType();
  auto [element, rank] = getElementsOf(getDestination().getType());
  if (isa<GlobalType>(getDestination().getType()) &&
      !getDestination().getDefiningOp<ViewGlobalOp>())
    return emitOpError("the view must be a result of lowlp.view_global");
  if (tile.getElementType() != element)
    return emitOpError("element types must match: the tile holds ")
           << tile.getElementType() << ", memory holds " << element;
  if (!hasAtomic(getKind(), element))
    return emitOpError("there is no atomic ")
           << stringifyAtomicKind(getKind()) << " of " << element
           << "; si32 and ui32 have all kinds, f32, f16 and bf16 have add";
  if (static_cast<int64_t>(getOffsets().size()) != rank)
    return emitOpError("expected one offset for each of the ")
           << rank << " dimensions in memory, found " << getOffsets().size();
  if (tile.getRank() > rank)
    return emitOpError("the tile has ")
           << tile.getRank() << " dimensions, but memory has only " << rank;
  if (auto kernel = (*this)->getParentOfType<KernelOp>())
    if (tile.getNumThreads() != static_cast<int64_t>(kernel.getNumThreads()))
      return emitOpError("the tile is held by ")
             << tile.getNumThreads() << " threads, but a block has "
             << kernel.getNumThreads();
  if (!getOld())
    return success();
  if (getOld().getType() != tile)
    return emitOpError("the old values must have the type of the tile, ")
           << tile << ", but have " << getOld().getType();
  if (tile.getNumThreads() * tile.getNumLocals() !=
      tile.getLayout().numElements())
    return emitOpError("old values need a layout that holds each element once, "
                       "but the tile's holds ")
           << tile.getNumThreads() * tile.getNumLocals() << " places for "
           << tile.getLayout().numElements() << " elements";
  return success();
}

//===----------------------------------------------------------------------===//
// AllocGlobalOp
//===----------------------------------------------------------------------===//

/// Whether all divisors in `formula` are positive numbers.
static bool hasPositiveDivisors(AffineExpr formula) {
  WalkResult result = formula.walk([](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    if (!binary || binary.getKind() == AffineExprKind::Add ||
        binary.getKind() == AffineExprKind::Mul)
      return WalkResult::advance();
    auto divisor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    return divisor && divisor.getValue() > 0 ? WalkResult::advance()
                                             : WalkResult::interrupt();
  });
  return !result.wasInterrupted();
}

LogicalResult AllocGlobalOp::verify() {
  AffineMap shape = getShape();
  if (shape.getNumResults() == 0)
    return emitOpError("shape must have at least one extent");
  for (AffineExpr extent : shape.getResults())
    if (auto constant = dyn_cast<AffineConstantExpr>(extent);
        constant && constant.getValue() < 1)
      return emitOpError("extents must be at least 1, but one is ")
             << constant.getValue();
  if (!llvm::all_of(shape.getResults(), hasPositiveDivisors))
    return emitOpError("extents must divide by positive numbers only");
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel)
    return emitOpError("must lie in a lowlp.kernel");
  unsigned numIntegers =
      llvm::count_if(kernel.getArgumentTypes(),
                     [](Type type) { return isa<IntegerType>(type); });
  if (shape.getNumDims() != numIntegers || shape.getNumSymbols() != 0)
    return emitOpError("shape must have one dimension for each of the ")
           << numIntegers << " integer parameters, but has "
           << shape.getNumDims() << " dimensions and " << shape.getNumSymbols()
           << " symbols";
  return success();
}

//===----------------------------------------------------------------------===//
// ExchangeInClusterOp
//===----------------------------------------------------------------------===//

/// Whether every thread holds all of the first dimension, slowest of all it
/// holds.
static bool holdsFirstOutermost(const Layout &layout) {
  auto [begin, end] = layout.modesOf(0);
  const std::vector<Digit> &locals = layout.localDigits();
  return end - begin == 1 && !locals.empty() && locals.front().mode == begin;
}

int64_t ExchangeInClusterOp::getWordsOfPart() {
  TileType tile = getParts().getType();
  return tile.getBitsPerThread() / tile.getShape().front() / 32;
}

int64_t ExchangeInClusterOp::getTakenWords() {
  TileType tile = getParts().getType();
  return (tile.getShape().front() - 1) * getWordsOfPart() *
         tile.getNumThreads();
}

SharedType ExchangeInClusterOp::getNeededShared() {
  auto word = IntegerType::get(getContext(), 32, IntegerType::Signed);
  return SharedType::get(
      getContext(), word,
      *SharedLayout::plain(Layout::local({getTakenWords() + 4})));
}

LogicalResult ExchangeInClusterOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel)
    return emitOpError("must lie in a lowlp.kernel");
  TileType tile = getParts().getType();
  int64_t blocks = kernel.getScheduleOrDefault().getCluster();
  if (blocks == 1)
    return emitOpError("the kernel has no clusters");
  if ((*this)->getParentOfType<scf::ForOp>() ||
      (*this)->getParentOfType<scf::WhileOp>())
    return emitOpError("must not lie in a loop");
  if (tile.getShape().front() != blocks)
    return emitOpError("the first dimension must be the ")
           << blocks << " blocks of the cluster, but is "
           << tile.getShape().front();
  if (tile.getRank() < 2 || !holdsFirstOutermost(tile.getLayout()))
    return emitOpError("each thread must hold all parts, one after the other, "
                       "but the tile is ")
           << tile;
  if (tile.getBitsPerThread() % (32 * blocks) != 0)
    return emitOpError("a part must fill words of 32 bits in each thread, but ")
           << blocks << " parts have " << tile.getBitsPerThread() << " bits";
  if (tile.getNumThreads() != static_cast<int64_t>(kernel.getNumThreads()))
    return emitOpError("the tile is held by ")
           << tile.getNumThreads() << " threads, but the block has "
           << kernel.getNumThreads();
  if (getShared() && getShared().getType() != getNeededShared())
    return emitOpError("must go through ")
           << getNeededShared() << ", but goes through "
           << getShared().getType();
  return success();
}
