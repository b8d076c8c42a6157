//===- ProductChains.cpp - products that add to one sum -------------------===//
//
// A chain of products is what adds to one sum:
//
//   acc -> dot -> dot -> ... -> last        all by decoded weights of one plan
//
// alone, or as the body of a loop that carries acc. The chain's accumulators
// stay in the units of the plan; what the plan did to the weights is undone
// after it.
//
//===----------------------------------------------------------------------===//
#include "ProductChains.h"
#include "ScaledColumns.h"

#include "lowlp/Layout/LayoutAlgebra.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Finding chains
//===----------------------------------------------------------------------===//

static bool isSplatOf(Value tile, double number) {
  return getSplat(tile) == number;
}

Product lowlp::getNext(Product product) {
  Value sum = product.getSum();
  if (!sum.hasOneUse())
    return Product();
  Product next(*sum.user_begin());
  bool adds = next && next.getAddend() == sum &&
              next->getName() == product->getName() &&
              next->getBlock() == product->getBlock() &&
              areAlike(product, next);
  return adds ? next : Product();
}

/// The tile that the sum of a chain's last product is or becomes; null where it
/// does not in the same block.
static Value getTile(Product last) {
  Value sum = last.getSum();
  if (last.asDot())
    return sum;
  auto wait = getOnlyUser<WgmmaWaitOp>(sum);
  if (!wait || wait->getBlock() != last->getBlock())
    return {};
  return wait.getResult(sum.use_begin()->getOperandNumber());
}

Chain lowlp::getChain(Product first) {
  Chain chain;
  for (Product product = first; product; product = getNext(product))
    chain.products.push_back(product);
  chain.sum = getTile(chain.products.back());
  bool addsToAccumulators = isa_and_nonnull<AccumulatorsType>(
      first.getAddend() ? first.getAddend().getType() : Type());
  if (!chain.sum || addsToAccumulators) {
    chain.sum = {};
    return chain;
  }
  // Carried by the loop around it, and used for nothing else there?
  auto loop = dyn_cast<scf::ForOp>(first->getParentOp());
  auto argument = dyn_cast_if_present<BlockArgument>(first.getAddend());
  if (!loop || !argument || argument.getOwner() != loop.getBody() ||
      !argument.hasOneUse() || !chain.sum.hasOneUse())
    return chain;
  unsigned carried = argument.getArgNumber() - loop.getNumInductionVars();
  if (loop.getYieldedValues()[carried] != chain.sum)
    return chain;
  chain.loop = loop;
  chain.carried = carried;
  return chain;
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// A tile with 1 everywhere; of floats of 8 bits as words of four.
static Value buildOnes(OpBuilder &builder, Location loc, TileType type) {
  if (!isa<Float8E4M3FNType>(type.getElementType()))
    return buildSplat(builder, loc, type, 1);
  constexpr int32_t kFourOnes = 0x38383838;
  Layout layout = Layout::local({type.getNumLocals() / 4}) *
                  Layout::spatial({type.getNumThreads()});
  auto words =
      TileType::get(builder.getContext(),
                    builder.getIntegerType(32, /*isSigned=*/false), layout);
  return ViewOp::create(builder, loc, type,
                        buildSplat(builder, loc, words, kFourOnes));
}

/// Steps of 16 along K.
static constexpr int64_t kShortChain = 2;

namespace {
/// Rewrites one chain for a plan.
class ChainRewriter {
public:
  /// `rows` are the plan's, for values in place of stored codes.
  ChainRewriter(Chain chain, const DecodePlan &plan,
                ArrayRef<DecodePlan::Row> rows)
      : chain(std::move(chain)), plan(plan),
        type(cast<TileType>(this->chain.sum.getType())) {
    isInteger = type.getElementType().isInteger();
    for (const DecodePlan::Row &row : rows) {
      exponents.push_back(static_cast<float>(row.exponent));
      scales.push_back(static_cast<float>(1 / row.getFactor()));
      inverses.push_back(static_cast<float>(row.getFactor()));
      offsets.push_back(static_cast<float>(row.offset));
    }
    hasOffset = llvm::any_of(offsets, [](float o) { return o != 0; });
  }

  /// Whether sums of x had to be added.
  bool run() {
    decodeAll();
    Value sumsOfX;
    Value result;
    if (chain.loop) {
      rewriteInitial();
      if (hasOffset) {
        sumsOfX = findSumsOfX();
        if (!sumsOfX) {
          sumsOfX = addSumsOfX();
          added = true;
        }
      }
      result = chain.loop.getResult(chain.carried);
    } else {
      result = chain.sum;
      rewriteAddend();
      if (hasOffset && beginWithOffsets()) {
        added = true;
      } else if (hasOffset) {
        sumsOfX = addSumsInLine();
        added = true;
      }
    }
    undo(result, sumsOfX);
    return added;
  }

private:
  /// Products take decoded fragments in place of cast codes.
  void decodeAll() {
    auto text = PlanAttr::get(type.getContext(), plan);
    for (Product product : chain.products) {
      UnpackOp codes = getWeights(product).codes;
      OpBuilder builder(product.operator->());
      Value fragments = DecodeOp::create(
          builder, product->getLoc(), product.getTypeOfA(), codes.getWords(),
          /*scales=*/Value(), /*zeros=*/Value(), text, codes.getStep());
      product.getA().assign(fragments);
    }
  }

  /// The value in the units of the plan.
  Value toPlan(OpBuilder &builder, Location loc, Value value) {
    if (isSplatOf(value, 0))
      return value;
    if (isInteger)
      return isScaled()
                 ? ShlOp::create(builder, loc, value,
                                 buildRows(builder, loc, type, exponents))
                       .getResult()
                 : value;
    return MulOp::create(builder, loc, value,
                         buildRows(builder, loc, type, inverses));
  }

  void rewriteInitial() {
    OpBuilder builder(chain.loop);
    OpOperand &initial = chain.loop.getInitArgsMutable()[chain.carried];
    initial.assign(toPlan(builder, chain.loop.getLoc(), initial.get()));
  }

  void rewriteAddend() {
    Product first = chain.products.front();
    OpBuilder builder(first.operator->());
    if (Value addend = first.getAddend())
      first.setAddend(toPlan(builder, first->getLoc(), addend));
  }

  /// Adds the x of a product to `sum`, by a product with ones.
  static Value addX(OpBuilder &builder, DotOp dot, Value sum) {
    Value ones = buildOnes(builder, dot.getLoc(), dot.getA().getType());
    return DotOp::create(builder, dot.getLoc(), ones, dot.getB(), sum);
  }

  /// Adds the x of every product to `sum`, by a product with ones after it.
  Value addSumsTo(Value sum) {
    for (Product product : chain.products) {
      DotOp dot = product.asDot();
      OpBuilder builder(dot->getContext());
      builder.setInsertionPointAfter(dot);
      sum = addX(builder, dot, sum);
    }
    return sum;
  }

  /// What the loop makes already: a sum that begins with zeros and to which
  /// each product with ones adds, for the same x in the same order.
  Value findSumsOfX() {
    scf::ForOp loop = chain.loop;
    for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      if (index == chain.carried || argument.getType() != type ||
          !argument.hasOneUse() || !isSplatOf(loop.getInitArgs()[index], 0))
        continue;
      Value sum = argument;
      bool isSum = true;
      for (Product product : chain.products) {
        DotOp dot = product.asDot();
        auto next = getOnlyUser<DotOp>(sum);
        isSum &= next && next.getC() == sum && next.getB() == dot.getB() &&
                 isSplatOf(next.getA(), 1) &&
                 next.getA().getType() == dot.getA().getType();
        if (!isSum)
          break;
        sum = next.getResult();
      }
      if (isSum && sum == loop.getYieldedValues()[index])
        return loop.getResult(index);
    }
    return {};
  }

  /// Lets the loop carry the sums of x too.
  Value addSumsOfX() {
    IRRewriter rewriter(type.getContext());
    scf::ForOp loop = chain.loop;
    rewriter.setInsertionPoint(loop);
    Value zeros = buildSplat(rewriter, loop.getLoc(), type, 0);
    auto yields = [&](OpBuilder &builder, Location loc,
                      ArrayRef<BlockArgument> carried) {
      return SmallVector<Value>{addSumsTo(carried.front())};
    };
    FailureOr<LoopLikeOpInterface> wider = loop.replaceWithAdditionalYields(
        rewriter, zeros,
        /*replaceInitOperandUsesInLoop=*/false, yields);
    chain.loop = cast<scf::ForOp>(wider->getOperation());
    return chain.loop.getResults().back();
  }

  /// Lets a short chain begin with what the offsets come to, which is the same
  /// for all tiles of 16 rows, so that nothing is left to take off each of
  /// them. Longer ones begin sooner with zeros (docs/adr/0040). Fails where not
  /// all x is there before the first product.
  bool beginWithOffsets() {
    Product first = chain.products.front();
    // Of 16 x 16 weights a thread has 8, of 16 x 8 accumulators 4.
    int64_t weights = 0,
            rowTiles = 2 * type.getNumLocals() / type.getShape()[1];
    for (Product product : chain.products)
      weights += product.getTypeOfA().getNumLocals();
    if (weights > kShortChain * 8 * rowTiles)
      return false;
    for (Product product : chain.products) {
      Operation *x = product.asDot().getB().getDefiningOp();
      if (x && x->getBlock() == first->getBlock() &&
          !x->isBeforeInBlock(first.operator->()))
        return false;
    }
    OpBuilder builder(first.operator->());
    Location loc = first->getLoc();
    Value sumsOfX = buildSplat(builder, loc, type, 0);
    for (Product product : chain.products)
      sumsOfX = addX(builder, product.asDot(), sumsOfX);
    SmallVector<float> negative;
    for (auto [offset, inverse] : llvm::zip_equal(offsets, inverses))
      negative.push_back(-offset * inverse);
    Value begin = MulOp::create(
        builder, loc, buildRows(builder, loc, type, negative), sumsOfX);
    Value addend = first.getAddend();
    if (addend && !isSplatOf(addend, 0))
      begin = AddOp::create(builder, loc, addend, begin);
    first.setAddend(begin);
    return true;
  }

  /// The sums of x of products that no loop carries.
  Value addSumsInLine() {
    Product first = chain.products.front();
    OpBuilder builder(first.operator->());
    return addSumsTo(buildSplat(builder, first->getLoc(), type, 0));
  }

  /// After the chain: sum = result * 2^-exponent - offset * sums of x.
  void undo(Value result, Value sumsOfX) {
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfterValue(result);
    if (sumsOfX && sumsOfX.getDefiningOp() != result.getDefiningOp())
      builder.setInsertionPointAfterValue(sumsOfX);
    Location loc = result.getLoc();
    if (isInteger)
      return undoShifts(builder, loc, result);
    // Powers go to what a thread makes of a column, before threads give it to
    // each other.
    SmallVector<float> left = scales;
    if (auto column = findColumn(result, scales); column && !sumsOfX) {
      multiplyColumn(*column);
      for (auto [power, taken] : llvm::zip_equal(left, column->taken))
        power /= taken;
      if (column->takesAll(scales))
        return;
    }
    if (!sumsOfX && isScaled() && addScaled(result, left))
      return;
    SmallPtrSet<Operation *, 4> made;
    Value sum = result;
    auto remember = [&](Value value) {
      made.insert(value.getDefiningOp());
      return value;
    };
    Value factors = buildRows(builder, loc, type, left);
    if (sumsOfX) {
      // The product with a power of two is exact, so one rounding is left, as
      // for a difference.
      SmallVector<float> negative =
          llvm::map_to_vector(offsets, [](float offset) { return -offset; });
      Value rows = buildRows(builder, loc, type, negative);
      Value part = remember(MulOp::create(builder, loc, rows, sumsOfX));
      sum = isScaled()
                ? remember(FmaOp::create(builder, loc, sum, factors, part))
                : remember(AddOp::create(builder, loc, sum, part));
    } else if (isScaled()) {
      sum = remember(MulOp::create(builder, loc, sum, factors));
    }
    result.replaceUsesWithIf(
        sum, [&](OpOperand &use) { return !made.contains(use.getOwner()); });
  }

  /// Where the result is added to something and no more, multiplies it by
  /// powers of two as it is added. They multiply exactly, so that the rounding
  /// of the sum is the only one, as it was.
  bool addScaled(Value result, ArrayRef<float> powers) {
    auto add = getOnlyUser<AddOp>(result);
    if (!add || add->getBlock() != result.getParentBlock())
      return false;
    OpBuilder builder(add);
    Value other = add.getLhs() == result ? add.getRhs() : add.getLhs();
    Value factors = buildRows(builder, add.getLoc(), type, powers);
    Value sum = FmaOp::create(builder, add.getLoc(), result, factors, other);
    add.getResult().replaceAllUsesWith(sum);
    add.erase();
    return true;
  }

  bool isScaled() const {
    return llvm::any_of(exponents, [](float exponent) { return exponent; });
  }

  /// Integers without the powers of two that bytes were multiplied by: sums of
  /// multiples of these, so that nothing is lost.
  void undoShifts(OpBuilder &builder, Location loc, Value result) {
    if (!isScaled())
      return;
    // Powers of two go to a column that multiplies the sums as floats, or else
    // to these: a product of floats takes half the time of a shift.
    auto wide = getOnlyUser<CastOp>(result);
    if (wide && wide.getType().getElementType().isF32()) {
      if (auto column = findColumn(wide.getResult(), scales);
          column && column->takesAll(scales))
        return multiplyColumn(*column);
      builder.setInsertionPointAfter(wide);
      auto sum = MulOp::create(builder, loc, wide.getResult(),
                               buildRows(builder, loc, wide.getType(), scales));
      wide.getResult().replaceAllUsesExcept(sum, sum);
      return;
    }
    auto sum = ShrOp::create(builder, loc, result,
                             buildRows(builder, loc, type, exponents));
    result.replaceAllUsesExcept(sum, sum);
  }

  Chain chain;
  const DecodePlan &plan;
  TileType type;
  bool isInteger = false;
  SmallVector<float> exponents, scales, inverses, offsets;
  bool hasOffset = false;
  bool added = false;
};
} // namespace

Value lowlp::undoPlan(OpBuilder &builder, Location loc, Value tile,
                      ArrayRef<DecodePlan::Row> rows) {
  auto type = cast<TileType>(tile.getType());
  SmallVector<float> factors, offsets;
  for (const DecodePlan::Row &row : rows) {
    factors.push_back(static_cast<float>(1 / row.getFactor()));
    offsets.push_back(static_cast<float>(-row.offset));
  }
  auto build = [&](ArrayRef<float> values) {
    return buildRows(builder, loc, type, values);
  };
  if (llvm::any_of(offsets, [](float offset) { return offset != 0; }))
    return FmaOp::create(builder, loc, tile, build(factors), build(offsets));
  if (llvm::any_of(factors, [](float factor) { return factor != 1; }))
    return MulOp::create(builder, loc, tile, build(factors));
  return tile;
}

bool lowlp::decodeChain(Chain chain, const DecodePlan &plan,
                        ArrayRef<DecodePlan::Row> rows) {
  return ChainRewriter(std::move(chain), plan, rows).run();
}
