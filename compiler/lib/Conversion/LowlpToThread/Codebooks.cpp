//===- Codebooks.cpp - loading codebooks, and switching -------------------===//
#include "Codebooks.h"

#include "CodebookEntry.h"
#include "CodebookFill.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lowlp;

static constexpr StringLiteral kOutsideOfView =
    "the codebook lies outside of the view";

SmallVector<Type> lowlp::getCodebookParts(CodebookType codebook) {
  MLIRContext *context = codebook.getContext();
  SmallVector<Type> parts;
  if (codebook.hasGlobalEntries())
    parts.push_back(simt::PtrType::get(context, simt::MemorySpace::Global));
  if (codebook.getSharedEntries() != 0)
    parts.push_back(simt::PtrType::get(context, simt::MemorySpace::Shared));
  parts.append(codebook.getNumBooks() * codebook.getRegisterEntries(),
               getEntryType(codebook));
  return parts;
}

EntryPlans lowlp::planEntries(Operation *root) {
  EntryPlans plans;
  auto add = [&](Value source, OperandRange offsets, CodebookType codebook) {
    int64_t bytes = findEntryAlignBytes(source, offsets, codebook);
    bool isInteger = codebook.getElementType().isSignedInteger(8);
    auto [known, isNew] =
        plans.try_emplace(codebook, EntryPlan{bytes, isInteger});
    known->second.alignBytes = std::min(known->second.alignBytes, bytes);
  };
  root->walk([&](LoadCodebookOp op) {
    add(op.getSource(), op.getOffsets(), op.getType());
  });
  root->walk([&](SwitchCodebookOp op) {
    add(op.getSource(), op.getOffsets(), op.getType());
  });
  root->walk([&](LookupVectorsOp op) {
    EntryPlan &plan = plans[op.getCodebook().getType()];
    plan.isRaised &= llvm::all_of(op->getUsers(), [](Operation *user) {
      auto cast = dyn_cast<CastOp>(user);
      if (!cast)
        return false;
      Type to = cast.getType().getElementType();
      return to.isF16() || to.isSignedInteger(16);
    });
  });
  return plans;
}

/// The address of the codebook, from where its entries lie side by side.
static Value getSource(ConversionPatternRewriter &rewriter, Location loc,
                       Value source, Value view, ValueRange offsets) {
  auto type = cast<GlobalType>(view.getType());
  SmallVector<Value> all(offsets);
  while (static_cast<int64_t>(all.size()) < type.getRank())
    all.push_back(arith::ConstantIndexOp::create(rewriter, loc, 0));
  Layout one = Layout::local(std::vector<int64_t>(type.getRank(), 1));
  GlobalPositions positions(rewriter, loc, view.getDefiningOp<ViewGlobalOp>(),
                            all, one);
  simt::AssertOp::create(rewriter, loc, positions.isInside(0), kOutsideOfView);
  Value bytes = arith::MulIOp::create(
      rewriter, loc, positions.getElementPosition(0),
      arith::ConstantIntOp::create(
          rewriter, loc, *getElementBits(type.getElementType()) / 8, 64));
  return simt::OffsetOp::create(rewriter, loc, source.getType(), source, bytes);
}

/// Whether a loop comes back to the op.
static bool isInLoop(Operation *op) {
  return op->getParentOfType<scf::ForOp>() ||
         op->getParentOfType<scf::WhileOp>();
}

/// The parts of a codebook at `source`, whose shared part, if there is one, is
/// filled.
static SmallVector<Value> takeIn(ConversionPatternRewriter &rewriter,
                                 Location loc, CodebookType codebook,
                                 Value source, EntryPlan plan, Value shared) {
  SmallVector<Value> parts;
  if (codebook.hasGlobalEntries())
    parts.push_back(source);
  if (shared)
    parts.push_back(shared);
  for (int64_t book = 0; book < codebook.getNumBooks(); ++book)
    for (int64_t e = 0; e < codebook.getRegisterEntries(); ++e) {
      int64_t number = book * codebook.getNumEntries() + e;
      Value offset = arith::ConstantIntOp::create(
          rewriter, loc, number * codebook.getEntryBytes(), 64);
      Value entry =
          loadEntry(rewriter, loc, codebook, source, offset, plan.alignBytes);
      parts.push_back(plan.isRaised ? raiseEntry(rewriter, loc, entry) : entry);
    }
  return parts;
}

namespace {

struct LoadCodebookPattern : OpConversionPattern<LoadCodebookOp> {
  LoadCodebookPattern(const TypeConverter &converter, MLIRContext *context,
                      const EntryPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(LoadCodebookOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    Value source = getSource(rewriter, loc, adaptor.getSource(), op.getSource(),
                             adaptor.getOffsets());
    CodebookType codebook = op.getType();
    EntryPlan plan = plans.lookup(codebook);
    if (Value shared = adaptor.getTile()) {
      fillCodebook(
          rewriter, loc,
          {codebook, plan, shared, op.isInLines(), op.getAsynchronous()},
          source, getNumWorkers(op->getParentOfType<gpu::GPUFuncOp>()),
          isInLoop(op));
      if (op.getAsynchronous())
        simt::CopyAsyncCommitOp::create(rewriter, loc);
      else
        emitBarrier(rewriter, loc);
    }
    rewriter.replaceOpWithMultiple(
        op, {takeIn(rewriter, loc, codebook, source, plan, adaptor.getTile())});
    return success();
  }

  const EntryPlans &plans;
};

struct SwitchCodebookPattern : OpConversionPattern<SwitchCodebookOp> {
  SwitchCodebookPattern(const TypeConverter &converter, MLIRContext *context,
                        const EntryPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(SwitchCodebookOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SmallVector<Value> offsets;
    for (ValueRange offset : adaptor.getOffsets())
      offsets.push_back(offset.front());
    Value source = getSource(rewriter, loc, adaptor.getSource().front(),
                             op.getSource(), offsets);
    CodebookType codebook = op.getType();
    EntryPlan plan = plans.lookup(codebook);
    Value shared;
    if (codebook.getSharedEntries() != 0) {
      shared = adaptor.getCodebook()[codebook.hasGlobalEntries() ? 1 : 0];
      CodebookFill fill{codebook, plan, shared};
      if (op.getEntries())
        fillCodebook(rewriter, loc, fill, op.getEntries().getType(),
                     adaptor.getEntries().front());
      else
        fillCodebook(rewriter, loc, fill, source,
                     getNumWorkers(op->getParentOfType<gpu::GPUFuncOp>()),
                     /*isAgain=*/true);
      emitBarrier(rewriter, loc);
    }
    rewriter.replaceOpWithMultiple(
        op, {takeIn(rewriter, loc, codebook, source, plan, shared)});
    return success();
  }

  const EntryPlans &plans;
};

} // namespace

void lowlp::populateCodebookPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns,
                                     const EntryPlans &plans) {
  patterns.add<LoadCodebookPattern, SwitchCodebookPattern>(
      converter, patterns.getContext(), plans);
  populateVectorLookupPattern(converter, patterns, plans);
  populateEntryCastPattern(converter, patterns, plans);
}
