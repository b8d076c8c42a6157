//===- PlanDecode.cpp - lowlp-plan-decode ---------------------------------===//
//
// A chain of products that add to the same accumulators is decoded as a whole,
// as what a plan does to the weights is undone after it (ProductChains.h).
// Weights that the program scales are decoded to what it multiplies by, so that
// nothing is left to undo.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "ProductChains.h"
#include "ScaledColumns.h"
#include "UncodedProducts.h"

#include "lowlp/Decode/PackedTile.h"
#include "lowlp/Decode/SequenceSearch.h"
#include "lowlp/IR/DecodedType.h"
#include "lowlp/IR/Report.h"
#include "lowlp/Target/TargetInfo.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include "llvm/Support/DebugLog.h"

#include <cmath>
#include <map>

#define DEBUG_TYPE "lowlp-plan-decode"

namespace lowlp {
#define GEN_PASS_DEF_PLANDECODE
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// The plan's rows for what is multiplied: the values of the type, which are
/// those of the stored codes plus a shift, times a power of two.
static SmallVector<DecodePlan::Row> getRows(const DecodePlan &plan,
                                            const CodedWeights &weights) {
  double shift = getShift(weights);
  SmallVector<DecodePlan::Row> rows(plan.rows.begin(), plan.rows.end());
  for (DecodePlan::Row &row : rows) {
    row.offset = std::ldexp(row.offset - shift, weights.exponent);
    row.exponent -= weights.exponent;
  }
  return rows;
}

static const Placement &getPlacement(CodedWeights weights) {
  return *weights.codes.getPlacement();
}

/// The integers that zero points may be, if they are some of 8 bits or fewer.
static std::optional<std::pair<double, double>>
getRangeOfZeros(const CodedWeights &weights) {
  if (!weights.zeros)
    return std::pair(0.0, 0.0);
  auto wide = weights.zeros.getDefiningOp<CastOp>();
  auto narrow =
      wide ? dyn_cast<IntegerType>(wide.getSource().getType().getElementType())
           : IntegerType();
  if (!narrow || narrow.getWidth() > 8)
    return std::nullopt;
  double range = std::ldexp(1.0, static_cast<int>(narrow.getWidth()));
  double least = narrow.isSigned() ? -range / 2 : 0;
  return std::pair(least, least + range - 1);
}

/// Whether the type of the weights holds all integer zero points plus `offset`.
static bool areHeld(const CodedWeights &weights, double offset) {
  std::optional<std::pair<double, double>> range = getRangeOfZeros(weights);
  Type element = cast<TileType>(weights.scales.getType()).getElementType();
  for (double zero = range ? range->first : 1; range && zero <= range->second;
       ++zero)
    if (!isHeld(element, zero + offset))
      return false;
  return range.has_value();
}

/// What is subtracted from the values of the stored codes, a column beside that
/// of the scales; null where it is not known to be a number of the type.
static Value buildStoredZeros(OpBuilder &builder, Location loc,
                              const CodedWeights &weights) {
  auto type = cast<TileType>(weights.scales.getType());
  double shift = getShift(weights);
  if (!weights.zeros)
    return buildSplat(builder, loc, type, -shift);
  if (shift == 0)
    return weights.zeros;
  if (!areHeld(weights, -shift))
    return {};
  auto zerosType = cast<TileType>(weights.zeros.getType());
  return SubOp::create(builder, loc, weights.zeros,
                       buildSplat(builder, loc, zerosType, shift));
}

/// Whether zero points are integers to which a plan for such can add what it
/// has above its numbers.
static bool areWhole(const CodedWeights &weights) {
  Type element = cast<TileType>(weights.scales.getType()).getElementType();
  return areHeld(weights, (element.isF16() ? 1024 : 128) - getShift(weights));
}

/// Whether the products of a kernel are to be made by warpgroups.
static bool isByWarpgroups(KernelOp kernel) {
  return kernel.getScheduleOrDefault().getMatrixUnit() == MatrixUnit::Warpgroup;
}

/// Columns of accumulators that one instruction of a warp makes.
static constexpr int64_t kColumnsOfProduct = 8;

/// Whether f32 holds what brings accumulators into the units of a plan and
/// back.
static bool areNormal(ArrayRef<DecodePlan::Row> rows) {
  return llvm::all_of(rows, [](const DecodePlan::Row &row) {
    return std::abs(row.exponent) <= 126 &&
           std::isfinite(static_cast<float>(row.offset));
  });
}

/// Whether warps share units and move their tile's words to those of the first
/// tile.
static bool takesTile(UnpackOp codes, const Placement &placement) {
  const Layout &layout = codes.getCodes().getType().getLayout();
  return findTileShift(placement) &&
         matchPackedTile(layout, placement, static_cast<int>(codes.getStep()))
             ->areUnitsShared;
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

/// Whether a plan adds something to the weights of some rows.
static bool hasOffset(ArrayRef<DecodePlan::Row> rows) {
  return llvm::any_of(rows,
                      [](const DecodePlan::Row &row) { return row.offset; });
}

static std::string print(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static int getCycles(const DecodeCost &cost, const DecodeRates &rates) {
  return cost.alu * rates.alu + cost.fma * rates.fma +
         cost.convert * rates.convert;
}

/// Whether `cast` takes codes, cast to a type of operands, to f32.
static bool isWidened(CastOp cast) {
  Type narrow = cast.getSource().getType().getElementType();
  if (!cast.getType().getElementType().isF32() ||
      !(narrow.isF16() || narrow.isBF16()))
    return false;
  CodedWeights weights = getWeights(cast.getSource());
  return weights.codes && !weights.scales;
}

/// The difference of a tile and something else, if it is used for nothing more.
static SubOp getDifference(CastOp tile) {
  auto difference = getOnlyUser<SubOp>(tile);
  return difference && difference.getLhs() == tile.getResult() ? difference
                                                               : SubOp();
}

/// Undoes what a plan did to `widened`, powers of two alone, as something is
/// subtracted: f32 holds the products, so that one multiply-add rounds as the
/// difference does.
static void undoInDifference(SubOp difference, Value widened,
                             ArrayRef<DecodePlan::Row> rows) {
  OpBuilder builder(difference);
  Location loc = difference.getLoc();
  auto type = cast<TileType>(widened.getType());
  SmallVector<float> powers =
      llvm::map_to_vector(rows, [](const DecodePlan::Row &row) {
        return static_cast<float>(1 / row.getFactor());
      });
  Value taken = difference.getRhs();
  if (Value column = getRepeatedColumn(taken))
    taken = BroadcastOp::create(builder, loc, type,
                                NegOp::create(builder, loc, column));
  else
    taken = NegOp::create(builder, loc, taken);
  Value sum = FmaOp::create(builder, loc, widened,
                            buildRows(builder, loc, type, powers), taken);
  difference.replaceAllUsesWith(sum);
}

namespace {
struct PlanDecode : lowlp::impl::PlanDecodeBase<PlanDecode> {
  using Base::Base;

  void runOnOperation() override {
    const TargetInfo *target = TargetInfo::lookupFor(getOperation(), arch);
    if (!target)
      return signalPassFailure();
    where = offsets;
    if (DecodeOffsets own =
            getOperation().getScheduleOrDefault().getDecodeOffsets();
        own != DecodeOffsets::Auto)
      where = stringifyDecodeOffsets(own);
    if (where != "weights" && where != "accumulators" && where != "auto") {
      getOperation().emitError(
          "offsets must be weights, accumulators or auto, but is ")
          << where;
      return signalPassFailure();
    }
    SmallVector<CastOp> widened;
    getOperation().walk([&](CastOp cast) {
      if (isWidened(cast))
        widened.push_back(cast);
    });
    for (CastOp cast : widened)
      planWidened(cast, getRates(*target));
    SmallVector<Product> firsts;
    getOperation().walk([&](Operation *op) {
      Product product(op);
      if (product && !getWeights(product).codes)
        tellUncoded(product);
      if (!product || !getWeights(product).codes)
        return;
      Value addend = product.getAddend();
      Product before(addend ? addend.getDefiningOp() : nullptr);
      if (!before || !(getNext(before) == product))
        firsts.push_back(product);
    });
    for (Product first : firsts)
      if (getWeights(first).scales)
        planScaled(first, getRates(*target));
      else
        planChain(first, getRates(*target));
    eraseUnused();
    tellPlans();
  }

  void decline(Product product, const std::string &reason) {
    decline(product.operator->(), reason);
  }

  void decline(Operation *op, const std::string &reason) {
    LDBG() << "no plan: " << reason;
    remarkDeclined(op, DEBUG_TYPE, "plan", [&] { return reason; });
  }

  /// Packed weights that the product does not take as a plan could give them.
  void tellUncoded(Product product) {
    std::string reason = explainUncoded(product);
    if (!reason.empty())
      decline(product, reason);
  }

  /// Which plan a product or a cast got: the first line of its text.
  void tellPlan(Operation *op, const DecodePlan &plan) {
    ++numPlanned;
    remarkDone(op, DEBUG_TYPE, "plan",
               [&] { return StringRef(plan.print()).split('\n').first.str(); });
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
      texts.push_back(StringAttr::get(&getContext(),
                                      cast<PlanAttr>(plan).getPlan().print()));
    if (!texts.empty())
      setReport(getOperation(), "decode_plans",
                ArrayAttr::get(&getContext(), texts));
  }

  /// Decodes the weights of a chain, and undoes after it what its plan does.
  void planChain(Product first, const DecodeRates &rates) {
    Chain chain = getChain(first);
    auto declineAll = [&](const std::string &reason) {
      for (Product product : chain.products)
        decline(product, reason);
    };
    if (!chain.sum)
      return declineAll("its accumulators stay in flight where they are used");
    Result<DecodePlan> found =
        findPlan(getWeights(first), first.getTypeOfA().getElementType(),
                 DecodeEnding::Accumulators, rates);
    if (!found)
      return declineAll(found.error());
    DecodePlan plan = *found;
    CodedWeights weights = getWeights(first);
    auto leavesOffset = [&](const DecodePlan &candidate) {
      return hasOffset(getRows(candidate, weights));
    };
    if (leavesOffset(plan))
      if (Result<DecodePlan> other = complement(plan, getPlacement(weights));
          other && !leavesOffset(*other))
        plan = *other;
    bool isOfHalves = getPlacement(weights).getFamily().isOfHalves();
    if (leavesOffset(plan) && isByWarpgroups(getOperation()))
      // Sums of x, which offsets take, would double their products.
      if (Result<DecodePlan> other = useSigns(plan, getPlacement(weights));
          other && !leavesOffset(*other))
        plan = *other;
    if (leavesOffset(plan) && !isOfHalves && !first.asDot())
      return declineAll("bytes of products by warpgroups have no sums of x, "
                        "which their offset takes");
    if (leavesOffset(plan) && isOfHalves && takesOffsetsOff(first)) {
      Result<DecodePlan> moved =
          setOffset(plan, getPlacement(weights), getShift(weights));
      assert((moved || first.asDot()) &&
             "every plan of halves takes the offset of its type");
      if (moved)
        plan = *moved;
    }
    SmallVector<DecodePlan::Row> rows = getRows(plan, weights);
    if (!areNormal(rows))
      return declineAll("f32 does not hold the plan's powers of two");
    for (Product product : chain.products)
      tellPlan(product.operator->(), plan);
    if (decodeChain(std::move(chain), plan, rows))
      ++numSumsOfX;
  }

  /// Whether a plan's offsets are taken off the weights and not off the
  /// accumulators. Sums of x are products with ones: by `lowlp.wgmma` as many
  /// as the program has, by `lowlp.dot` one for each 8 columns in place of 4
  /// sums of pairs.
  bool takesOffsetsOff(Product first) {
    if (!first.asDot() || isByWarpgroups(getOperation()))
      return true;
    if (where != "auto")
      return where == "weights";
    auto accumulators = cast<TileType>(first.getSum().getType());
    return accumulators.getShape()[1] > kColumnsOfProduct;
  }

  /// Decodes weights to what the program multiplies by.
  void planScaled(Product product, const DecodeRates &rates) {
    CodedWeights weights = getWeights(product);
    Result<DecodePlan> found =
        findPlan(weights, product.getTypeOfA().getElementType(),
                 DecodeEnding::Weights, rates);
    if (!found)
      return decline(product, found.error());
    DecodePlan plan = *found;
    if (areWhole(weights))
      if (Result<DecodePlan> whole = useWholeZeros(plan, getPlacement(weights));
          whole &&
          getCycles(whole->getCost(), rates) < getCycles(plan.getCost(), rates))
        plan = *whole;
    OpBuilder builder(product.operator->());
    Value zeros = buildStoredZeros(builder, product->getLoc(), weights);
    if (!zeros)
      return decline(product,
                     "zero points are not known to be integers of 8 bits or "
                     "fewer, which the type of the scales holds after the "
                     "shift of the codes");
    auto text = PlanAttr::get(&getContext(), plan);
    Value fragments =
        DecodeOp::create(builder, product->getLoc(), product.getTypeOfA(),
                         weights.codes.getWords(), weights.scales, zeros, text,
                         weights.codes.getStep());
    product.getA().assign(fragments);
    tellPlan(product.operator->(), plan);
  }

  /// Decodes weights that the program takes from operands to f32, to scale them
  /// there: the fragments of a plan are widened, and what it did to the weights
  /// is undone, which f32 does without rounding.
  void planWidened(CastOp wide, const DecodeRates &rates) {
    CodedWeights weights = getWeights(wide.getSource());
    TileType narrow = wide.getSource().getType();
    Result<DecodePlan> found = findPlan(weights, narrow.getElementType(),
                                        DecodeEnding::Accumulators, rates);
    if (!found)
      return decline(wide, found.error());
    SmallVector<DecodePlan::Row> rows = getRows(*found, weights);
    if (!areNormal(rows))
      return decline(wide, "f32 does not hold the plan's powers of two");
    // Where a column of scales takes powers of two, an offset is taken off the
    // halves, two at a time.
    if (Result<DecodePlan> moved =
            setOffset(*found, getPlacement(weights), getShift(weights));
        moved && !canScaleColumn(wide, rows)) {
      SmallVector<DecodePlan::Row> other = getRows(*moved, weights);
      if (areNormal(other) && canScaleColumn(wide, other)) {
        found = *moved;
        rows = other;
      }
    }
    OpBuilder builder(wide);
    Location loc = wide.getLoc();
    Value fragments = DecodeOp::create(
        builder, loc, narrow, weights.codes.getWords(), /*scales=*/Value(),
        /*zeros=*/Value(), PlanAttr::get(&getContext(), *found),
        weights.codes.getStep());
    TileType type = wide.getType();
    Value widened = CastOp::create(builder, loc, type, fragments);
    if (SubOp difference = getDifference(wide);
        difference && !hasOffset(rows)) {
      undoInDifference(difference, widened, rows);
    } else if (canScaleColumn(wide, rows)) {
      scaleColumn(wide, rows);
      wide.replaceAllUsesWith(widened);
    } else {
      wide.replaceAllUsesWith(undoPlan(builder, loc, widened, rows));
    }
    tellPlan(fragments.getDefiningOp(), *found);
  }

  /// The plan for weights as operands of a type, or why there is none.
  Result<DecodePlan> findPlan(const CodedWeights &weights, Type element,
                              DecodeEnding ending, const DecodeRates &rates) {
    const Placement &placement = getPlacement(weights);
    ComputeType compute = placement.getCompute();
    if (!isDecodedType(element, compute))
      return Error{"placement " + placement.name() +
                   " is not made for operands of " + print(element)};
    if (placement.getFormat().kind == CodeFormat::Kind::Table ||
        placement.isOfVectors())
      return Error{"codes of a table are looked up"};
    if (!areExact(weights, element))
      return Error{"the program's casts round weights, and a plan rounds none"};
    if (element.isSignedInteger(8)) {
      auto known = signedPlans.find(&placement);
      if (known == signedPlans.end())
        known =
            signedPlans.try_emplace(&placement, planSigned(placement, rates))
                .first;
      return known->second;
    }
    if (compute == ComputeType::S8 && ending == DecodeEnding::Accumulators)
      ending = DecodeEnding::Unsigned;
    bool isOfTile = takesTile(weights.codes, placement);
    auto &known = ending == DecodeEnding::Weights ? scaledPlans : plans;
    std::pair key(&placement, isOfTile);
    auto found = known.find(key);
    if (found == known.end())
      found =
          known
              .try_emplace(key, isOfTile ? planTile(placement, ending, rates)
                                         : planDecode(placement, ending, rates))
              .first;
    return found->second;
  }

  /// Codes that no product takes any more.
  void eraseUnused() {
    SmallVector<Operation *> unused;
    getOperation().walk([&](Operation *op) {
      if (isa<BroadcastOp, CastOp, MulOp, SubOp, UnpackOp>(op))
        unused.push_back(op);
    });
    for (Operation *op : llvm::reverse(unused))
      if (op->use_empty())
        op->erase();
  }

  /// Where offsets are taken off.
  StringRef where;
  /// By placement, and whether for one of its tiles.
  std::map<std::pair<const Placement *, bool>, Result<DecodePlan>> plans,
      scaledPlans;
  /// Of integers in signed bytes.
  std::map<const Placement *, Result<DecodePlan>> signedPlans;
};
} // namespace
