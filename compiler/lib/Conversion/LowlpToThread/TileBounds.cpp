//===- TileBounds.cpp - whether a tile lies inside for certain ------------===//
//
// What numbers an offset may be is read off the ops that compute it. What a
// loop carries is what it begins with or what it yields, which must not depend
// on it, unless by a remainder: a stage that becomes (stage + 1) % 3 stays
// below 3 whatever it was. (MLIR's own analysis takes whatever a loop yields
// for any number.)
//
//===----------------------------------------------------------------------===//
#include "TileBounds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// The numbers from `low` to `high`.
struct Range {
  int64_t low, high;
};
using MaybeRange = std::optional<Range>;

class RangeFinder {
public:
  MaybeRange of(Value value);

private:
  MaybeRange compute(Value value);
  MaybeRange ofArgument(BlockArgument argument);
  MaybeRange ofResult(Operation *op);

  /// Sums and products of larger numbers are not looked at.
  static constexpr int64_t kLargest = int64_t(1) << 30;
  DenseMap<Value, MaybeRange> known;
};

} // namespace

MaybeRange RangeFinder::of(Value value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return Range{*constant, *constant};
  // Nothing, while it is being found.
  auto [place, isNew] = known.try_emplace(value, std::nullopt);
  if (!isNew)
    return place->second;
  MaybeRange range = compute(value);
  if (range && (range->low < -kLargest || range->high > kLargest))
    range = std::nullopt;
  known[value] = range;
  return range;
}

MaybeRange RangeFinder::compute(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? ofArgument(argument) : ofResult(value.getDefiningOp());
}

MaybeRange RangeFinder::ofArgument(BlockArgument argument) {
  auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
  if (!loop)
    return std::nullopt;
  bool isIndex = argument == loop.getInductionVar();
  MaybeRange first = of(isIndex ? loop.getLowerBound()
                                : loop.getTiedLoopInit(argument)->get());
  MaybeRange last = of(isIndex ? loop.getUpperBound()
                               : loop.getTiedLoopYieldedValue(argument)->get());
  if (!first || !last)
    return std::nullopt;
  if (isIndex)
    return Range{first->low, last->high - 1};
  return Range{std::min(first->low, last->low),
               std::max(first->high, last->high)};
}

MaybeRange RangeFinder::ofResult(Operation *op) {
  auto operand = [&](unsigned index) { return of(op->getOperand(index)); };
  // Whatever is divided, the remainder is below the divisor.
  if (isa<arith::RemUIOp>(op)) {
    MaybeRange divisor = operand(1);
    return divisor && divisor->low > 0 ? MaybeRange({0, divisor->high - 1})
                                       : std::nullopt;
  }
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::SelectOp>(op))
    return std::nullopt;
  unsigned firstOperand = isa<arith::SelectOp>(op) ? 1 : 0;
  MaybeRange a = operand(firstOperand), b = operand(firstOperand + 1);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return Range{a->low + b->low, a->high + b->high};
  if (isa<arith::SubIOp>(op))
    return Range{a->low - b->high, a->high - b->low};
  if (isa<arith::SelectOp>(op))
    return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
  auto corners = {a->low * b->low, a->low * b->high, a->high * b->low,
                  a->high * b->high};
  return Range{std::min(corners), std::max(corners)};
}

int64_t lowlp::getLargestOffset(ArrayRef<int64_t> shape, ArrayRef<int64_t> tile,
                                size_t dim) {
  size_t firstTileDim = shape.size() - tile.size();
  return shape[dim] - (dim < firstTileDim ? 1 : tile[dim - firstTileDim]);
}

bool lowlp::mayBeInside(ArrayRef<int64_t> shape, ArrayRef<int64_t> tile) {
  return llvm::all_of(llvm::seq<size_t>(0, shape.size()), [&](size_t dim) {
    return getLargestOffset(shape, tile, dim) >= 0;
  });
}

bool lowlp::isInside(ValueRange offsets, ArrayRef<int64_t> shape,
                     ArrayRef<int64_t> tile) {
  RangeFinder finder;
  return llvm::all_of(llvm::enumerate(offsets), [&](auto entry) {
    MaybeRange range = finder.of(entry.value());
    return range && range->low >= 0 &&
           range->high <= getLargestOffset(shape, tile, entry.index());
  });
}
