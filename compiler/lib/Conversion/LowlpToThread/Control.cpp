//===- Control.cpp - promises, output, early end --------------------------===//
//
// Text for gpu.printf is C's: `%` is doubled, and each `{}` becomes a
// conversion that fits its value.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "LowlpToThread.h"

#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Simt.h"
#include "lowlp/Target/RegisterShares.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

static std::string escape(StringRef text) {
  std::string escaped;
  for (char c : text)
    escaped += c == '%' ? std::string("%%") : std::string(1, c);
  return escaped;
}

static StringRef getConversion(Type type) {
  if (type.isF32())
    return "%g";
  return type.isInteger(32) ? "%d" : "%lld";
}

static Value isZero(OpBuilder &builder, Location loc, Value index) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, index,
                               zero);
}

/// `condition`, which may be null, in the first block of the grid.
static Value inFirstBlock(OpBuilder &builder, Location loc, Value condition) {
  for (gpu::Dimension dimension :
       {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z}) {
    Value block = gpu::BlockIdOp::create(builder, loc, dimension);
    Value isFirst = isZero(builder, loc, block);
    condition = condition
                    ? arith::AndIOp::create(builder, loc, condition, isFirst)
                          .getResult()
                    : isFirst;
  }
  return condition;
}

namespace {

struct AssumePattern : OpConversionPattern<AssumeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AssumeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::AssertOp::create(rewriter, getNamedLoc(op), adaptor.getCondition(),
                           op.getMessage());
    rewriter.eraseOp(op);
    return success();
  }
};

struct AssumeDivisiblePattern : OpConversionPattern<AssumeDivisibleOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AssumeDivisibleOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    auto number = static_cast<int64_t>(op.getDivisor());
    Value divisor = arith::ConstantIndexOp::create(rewriter, loc, number);
    Value rest =
        arith::RemSIOp::create(rewriter, loc, adaptor.getValue(), divisor);
    simt::AssertOp::create(rewriter, loc, isZero(rewriter, loc, rest),
                           "the number is no multiple of " +
                               std::to_string(number) + ", as was promised");
    rewriter.replaceOp(op, adaptor.getValue());
    return success();
  }
};

struct PrintPattern : OpConversionPattern<PrintOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PrintOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
    Value condition = isZero(rewriter, loc, thread);
    if (!op.getAllBlocks())
      condition = inFirstBlock(rewriter, loc, condition);
    auto branch = scf::IfOp::create(rewriter, loc, condition,
                                    /*withElseRegion=*/false);
    rewriter.setInsertionPointToStart(branch.thenBlock());
    std::string text;
    StringRef rest = op.getFormat();
    SmallVector<Value> values;
    for (Value value : adaptor.getValues()) {
      if (value.getType().isInteger(1))
        value =
            arith::ExtUIOp::create(rewriter, loc, rewriter.getI32Type(), value);
      auto [before, after] = rest.split("{}");
      text += escape(before) + getConversion(value.getType()).str();
      rest = after;
      values.push_back(value);
    }
    gpu::PrintfOp::create(rewriter, loc, text + escape(rest) + "\n", values);
    rewriter.eraseOp(op);
    return success();
  }
};

struct PrintTilePattern : OpConversionPattern<PrintTileOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(PrintTileOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    const Layout &layout = tile.getLayout();
    SmallVector<Value> starts;
    for (int64_t dim = 0; dim < tile.getRank(); ++dim)
      starts.push_back(buildThreadPart(rewriter, loc, layout, dim));
    SmallVector<Value> values =
        getNumbers(rewriter, loc, tile, adaptor.getTile());

    OpBuilder::InsertionGuard guard(rewriter);
    Value condition = buildIsFirstOwner(rewriter, loc, layout);
    if (!op.getAllBlocks())
      condition = inFirstBlock(rewriter, loc, condition);
    if (condition) {
      auto branch = scf::IfOp::create(rewriter, loc, condition,
                                      /*withElseRegion=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    std::string text = escape(op.getLabel()) + "[%d";
    for (int64_t dim = 1; dim < tile.getRank(); ++dim)
      text += ", %d";
    text += "] = ";
    text += tile.getElementType().isUnsignedInteger()
                ? "%u"
                : getConversion(values.front().getType()).str();
    text += "\n";
    for (auto [local, value] : llvm::enumerate(values)) {
      SmallVector<Value> all;
      std::vector<int64_t> parts =
          layout.evaluate(0, static_cast<int64_t>(local));
      for (auto [start, part] : llvm::zip_equal(starts, parts)) {
        Value constant = arith::ConstantOp::create(
            rewriter, loc,
            rewriter.getI32IntegerAttr(static_cast<int32_t>(part)));
        all.push_back(arith::AddIOp::create(rewriter, loc, start, constant));
      }
      all.push_back(value);
      gpu::PrintfOp::create(rewriter, loc, text, all);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// A thread's elements, as i32 or f32.
  static SmallVector<Value> getNumbers(OpBuilder &builder, Location loc,
                                       TileType tile, Value registers) {
    Type element = tile.getElementType();
    if (isa<IntegerType>(element))
      return unpackIntegers(builder, loc, tile, registers);
    std::optional<ScalarFormat> format = getScalarFormat(element);
    if (!format)
      return extractAsF32(builder, loc, registers);
    SmallVector<Value> values;
    PackedBits bits(builder, loc, registers);
    for (int64_t i = 0; i < tile.getNumLocals(); ++i)
      values.push_back(decodeToF32(
          builder, loc, *format, bits.extract(i * format->bits, format->bits)));
    return values;
  }
};

struct FirstThreadPattern : OpConversionPattern<FirstThreadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(FirstThreadOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
    auto branch = scf::IfOp::create(
        rewriter, loc, isZero(rewriter, loc, thread), /*withElseRegion=*/false);
    branch->setAttr(kOneThreadAttrName, rewriter.getUnitAttr());
    rewriter.inlineBlockBefore(&op.getBody().front(),
                               branch.thenBlock()->getTerminator());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Its warp, or warpgroup, lies after all others. It has made the mbarriers
/// itself, so it waits for nobody; the others wait until it leaves.
struct ProducerWarpPattern : OpConversionPattern<ProducerWarpOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ProducerWarpOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    auto function = op->getParentOfType<gpu::GPUFuncOp>();
    int64_t numWorkers = getNumWorkers(function);
    bool givesRegisters =
        function->hasAttr(simt::SimtDialect::kLaunchRegistersAttrName);
    RegisterShares registers = getRegisterShares(numWorkers);
    int64_t numThreads = function.getKnownBlockSize()->front();
    Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
    Value begin = arith::ConstantIndexOp::create(rewriter, loc, numWorkers);
    auto compare = [&](arith::CmpIPredicate predicate) -> Value {
      return arith::CmpIOp::create(rewriter, loc, predicate, thread, begin);
    };
    if (MulticastAttr::of(op))
      simt::ClusterBarrierOp::create(rewriter, loc);
    auto warp =
        scf::IfOp::create(rewriter, loc, compare(arith::CmpIPredicate::uge),
                          /*withElseRegion=*/false);
    simt::BarrierOp::create(rewriter, loc, numThreads);
    if (givesRegisters)
      simt::SetRegistersOp::create(rewriter, loc, registers.worker,
                                   /*takes=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(warp.thenBlock());
    simt::LeaveBarriersOp::create(rewriter, loc, numThreads);
    if (givesRegisters)
      simt::SetRegistersOp::create(rewriter, loc, registers.producer,
                                   /*takes=*/false);
    auto first =
        scf::IfOp::create(rewriter, loc, compare(arith::CmpIPredicate::eq),
                          /*withElseRegion=*/false);
    first->setAttr(kOneThreadAttrName, rewriter.getUnitAttr());
    rewriter.inlineBlockBefore(&op.getBody().front(),
                               first.thenBlock()->getTerminator());
    simt::ExitOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

/// An op without operands of which the thread level has one as well.
template <typename BlockOp, typename ThreadOp>
struct PlainPattern : OpConversionPattern<BlockOp> {
  using OpConversionPattern<BlockOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockOp op, typename BlockOp::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ThreadOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

struct ExitPattern : OpConversionPattern<ExitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    simt::ExitOp::create(rewriter, getNamedLoc(op));
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateControlPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<AssumePattern, AssumeDivisiblePattern, PrintPattern,
               PrintTilePattern, FirstThreadPattern, ProducerWarpPattern,
               ExitPattern,
               PlainPattern<SynchronizeWarpgroupsOp, simt::WarpgroupBarrierOp>,
               PlainPattern<WaitForDependenciesOp, simt::WaitForDependenciesOp>,
               PlainPattern<LaunchDependentsOp, simt::LaunchDependentsOp>>(
      converter, patterns.getContext());
}
