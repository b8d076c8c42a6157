//===- ConvertLayout.cpp - tiles in another layout, within warps ----------===//
//
// The plan names items, runs of up to 32 bits of a thread's registers. A choice
// that depends on the lane is a word with a bit for each lane, constant where
// all warps choose alike:
//
//   lanes 1, 3, 5 ... offer item 2, the others item 0:
//     offered = select((0xAAAAAAAA >> lane) & 1, item 2, item 0)
//     what comes = gpu.shuffle idx offered, the lane to read
//
// Halves of entries of codebooks that a thread puts into other words are one
// `prmt` a word. Nothing computes with them before, so that there are no shifts
// and masks that could become one with those of the move.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <set>

using namespace mlir;
using namespace lowlp;

static constexpr int kNone = WarpConversion::none;
static constexpr int64_t kWarpThreads = WarpConversion::warpThreads;

FailureOr<ConversionPlans> lowlp::planConversions(Operation *root) {
  ConversionPlans plans;
  bool allFit = true;
  root->walk([&](ConvertLayoutOp op) {
    TileType source = op.getSource().getType();
    std::optional<WarpConversion> plan =
        planWarpConversion(source.getLayout(), op.getType().getLayout(),
                           *getElementBits(source.getElementType()));
    if (plan) {
      plans[op] = *std::move(plan);
      return;
    }
    op.emitOpError("moves elements from warp to warp; run "
                   "lowlp-expand-exchanges first");
    allFit = false;
  });
  if (!allFit)
    return failure();
  return plans;
}

namespace {

/// Values that depend on the lane of the warp.
class LaneValues {
public:
  LaneValues(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(
        builder, loc, static_cast<int32_t>(static_cast<uint32_t>(value)), 32);
  }
  /// Whether the lane is one of those set, as an i1.
  Value test(const std::vector<bool> &isSet) {
    return arith::TruncIOp::create(builder, loc, builder.getI1Type(),
                                   shifted(isSet));
  }
  /// The number of `numbers` (below 32) that belongs to this thread.
  Value number(ArrayRef<int> numbers) {
    if (auto bits = lanesByMask(numbers.vec())) {
      Value own =
          arith::AndIOp::create(builder, loc, getLane(), constant(bits->first));
      return arith::OrIOp::create(builder, loc, own, constant(bits->second));
    }
    Value result = constant(0);
    for (int bit = 0; bit < 5; ++bit) {
      std::vector<bool> isSet;
      for (int entry : numbers)
        isSet.push_back(entry != kNone && (entry >> bit & 1));
      if (!llvm::is_contained(isSet, true))
        continue;
      Value low =
          arith::AndIOp::create(builder, loc, shifted(isSet), constant(1));
      result = arith::OrIOp::create(
          builder, loc, result,
          arith::ShLIOp::create(builder, loc, low, constant(bit)));
    }
    return result;
  }
  /// The value that each thread's entry names, made by `get`; null where no
  /// thread names one. It may be any for a thread that names none.
  Value choose(ArrayRef<int> choices, llvm::function_ref<Value(int)> get) {
    std::set<int> distinct(choices.begin(), choices.end());
    distinct.erase(kNone);
    Value result;
    for (int choice : distinct)
      result =
          result ? select(choices, choice, get(choice), result) : get(choice);
    return result;
  }
  /// `value` in the threads whose entry is `choice`, else `other`.
  Value select(ArrayRef<int> choices, int choice, Value value, Value other) {
    std::vector<bool> isSet;
    for (int entry : choices)
      isSet.push_back(entry == choice);
    return arith::SelectOp::create(builder, loc, test(isSet), value, other);
  }

private:
  /// A word whose lowest bit says whether the lane is one of those set.
  Value shifted(const std::vector<bool> &isSet) {
    std::vector<uint32_t> masks = laneMasks(isSet);
    Value mask = constant(masks.front());
    for (size_t warp = 1; warp < masks.size(); ++warp) {
      Value isWarp = arith::CmpIOp::create(
          builder, loc, arith::CmpIPredicate::eq, getWarp(),
          constant(static_cast<int64_t>(warp)));
      mask = arith::SelectOp::create(builder, loc, isWarp,
                                     constant(masks[warp]), mask);
    }
    return arith::ShRUIOp::create(builder, loc, mask, getLane());
  }
  Value getThread() {
    Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
    return arith::IndexCastOp::create(builder, loc, builder.getI32Type(),
                                      thread);
  }
  Value getLane() {
    return arith::AndIOp::create(builder, loc, getThread(),
                                 constant(kWarpThreads - 1));
  }
  Value getWarp() {
    return arith::ShRUIOp::create(builder, loc, getThread(), constant(5));
  }

  OpBuilder &builder;
  Location loc;
};

struct ConvertLayoutPattern : OpConversionPattern<ConvertLayoutOp> {
  ConvertLayoutPattern(const TypeConverter &converter, MLIRContext *context,
                       const ConversionPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(ConvertLayoutOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    const WarpConversion &plan = plans.find(op)->second;
    TileType from = op.getSource().getType(), to = op.getType();
    int64_t width =
        plan.elementsPerItem *
        static_cast<int64_t>(*getElementBits(from.getElementType()));
    PackedBits source(rewriter, loc,
                      toWords(rewriter, loc, from, adaptor.getSource()));
    if (op.getSource().getDefiningOp<LookupVectorsOp>() &&
        movesHalves(plan, width)) {
      Value words =
          pairHalves(rewriter, loc, plan,
                     toWords(rewriter, loc, from, adaptor.getSource()));
      rewriter.replaceOp(op, fromWords(rewriter, loc, to, words));
      return success();
    }
    LaneValues values(rewriter, loc);
    auto getItem = [&](int item) {
      return source.extract(item * width, width);
    };
    SmallVector<Value> items;
    for (const std::vector<int> &kept : plan.kept)
      items.push_back(values.choose(kept, getItem));
    for (const ShuffleRound &round : plan.rounds) {
      Value came = shuffle(rewriter, loc, values,
                           values.choose(round.offered, getItem), round.lane);
      std::set<int> targets(round.target.begin(), round.target.end());
      targets.erase(kNone);
      for (int target : targets)
        items[target] = items[target] ? values.select(round.target, target,
                                                      came, items[target])
                                      : came;
    }
    PackedBits result(rewriter, loc, to.getBitsPerThread());
    for (auto [i, item] : llvm::enumerate(items))
      result.insert(static_cast<int64_t>(i) * width, width, item);
    rewriter.replaceOp(op, fromWords(rewriter, loc, to, result.getVector()));
    return success();
  }

private:
  /// Whether all threads alike make each word of two halves of their own.
  static bool movesHalves(const WarpConversion &plan, int64_t width) {
    return plan.isWithinThreads() && width == 16 && plan.kept.size() % 2 == 0 &&
           llvm::all_of(plan.kept, [](const std::vector<int> &item) {
             return llvm::all_equal(item);
           });
  }

  /// Those words.
  static Value pairHalves(OpBuilder &builder, Location loc,
                          const WarpConversion &plan, Value source) {
    SmallVector<Value> words;
    for (size_t i = 0; i < plan.kept.size(); i += 2) {
      int64_t low = plan.kept[i].front(), high = plan.kept[i + 1].front();
      Value a = vector::ExtractOp::create(builder, loc, source, low / 2);
      Value b = vector::ExtractOp::create(builder, loc, source, high / 2);
      // Bytes of b are 4 to 7.
      int64_t selector = (low % 2 ? 0x32 : 0x10) | (high % 2 ? 0x7600 : 0x5400);
      words.push_back(simt::PrmtOp::create(builder, loc, builder.getI32Type(),
                                           a, b, selector));
    }
    auto type = VectorType::get({static_cast<int64_t>(words.size())},
                                builder.getI32Type());
    return vector::FromElementsOp::create(builder, loc, type, words);
  }

  static Value shuffle(OpBuilder &builder, Location loc, LaneValues &values,
                       Value offered, ArrayRef<int> lanes) {
    std::set<int> distances;
    for (auto [thread, lane] : llvm::enumerate(lanes))
      if (lane != kNone)
        distances.insert(static_cast<int>(thread % kWarpThreads) ^ lane);
    bool isOne = distances.size() == 1;
    return gpu::ShuffleOp::create(builder, loc, offered,
                                  isOne ? values.constant(*distances.begin())
                                        : values.number(lanes),
                                  values.constant(kWarpThreads),
                                  isOne ? gpu::ShuffleMode::XOR
                                        : gpu::ShuffleMode::IDX)
        .getShuffleResult();
  }

  const ConversionPlans &plans;
};

} // namespace

void lowlp::populateConvertLayoutPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns,
                                          const ConversionPlans &plans) {
  patterns.add<ConvertLayoutPattern>(converter, patterns.getContext(), plans);
}
