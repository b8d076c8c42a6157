//===- Compare.cpp - comparisons and choices, element by element ----------===//
//
// A condition is one bit an element, packed like all codes:
//
//   vector<4xf32> < vector<4xf32>  ->  vector<4xi1>  ->  bits 0 to 3 of a word
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

static arith::CmpFPredicate getPredicate(ComparePredicate predicate) {
  switch (predicate) {
  case ComparePredicate::EQ:
    return arith::CmpFPredicate::OEQ;
  case ComparePredicate::NE:
    return arith::CmpFPredicate::UNE;
  case ComparePredicate::LT:
    return arith::CmpFPredicate::OLT;
  case ComparePredicate::LE:
    return arith::CmpFPredicate::OLE;
  case ComparePredicate::GT:
    return arith::CmpFPredicate::OGT;
  case ComparePredicate::GE:
    return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("unknown predicate");
}

static arith::CmpIPredicate getPredicate(ComparePredicate predicate,
                                         bool isSigned) {
  switch (predicate) {
  case ComparePredicate::EQ:
    return arith::CmpIPredicate::eq;
  case ComparePredicate::NE:
    return arith::CmpIPredicate::ne;
  case ComparePredicate::LT:
    return isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult;
  case ComparePredicate::LE:
    return isSigned ? arith::CmpIPredicate::sle : arith::CmpIPredicate::ule;
  case ComparePredicate::GT:
    return isSigned ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::ugt;
  case ComparePredicate::GE:
    return isSigned ? arith::CmpIPredicate::sge : arith::CmpIPredicate::uge;
  }
  llvm_unreachable("unknown predicate");
}

/// One bit an element, as a vector.
static Value compare(OpBuilder &builder, Location loc, CompareOp op, Value lhs,
                     Value rhs) {
  Type element = op.getLhs().getType().getElementType();
  if (isWideInteger(element))
    return arith::CmpIOp::create(
        builder, loc,
        getPredicate(op.getPredicate(), element.isSignedInteger()), lhs, rhs);
  return arith::CmpFOp::create(builder, loc, getPredicate(op.getPredicate()),
                               lhs, rhs);
}

namespace {

struct ComparePattern : OpConversionPattern<CompareOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(CompareOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Value holds =
        compare(rewriter, loc, op, adaptor.getLhs(), adaptor.getRhs());
    PackedBits bits(rewriter, loc, op.getType().getBitsPerThread());
    for (int64_t i = 0; i < op.getType().getNumLocals(); ++i) {
      Value bit = vector::ExtractOp::create(rewriter, loc, holds, i);
      bits.insert(
          i, 1,
          arith::ExtUIOp::create(rewriter, loc, rewriter.getI32Type(), bit));
    }
    rewriter.replaceOp(op, bits.getVector());
    return success();
  }
};

struct SelectPattern : OpConversionPattern<SelectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SelectOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getType();
    PackedBits condition(rewriter, loc, adaptor.getCondition());
    auto choose = [&](int64_t i, Value yes, Value no) -> Value {
      Value bit = arith::TruncIOp::create(rewriter, loc, rewriter.getI1Type(),
                                          condition.extract(i, 1));
      return arith::SelectOp::create(rewriter, loc, bit, yes, no);
    };
    if (isPacked(tile.getElementType())) {
      PackedBits yes(rewriter, loc, adaptor.getOnTrue());
      PackedBits no(rewriter, loc, adaptor.getOnFalse());
      PackedBits chosen(rewriter, loc, tile.getBitsPerThread());
      auto width = static_cast<int64_t>(*getElementBits(tile.getElementType()));
      for (int64_t i = 0; i < tile.getNumLocals(); ++i)
        chosen.insert(i * width, width,
                      choose(i, yes.extract(i * width, width),
                             no.extract(i * width, width)));
      rewriter.replaceOp(op, chosen.getVector());
      return success();
    }
    SmallVector<Value> chosen;
    for (int64_t i = 0; i < tile.getNumLocals(); ++i)
      chosen.push_back(choose(
          i, vector::ExtractOp::create(rewriter, loc, adaptor.getOnTrue(), i),
          vector::ExtractOp::create(rewriter, loc, adaptor.getOnFalse(), i)));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, getRegisterType(tile), chosen);
    return success();
  }
};

} // namespace

void lowlp::populateComparePatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<ComparePattern, SelectPattern>(converter, patterns.getContext());
}
