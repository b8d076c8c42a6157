//===- Atomics.cpp - atomics of tiles -------------------------------------===//
//
// Each element that lies inside is one simt.atomic_rmw of the first thread that
// holds it. Two f16 or bf16 that are neighbours in registers and memory, at a
// multiple of 4 bytes, are one of a pair.
//
//===----------------------------------------------------------------------===//
#include "Order.h"
#include "SharedMemory.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

void lowlp::planAtomicWidths(Operation *root, AccessWidths &widths) {
  root->walk([&](AtomicRMWOp op) {
    TileType tile = op.getTile().getType();
    const Layout &layout = tile.getLayout();
    widths[op] = 1;
    if (*getElementBits(tile.getElementType()) != 16)
      return;
    auto shared = dyn_cast<SharedType>(op.getDestination().getType());
    int64_t width =
        shared ? findSharedWidth(shared, op.getOffsets(), tile)
               : findGlobalWidth(op.getDestination(), op.getOffsets(), layout,
                                 layout.contiguousLocals(layout.rank() - 1),
                                 /*isInBounds=*/false);
    widths[op] = width % 2 == 0 ? 2 : 1;
  });
}

static simt::AtomicKind getKind(AtomicKind kind, Type element) {
  bool isSigned = element.isSignedInteger();
  switch (kind) {
  case AtomicKind::Add:
    return simt::AtomicKind::Add;
  case AtomicKind::Min:
    return isSigned ? simt::AtomicKind::MinS : simt::AtomicKind::MinU;
  case AtomicKind::Max:
    return isSigned ? simt::AtomicKind::MaxS : simt::AtomicKind::MaxU;
  case AtomicKind::And:
    return simt::AtomicKind::And;
  case AtomicKind::Or:
    return simt::AtomicKind::Or;
  case AtomicKind::Xor:
    return simt::AtomicKind::Xor;
  case AtomicKind::Exchange:
    return simt::AtomicKind::Exchange;
  }
  llvm_unreachable("unknown kind of atomic");
}

namespace {

struct AtomicRMWPattern : OpConversionPattern<AtomicRMWOp> {
  AtomicRMWPattern(const TypeConverter &converter, MLIRContext *context,
                   const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(AtomicRMWOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const Layout &layout = op.getTile().getType().getLayout();
    Location loc = getNamedLoc(op);
    SmallVector<Value> olds;
    if (auto shared = dyn_cast<SharedType>(op.getDestination().getType())) {
      SharedPositions positions(rewriter, loc, shared.getLayout(),
                                adaptor.getOffsets(), layout);
      olds = emitAll(op, adaptor, positions, rewriter);
    } else {
      GlobalPositions positions(
          rewriter, loc, op.getDestination().getDefiningOp<ViewGlobalOp>(),
          adaptor.getOffsets(), layout);
      olds = emitAll(op, adaptor, positions, rewriter);
    }
    if (op.getOld())
      rewriter.replaceOp(
          op, vector::FromElementsOp::create(
                  rewriter, loc, getRegisterType(op.getTile().getType()), olds)
                  .getResult());
    else
      rewriter.eraseOp(op);
    return success();
  }

private:
  /// Changes all elements of the thread; what was there before, if the op asks.
  SmallVector<Value> emitAll(AtomicRMWOp op, OpAdaptor adaptor,
                             TilePositions &positions,
                             ConversionPatternRewriter &rewriter) const {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    int64_t width = widths.lookup(op);
    Value bytes = arith::ConstantIntOp::create(
        rewriter, loc, *getElementBits(tile.getElementType()) / 8, 64);
    SmallVector<Value> olds;
    for (int64_t i = 0; i < tile.getNumLocals(); i += width) {
      Value value = getGroup(rewriter, loc, adaptor.getTile(), i, width);
      Value byteOffset = arith::MulIOp::create(
          rewriter, loc, positions.getElementPosition(i), bytes);
      Value condition = positions.isInside(i);
      if (Value first = positions.isFirstOwner())
        condition = arith::AndIOp::create(rewriter, loc, condition, first);
      auto change = [&]() -> Value {
        return simt::AtomicRMWOp::create(
            rewriter, loc, getKind(op.getKind(), tile.getElementType()), value,
            adaptor.getDestination(), byteOffset);
      };
      if (!op.getOld()) {
        emitIf(rewriter, loc, condition, change);
        continue;
      }
      Value old =
          emitIfElseZero(rewriter, loc, condition, change, value.getType());
      for (int64_t j = 0; j < width; ++j)
        olds.push_back(width == 1
                           ? old
                           : vector::ExtractOp::create(rewriter, loc, old, j));
    }
    return olds;
  }

  static Value getGroup(OpBuilder &builder, Location loc, Value registers,
                        int64_t i, int64_t width) {
    SmallVector<Value> elements;
    for (int64_t j = 0; j < width; ++j)
      elements.push_back(
          vector::ExtractOp::create(builder, loc, registers, i + j));
    if (width == 1)
      return elements[0];
    return vector::FromElementsOp::create(
        builder, loc, VectorType::get({width}, elements[0].getType()),
        elements);
  }

  static void emitIf(OpBuilder &builder, Location loc, Value condition,
                     llvm::function_ref<Value()> change) {
    auto branch = scf::IfOp::create(builder, loc, condition,
                                    /*withElse=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    change();
  }

  static Value emitIfElseZero(OpBuilder &builder, Location loc, Value condition,
                              llvm::function_ref<Value()> change, Type type) {
    auto branch = scf::IfOp::create(builder, loc, type, condition,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, change());
    builder.setInsertionPointToStart(branch.elseBlock());
    Value zero =
        arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
    scf::YieldOp::create(builder, loc, zero);
    return branch.getResult(0);
  }

  const AccessWidths &widths;
};

} // namespace

void lowlp::populateAtomicPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns,
                                   const AccessWidths &widths) {
  patterns.add<AtomicRMWPattern>(converter, patterns.getContext(), widths);
}
