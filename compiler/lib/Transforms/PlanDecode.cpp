//===- PlanDecode.cpp - lowlp-plan-decode ---------------------------------===//
//
// A chain of products is what adds to one sum:
//
//   acc -> dot -> dot -> ... -> last        all by decoded weights of one plan
//
// alone, or as the body of a loop that carries acc. The chain's sums stay in
// the units of the plan; what the plan did to the weights is undone behind it.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Decode/PackedTile.h"
#include "lowlp/Decode/SequenceSearch.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Target/TargetInfo.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

namespace lowlp {
#define GEN_PASS_DEF_PLANDECODE
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Finding chains
//===----------------------------------------------------------------------===//

namespace {
/// A `lowlp.dot` or a `lowlp.wgmma`.
class Product {
public:
  Product() = default;
  /// Null for any other op.
  explicit Product(Operation *op)
      : op(isa_and_nonnull<DotOp, WgmmaOp>(op) ? op : nullptr) {}

  explicit operator bool() const { return op; }
  Operation *operator->() const { return op; }
  bool operator==(Product other) const { return op == other.op; }
  DotOp asDot() const { return dyn_cast<DotOp>(op); }

  OpOperand &getA() const {
    if (DotOp dot = asDot())
      return dot.getAMutable();
    return cast<WgmmaOp>(op).getAMutable();
  }
  TileType getTypeOfA() const { return cast<TileType>(getA().get().getType()); }
  /// What the product is added to; null for nothing.
  Value getAddend() const {
    if (DotOp dot = asDot())
      return dot.getC();
    return cast<WgmmaOp>(op).getC();
  }
  void setAddend(Value value) const {
    if (DotOp dot = asDot())
      return dot.getCMutable().assign(value);
    cast<WgmmaOp>(op).getCMutable().assign(value);
  }
  /// The sum as a tile, or as one under way.
  Value getSum() const { return op->getResult(0); }

private:
  Operation *op = nullptr;
};

/// Products that add to one sum, and the loop that carries it, if any.
struct Chain {
  SmallVector<Product> products;
  /// The last sum, a tile.
  Value sum;
  scf::ForOp loop;
  /// The number of the loop's carried value.
  unsigned carried = 0;
};
} // namespace

/// The number that a tile holds everywhere, if it is known.
static std::optional<double> getSplat(Value tile) {
  auto splat = tile.getDefiningOp<SplatOp>();
  FloatAttr value;
  if (!splat || !matchPattern(splat.getValue(), m_Constant(&value)))
    return std::nullopt;
  return value.getValue().convertToDouble();
}

static bool isSplatOf(Value tile, double number) {
  return getSplat(tile) == number;
}

namespace {
/// What operand a of a product is made of: `cast(codes)`, or with a power of
/// two `cast(cast(codes) * 2^exponent)`.
struct Weights {
  UnpackOp codes;
  int exponent = 0;
  /// The type of the numbers that are multiplied; null without a power.
  Type wide = {};
};
} // namespace

/// Without codes if the operand is anything else.
static Weights getWeights(Product product) {
  auto cast = product.getA().get().getDefiningOp<CastOp>();
  if (!cast)
    return {};
  auto scaled = cast.getSource().getDefiningOp<MulOp>();
  if (!scaled)
    return {cast.getSource().getDefiningOp<UnpackOp>()};
  auto wide = scaled.getLhs().getDefiningOp<CastOp>();
  std::optional<double> factor = getSplat(scaled.getRhs());
  if (!wide || !factor || *factor <= 0 ||
      std::ldexp(1.0, std::ilogb(*factor)) != *factor)
    return {};
  return {wide.getSource().getDefiningOp<UnpackOp>(), std::ilogb(*factor),
          wide.getType().getElementType()};
}

/// Whether two products take weights alike, so that one plan's rows hold for
/// both.
static bool areAlike(Product first, Product second) {
  Weights a = getWeights(first), b = getWeights(second);
  return a.codes && b.codes && a.exponent == b.exponent && a.wide == b.wide &&
         first.getTypeOfA().getElementType() ==
             second.getTypeOfA().getElementType() &&
         a.codes.getPlacement() == b.codes.getPlacement() &&
         a.codes.getCodes().getType().getElementType() ==
             b.codes.getCodes().getType().getElementType();
}

/// The product that alone uses the sum of another one, with alike weights.
static Product getNext(Product product) {
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
  auto wait = sum.hasOneUse() ? dyn_cast<WgmmaWaitOp>(*sum.user_begin())
                              : WgmmaWaitOp();
  if (!wait || wait->getBlock() != last->getBlock())
    return {};
  return wait.getResult(sum.use_begin()->getOperandNumber());
}

/// The chain that begins with a product; without a sum where there is none that
/// can be rewritten.
static Chain getChain(Product first) {
  Chain chain;
  for (Product product = first; product; product = getNext(product))
    chain.products.push_back(product);
  chain.sum = getTile(chain.products.back());
  bool addsToSums = isa_and_nonnull<SumsType>(
      first.getAddend() ? first.getAddend().getType() : Type());
  if (!chain.sum || addsToSums) {
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

static Value buildSplat(OpBuilder &builder, Location loc, TileType type,
                        double number) {
  Value scalar = arith::ConstantOp::create(
      builder, loc, builder.getFloatAttr(type.getElementType(), number));
  return SplatOp::create(builder, loc, type, scalar);
}

/// A tile of f32 with a value for each 8 rows.
static Value buildRows(OpBuilder &builder, Location loc, TileType type,
                       ArrayRef<float> values) {
  if (llvm::all_equal(values))
    return buildSplat(builder, loc, type, values.front());
  return RowConstantsOp::create(builder, loc, type, values);
}

namespace {
/// Rewrites one chain for a plan.
class ChainRewriter {
public:
  /// `rows` are the plan's, for values in place of stored codes.
  ChainRewriter(Chain chain, const DecodePlan &plan,
                ArrayRef<DecodePlan::Row> rows)
      : chain(std::move(chain)), plan(plan),
        type(cast<TileType>(this->chain.sum.getType())) {
    for (const DecodePlan::Row &row : rows) {
      scales.push_back(std::ldexp(1.0f, -row.exponent));
      inverses.push_back(std::ldexp(1.0f, row.exponent));
      offsets.push_back(static_cast<float>(row.offset));
    }
    hasOffset = llvm::any_of(offsets, [](float o) { return o != 0; });
  }

  /// Whether it can be done. Sums of x are made by `lowlp.dot` only.
  bool isPossible() const {
    return !hasOffset || chain.products.front().asDot();
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
      if (hasOffset) {
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
    auto text = PlanAttr::get(type.getContext(), plan.print());
    for (Product product : chain.products) {
      UnpackOp codes = getWeights(product).codes;
      OpBuilder builder(product.operator->());
      Value fragments =
          DecodeOp::create(builder, product->getLoc(), product.getTypeOfA(),
                           codes.getWords(), text, codes.getStep());
      product.getA().assign(fragments);
    }
  }

  /// The value in the units of the plan.
  Value toPlan(OpBuilder &builder, Location loc, Value value) {
    if (isSplatOf(value, 0))
      return value;
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

  /// Adds the x of every product to `sum`, by a product with ones behind it.
  Value addSumsTo(Value sum) {
    for (Product product : chain.products) {
      DotOp dot = product.asDot();
      OpBuilder builder(dot->getContext());
      builder.setInsertionPointAfter(dot);
      Value ones = buildSplat(builder, dot.getLoc(), dot.getA().getType(), 1);
      sum = DotOp::create(builder, dot.getLoc(), ones, dot.getB(), sum);
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
        auto next =
            sum.hasOneUse() ? dyn_cast<DotOp>(*sum.user_begin()) : DotOp();
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

  /// The sums of x of products that no loop carries.
  Value addSumsInLine() {
    Product first = chain.products.front();
    OpBuilder builder(first.operator->());
    return addSumsTo(buildSplat(builder, first->getLoc(), type, 0));
  }

  /// Behind the chain: sum = result * 2^-exponent - offset * sums of x.
  void undo(Value result, Value sumsOfX) {
    OpBuilder builder(result.getContext());
    builder.setInsertionPointAfterValue(result);
    if (sumsOfX && sumsOfX.getDefiningOp() != result.getDefiningOp())
      builder.setInsertionPointAfterValue(sumsOfX);
    Location loc = result.getLoc();
    SmallPtrSet<Operation *, 4> made;
    Value sum = result;
    auto remember = [&](Value value) {
      made.insert(value.getDefiningOp());
      return value;
    };
    Value factors = buildRows(builder, loc, type, scales);
    bool isScaled =
        llvm::any_of(scales, [](float scale) { return scale != 1; });
    if (sumsOfX) {
      // The product with a power of two is exact, so one rounding is left, as
      // for a difference.
      SmallVector<float> negative =
          llvm::map_to_vector(offsets, [](float offset) { return -offset; });
      Value rows = buildRows(builder, loc, type, negative);
      Value part = remember(MulOp::create(builder, loc, rows, sumsOfX));
      sum = isScaled ? remember(FmaOp::create(builder, loc, sum, factors, part))
                     : remember(AddOp::create(builder, loc, sum, part));
    } else if (isScaled) {
      sum = remember(MulOp::create(builder, loc, sum, factors));
    }
    result.replaceUsesWithIf(
        sum, [&](OpOperand &use) { return !made.contains(use.getOwner()); });
  }

  Chain chain;
  const DecodePlan &plan;
  TileType type;
  SmallVector<float> scales, inverses, offsets;
  bool hasOffset = false;
  bool added = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// The plan's rows for what is multiplied: the values of the type, which are
/// those of the stored codes plus a shift, times a power of two.
static SmallVector<DecodePlan::Row> getRows(const DecodePlan &plan,
                                            Weights weights) {
  Type element = weights.codes.getCodes().getType().getElementType();
  double shift = getStoredValue(*getScalarFormat(element)).shift;
  SmallVector<DecodePlan::Row> rows(plan.rows.begin(), plan.rows.end());
  for (DecodePlan::Row &row : rows) {
    row.offset = std::ldexp(row.offset - shift, weights.exponent);
    row.exponent -= weights.exponent;
  }
  return rows;
}

/// Whether a type of floats holds a number.
static bool isHeld(Type type, double number) {
  bool isRounded = false;
  APFloat value(number);
  value.convert(cast<FloatType>(type).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &isRounded);
  return value.isFinite() && !isRounded;
}

/// Whether no cast of the program rounds a weight, which no plan does.
static bool areExact(Weights weights, const Placement &placement,
                     Type operand) {
  Type element = weights.codes.getCodes().getType().getElementType();
  double shift = getStoredValue(*getScalarFormat(element)).shift;
  const CodeFormat &format = placement.getFormat();
  for (int code = 0; code < 1 << format.bits; ++code) {
    std::optional<double> stored = format.value(static_cast<uint8_t>(code));
    if (!stored)
      continue;
    double value = *stored + shift;
    double scaled = std::ldexp(value, weights.exponent);
    if (!isHeld(operand, scaled) ||
        (weights.wide &&
         !(isHeld(weights.wide, value) && isHeld(weights.wide, scaled))))
      return false;
  }
  return true;
}

/// Whether f32 holds what brings sums into the units of a plan and back.
static bool areNormal(ArrayRef<DecodePlan::Row> rows) {
  return llvm::all_of(rows, [](const DecodePlan::Row &row) {
    return std::abs(row.exponent) <= 126 &&
           std::isfinite(static_cast<float>(row.offset));
  });
}

/// What an instruction costs: the time for which it takes its pipe, in 128ths
/// of an SM's clock for each lane.
static DecodeRates getRates(const TargetInfo &target) {
  DecodeRates rates;
  rates.alu = 128 / target.bitLanesPerSM;
  rates.fma = 128 / target.halfPairLanesPerSM;
  rates.convert = 128 / target.conversionLanesPerSM;
  return rates;
}

namespace {
struct PlanDecode : lowlp::impl::PlanDecodeBase<PlanDecode> {
  using Base::Base;

  void runOnOperation() override {
    const TargetInfo *target = TargetInfo::lookup(arch);
    if (!target) {
      getOperation().emitError() << TargetInfo::describeUnknown(arch);
      return signalPassFailure();
    }
    SmallVector<Product> firsts;
    getOperation().walk([&](Operation *op) {
      Product product(op);
      if (!product || !getWeights(product).codes)
        return;
      Value addend = product.getAddend();
      Product before(addend ? addend.getDefiningOp() : nullptr);
      if (!before || !(getNext(before) == product))
        firsts.push_back(product);
    });
    for (Product first : firsts) {
      Chain chain = getChain(first);
      if (!chain.sum)
        continue;
      std::optional<DecodePlan> plan = findPlan(first, getRates(*target));
      if (!plan)
        continue;
      SmallVector<DecodePlan::Row> rows = getRows(*plan, getWeights(first));
      if (!areNormal(rows))
        continue;
      size_t count = chain.products.size();
      ChainRewriter rewriter(std::move(chain), *plan, rows);
      if (!rewriter.isPossible())
        continue;
      numPlanned += count;
      if (rewriter.run())
        ++numSumsOfX;
    }
    eraseUnused();
    tellPlans();
  }

  /// Leaves the plans that are used with the kernel, for its report.
  void tellPlans() {
    SmallVector<Attribute> used;
    getOperation().walk([&](DecodeOp decode) {
      if (!llvm::is_contained(used, decode.getPlan()))
        used.push_back(decode.getPlan());
    });
    SmallVector<Attribute> texts;
    for (Attribute plan : used)
      texts.push_back(
          StringAttr::get(&getContext(), cast<PlanAttr>(plan).getText()));
    if (!texts.empty())
      getOperation()->setDiscardableAttr("lowlp.decode_plans",
                                         ArrayAttr::get(&getContext(), texts));
  }

  /// The plan for all that a product's chain decodes; none where the type has
  /// none.
  std::optional<DecodePlan> findPlan(Product first, const DecodeRates &rates) {
    UnpackOp codes = getWeights(first).codes;
    TileType fragments = first.getTypeOfA();
    const Placement &placement = **Placement::find(codes.getPlacement().str());
    Type element = fragments.getElementType();
    ComputeType compute = placement.getCompute();
    bool isMeantFor = (element.isF16() && compute == ComputeType::F16) ||
                      (element.isBF16() && compute == ComputeType::BF16);
    if (!isMeantFor || placement.getFormat().kind == CodeFormat::Kind::Table ||
        !areExact(getWeights(first), placement, element))
      return std::nullopt;
    auto found = plans.find(placement.name());
    if (found == plans.end())
      found = plans
                  .try_emplace(placement.name(),
                               planDecode(placement, DecodeEnding::Sums, rates))
                  .first;
    if (!found->second)
      return std::nullopt;
    return *found->second;
  }

  /// Codes that no product takes any more.
  void eraseUnused() {
    SmallVector<Operation *> unused;
    getOperation().walk([&](Operation *op) {
      if (isa<CastOp, MulOp, UnpackOp>(op))
        unused.push_back(op);
    });
    for (Operation *op : llvm::reverse(unused))
      if (op->use_empty())
        op->erase();
  }

  llvm::StringMap<Result<DecodePlan>> plans;
};
} // namespace
