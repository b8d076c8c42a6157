//===- AccessWidth.cpp - how many elements an access may move at once -----===//
//
// An access may move v elements, v consecutive ones along the last dimension,
// when
//   - the layout gives each thread runs of v along it, aligned to v,
//   - they fill 1, 2, 4, 8 or 16 bytes,
//   - they are neighbours in memory (the last stride is 1) and every term of
//     the address is a multiple of v elements, as is the pointer,
//   - they lie inside of the view together or not at all: its last extent and
//     offset are multiples of v, unless the access is in_bounds.
// What divides a value is read off the ops that compute it.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <cstdlib>
#include <numeric>

using namespace mlir;
using namespace lowlp;

static int64_t getDivisor(OpFoldResult value);

/// A number that divides the kernel's or a loop's `argument`.
static int64_t getDivisorOfArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto kernel = dyn_cast<KernelOp>(parent)) {
    auto divisor = kernel.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(), LowlpDialect::kDivisibleByAttrName);
    return divisor ? divisor.getInt() : 1;
  }
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (loop && argument == loop.getInductionVar())
    return std::gcd(getDivisor(loop.getLowerBound()),
                    getDivisor(loop.getStep()));
  return 1;
}

/// A number that divides `value` for certain; 0 when the value is 0.
static int64_t getDivisor(OpFoldResult value) {
  if (!value)
    return 1;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::abs(*constant);
  Value ssa = cast<Value>(value);
  if (auto argument = dyn_cast<BlockArgument>(ssa))
    return getDivisorOfArgument(argument);
  Operation *op = ssa.getDefiningOp();
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op))
    return getDivisor(op->getOperand(0));
  if (isa<arith::MulIOp>(op)) {
    int64_t lhs = getDivisor(op->getOperand(0));
    int64_t rhs = getDivisor(op->getOperand(1));
    // Larger divisors than an access ever needs say nothing more, and could
    // overflow.
    constexpr int64_t enough = 1 << 20;
    return std::gcd(lhs, enough) * std::gcd(rhs, enough);
  }
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
          arith::MinUIOp, arith::MaxUIOp>(op))
    return std::gcd(getDivisor(op->getOperand(0)),
                    getDivisor(op->getOperand(1)));
  if (isa<arith::SelectOp>(op))
    return std::gcd(getDivisor(op->getOperand(1)),
                    getDivisor(op->getOperand(2)));
  return 1;
}

int64_t lowlp::getPowerOf2Divisor(OpFoldResult value) {
  constexpr int64_t enough = 1 << 20;
  return std::gcd(getDivisor(value), enough);
}

int64_t lowlp::getNaturalAlignBytes(Type elementType) {
  int64_t elementBits = *getElementBits(elementType);
  return elementBits % 8 == 0 ? elementBits / 8 : 1;
}

/// The bytes to which the view's pointer is aligned.
static int64_t getPointerAlignBytes(ViewGlobalOp view) {
  int64_t natural =
      getNaturalAlignBytes(view.getView().getType().getElementType());
  auto argument = dyn_cast<BlockArgument>(view.getSource());
  auto kernel = argument ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp())
                         : KernelOp();
  if (!kernel)
    return natural;
  auto align = kernel.getArgAttrOfType<IntegerAttr>(
      argument.getArgNumber(), LowlpDialect::kAlignAttrName);
  return align ? std::max(align.getInt(), natural) : natural;
}

/// True when `v` > 1 elements at once are legal; the layout has been asked.
static bool isLegalWidth(ViewGlobalOp view, OperandRange offsets,
                         const Layout &layout, bool inBounds, int64_t v) {
  int64_t elementBits = *getElementBits(view.getView().getType().getElementType());
  int64_t bits = v * elementBits;
  if (bits % 8 != 0 || bits > 128 || !llvm::isPowerOf2_64(bits))
    return false;
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  if (getConstantIntValue(strides.back()) != 1 ||
      getPointerAlignBytes(view) % (bits / 8) != 0)
    return false;
  int64_t rank = static_cast<int64_t>(strides.size());
  int64_t firstTileDim = rank - layout.rank();
  for (int64_t d = 0; d < rank; ++d) {
    int64_t stride = getDivisor(strides[d]);
    int64_t offset = getDivisor(OpFoldResult(offsets[d]));
    bool isSpread = d >= firstTileDim && d != rank - 1 &&
                    layout.shape()[d - firstTileDim] > 1;
    if (std::gcd(stride, v) * std::gcd(offset, v) % v != 0 ||
        (isSpread && stride % v != 0))
      return false;
  }
  return inBounds || (getDivisor(view.getMixedShape().back()) % v == 0 &&
                      getDivisor(OpFoldResult(offsets.back())) % v == 0);
}

int64_t lowlp::findGlobalWidth(Value source, OperandRange offsets,
                               const Layout &layout, int64_t run,
                               bool inBounds) {
  auto view = source.getDefiningOp<ViewGlobalOp>();
  for (int64_t v = std::min<int64_t>(run, 128); v > 1; --v)
    if (run % v == 0 && isLegalWidth(view, offsets, layout, inBounds, v))
      return v;
  return 1;
}

static int64_t findWidth(Value source, OperandRange offsets, TileType tile,
                         bool inBounds) {
  const Layout &layout = tile.getLayout();
  return findGlobalWidth(source, offsets, layout,
                         layout.contiguousLocals(layout.rank() - 1), inBounds);
}

AccessWidths lowlp::planAccessWidths(Operation *root) {
  AccessWidths widths;
  root->walk([&](LoadGlobalOp load) {
    widths[load] = findWidth(load.getSource(), load.getOffsets(),
                             load.getTile().getType(), load.getInBounds());
  });
  root->walk([&](StoreGlobalOp store) {
    widths[store] = findWidth(store.getDestination(), store.getOffsets(),
                              store.getTile().getType(), store.getInBounds());
  });
  return widths;
}
