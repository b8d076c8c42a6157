//===- ExpandExchanges.cpp - lowlp-expand-exchanges -----------------------===//
//
// A reduction over a dimension that several warps share, here of 4 warps with
// 32 elements each:
//
//   view        128 -> 4 x 32         the warp's part becomes a dimension
//   reduce      4 x 32 -> 4 x 1       within warps
//   convert     4 x 1                 every thread holds all four
//   reduce      4 x 1 -> 1            within threads, from the first warp on
//
// A conversion that goes through shared memory, of 5-bit floats which fill no
// whole bytes:
//
//   view, cast  f5 -> ui5 -> ui8
//   transpose   so that the dimension comes last which the scratch has last
//   store, synchronize, load
//   transpose, cast, view
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"
#include "SourcePlace.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/Report.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/Scratch.h"
#include "lowlp/Layout/WarpConversion.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-expand-exchanges"

namespace lowlp {
#define GEN_PASS_DEF_EXPANDEXCHANGES
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// The layout of `parts` copies of a tile, all of which a thread holds one
/// after the other.
static Layout holdAllParts(const Layout &layout, int64_t parts) {
  std::vector<std::vector<int64_t>> extents = layout.modeExtents();
  extents.insert(extents.begin(), {parts});
  std::vector<Digit> threads = layout.threadDigits(), locals;
  locals.push_back({0, parts});
  for (Digit digit : layout.localDigits())
    locals.push_back(digit);
  for (Digit &digit : threads)
    digit.mode += digit.isReplica() ? 0 : 1;
  for (Digit &digit : llvm::drop_begin(locals))
    digit.mode += 1;
  return *Layout::fromModes(extents, threads, locals);
}

/// Takes apart a reduction of `source`, whose dimension is spread over warps as
/// `split` says.
static Value expandReduce(OpBuilder &builder, ReduceOp op,
                          const Layout &split) {
  Location loc = op.getLoc();
  MLIRContext *context = op.getContext();
  Type element = op.getType().getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  Type sum = isHalf ? builder.getF32Type() : element;
  TileType source = op.getSource().getType();
  auto dim = static_cast<int64_t>(op.getDim());
  bool keepDims = op.getType().getRank() == source.getRank();
  auto tile = [&](const Layout &layout) {
    return TileType::get(context, sum, layout);
  };
  Value value = op.getSource();
  if (isHalf)
    value = CastOp::create(builder, loc, tile(source.getLayout()), value);
  value = ViewOp::create(builder, loc, tile(split), value);
  Layout withinWarps = *reduce(split, {dim + 1}, keepDims);
  value = ReduceOp::create(builder, loc, tile(withinWarps), op.getKind(), value,
                           dim + 1);
  const Layout &result = op.getType().getLayout();
  value = ConvertLayoutOp::create(
      builder, loc, tile(holdAllParts(result, split.shape().front())), value);
  value = ReduceOp::create(builder, loc, tile(result), op.getKind(), value, 0);
  if (isHalf)
    value = CastOp::create(builder, loc, op.getType(), value);
  return value;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

namespace {

/// Makes the ops of a conversion through shared memory.
class ThroughShared {
public:
  ThroughShared(ConvertLayoutOp op, const Scratch &scratch)
      : builder(op), loc(op.getLoc()), op(op), scratch(scratch) {}

  Value emit() {
    TileType target = op.getType();
    Type code = builder.getIntegerType(getElementBits(), /*isSigned=*/false);
    Type byte = builder.getIntegerType(8, /*isSigned=*/false);
    bool widens = scratch.elementBits != getElementBits();
    Value value = op.getSource();
    if (widens) {
      TileType source = op.getSource().getType();
      value = create<ViewOp>(source.cloneWith(code), value);
      value = create<CastOp>(source.cloneWith(byte), value);
    }
    value = exchange(value, widens ? target.cloneWith(byte) : target);
    if (widens) {
      value = create<CastOp>(target.cloneWith(code), value);
      value = create<ViewOp>(target, value);
    }
    return value;
  }

private:
  template <typename Op, typename... Args>
  Value create(Type type, Args &&...args) {
    return Op::create(builder, loc, type, std::forward<Args>(args)...);
  }
  int64_t getElementBits() {
    return *lowlp::getElementBits(op.getType().getElementType());
  }

  /// The tile with its dimensions in another order.
  Value transpose(Value value, const std::vector<int64_t> &order) {
    if (llvm::is_sorted(order))
      return value;
    auto tile = cast<TileType>(value.getType());
    auto type = TileType::get(tile.getContext(), tile.getElementType(),
                              *permute(tile.getLayout(), order));
    return create<TransposeOp>(type, value,
                               builder.getDenseI64ArrayAttr(order));
  }

  Value exchange(Value value, TileType target) {
    value = transpose(value, scratch.order);
    auto shared =
        SharedType::get(op.getContext(), target.getElementType(),
                        *SharedLayout::plain(Layout::local(scratch.shape)));
    Value place = create<AllocSharedOp>(shared, /*offset=*/IntegerAttr(),
                                        /*scratch=*/true);
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    SmallVector<Value> offsets(scratch.shape.size(), zero);
    StoreSharedOp::create(builder, loc, value, place, offsets,
                          /*in_bounds=*/true);
    SynchronizeOp::create(builder, loc);
    auto held = TileType::get(op.getContext(), target.getElementType(),
                              *permute(target.getLayout(), scratch.order));
    value = create<LoadSharedOp>(held, place, offsets, /*in_bounds=*/true);
    std::vector<int64_t> back(scratch.order.size());
    for (auto [k, dim] : llvm::enumerate(scratch.order))
      back[dim] = static_cast<int64_t>(k);
    return transpose(value, back);
  }

  OpBuilder builder;
  Location loc;
  ConvertLayoutOp op;
  const Scratch &scratch;
};

} // namespace

static std::string describeShuffles(const WarpConversion &plan) {
  if (!plan.isWithinThreads())
    return std::to_string(plan.rounds.size()) +
           (plan.rounds.size() == 1 ? " shuffle" : " shuffles");
  return plan.cost() ? "choices between registers" : "nothing";
}

static std::string describeShared(const Scratch &scratch) {
  return "shared memory, " + std::to_string(scratch.sizeInBytes()) +
         " bytes, " + std::to_string(scratch.storePasses + scratch.loadPasses) +
         " passes of the banks";
}

namespace {

struct ExpandExchanges : lowlp::impl::ExpandExchangesBase<ExpandExchanges> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<std::string> decisions;
    kernel.walk([&](ReduceOp op) {
      std::optional<Layout> split =
          splitAcrossWarps(op.getSource().getType().getLayout(),
                           static_cast<int64_t>(op.getDim()));
      if (!split)
        return;
      ++numReductions;
      OpBuilder builder(op);
      op.replaceAllUsesWith(expandReduce(builder, op, *split));
      op.erase();
    });
    kernel.walk([&](ExchangeInClusterOp op) {
      if (op.getShared())
        return;
      // Other blocks write to it when they come here, so no other tile of this
      // block may have its bytes: it is not scratch.
      OpBuilder builder(op);
      Value shared = AllocSharedOp::create(
          builder, op.getLoc(), op.getNeededShared(), /*offset=*/IntegerAttr(),
          /*scratch=*/false);
      op.getSharedMutable().assign(shared);
    });
    kernel.walk([&](ConvertLayoutOp op) { decisions.push_back(decide(op)); });
    if (decisions.empty())
      return;
    setReport(kernel, "exchanges", decisions);
  }

  /// Makes a lookup of vectors and the conversion one lookup, where matrices of
  /// entries are what is wanted.
  bool gathersMatrices(ConvertLayoutOp op) {
    auto lookup = op.getSource().getDefiningOp<LookupVectorsOp>();
    if (!lookup || !lookup.findMatrices(op.getType().getLayout()))
      return false;
    OpBuilder builder(op);
    auto gathered = cast<LookupVectorsOp>(builder.clone(*lookup));
    gathered.getResult().setType(op.getType());
    op.replaceAllUsesWith(gathered.getResult());
    op.erase();
    if (lookup->use_empty())
      lookup.erase();
    ++numInRegisters;
    return true;
  }

  /// Expands the conversion if that is the cheapest way; says which is.
  std::string decide(ConvertLayoutOp op) {
    const Layout &source = op.getSource().getType().getLayout();
    const Layout &result = op.getType().getLayout();
    int64_t bits = *getElementBits(op.getType().getElementType());
    std::string text = describePlace(op.getLoc(), "conversion") + ": ";
    if (gathersMatrices(op))
      return text + "looked up as matrices";
    std::optional<WarpConversion> plan =
        planWarpConversion(source, result, bits);
    if (plan && plan->cost() == 0) {
      ++numInRegisters;
      return text + describeShuffles(*plan);
    }
    Scratch scratch = planScratch(source, result, bits);
    if (plan && plan->cost() <= scratch.cost) {
      ++(plan->isWithinThreads() ? numInRegisters : numByShuffles);
      return text + describeShuffles(*plan) + ", cost " +
             std::to_string(plan->cost()) + "; not " + describeShared(scratch) +
             ", cost " + std::to_string(scratch.cost);
    }
    ++numThroughShared;
    std::string way =
        describeShared(scratch) + ", cost " + std::to_string(scratch.cost);
    if (plan)
      way += "; not " + describeShuffles(*plan) + ", cost " +
             std::to_string(plan->cost());
    LDBG() << text << way;
    remarkDeclined(op, DEBUG_TYPE, "registers", [&] {
      return (plan ? "shuffles cost more: " : "elements pass between warps: ") +
             way;
    });
    op.replaceAllUsesWith(ThroughShared(op, scratch).emit());
    op.erase();
    return text + way;
  }
};

} // namespace
