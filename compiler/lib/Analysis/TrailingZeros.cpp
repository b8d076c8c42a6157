//===- TrailingZeros.cpp - powers of two that divide a number -------------===//
#include "lowlp/Analysis/TrailingZeros.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace lowlp;

unsigned TrailingZeros::of(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::min<unsigned>(llvm::countr_zero<uint64_t>(*constant), kEnough);
  Value ssa = cast<Value>(value);
  if (auto found = known.find(ssa); found != known.end())
    return found->second;
  auto argument = dyn_cast<BlockArgument>(ssa);
  unsigned zeros =
      argument ? ofArgument(argument) : ofResult(ssa.getDefiningOp());
  known[ssa] = zeros;
  return zeros;
}

unsigned TrailingZeros::ofArgument(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto kernel = dyn_cast<KernelOp>(parent)) {
    auto divisor = kernel.getArgAttrOfType<IntegerAttr>(
        argument.getArgNumber(), LowlpDialect::kDivisibleByAttrName);
    return divisor ? of(divisor) : 0;
  }
  auto loop = dyn_cast<scf::ForOp>(parent);
  if (loop && argument == loop.getInductionVar())
    return std::min(of(loop.getLowerBound()), of(loop.getStep()));
  return 0;
}

unsigned TrailingZeros::ofResult(Operation *op) {
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
          arith::ExtUIOp>(op))
    return of(op->getOperand(0));
  if (isa<arith::MulIOp>(op))
    return ofProduct(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
          arith::MinUIOp, arith::MaxUIOp>(op))
    return std::min(of(op->getOperand(0)), of(op->getOperand(1)));
  if (isa<arith::SelectOp>(op))
    return std::min(of(op->getOperand(1)), of(op->getOperand(2)));
  if (auto promise = dyn_cast<AssumeDivisibleOp>(op))
    return std::max(of(promise.getValue()), of(promise.getDivisorAttr()));
  return 0;
}

SmallVector<unsigned> TrailingZeros::ofStrides(ViewGlobalOp view) {
  if (!view.isRowMajor())
    return llvm::map_to_vector(view.getMixedStrides(),
                               [&](OpFoldResult stride) { return of(stride); });
  SmallVector<OpFoldResult> shape = view.getMixedShape();
  SmallVector<unsigned> zeros(shape.size());
  for (size_t d = shape.size() - 1; d > 0; --d)
    zeros[d - 1] = ofProduct(zeros[d], of(shape[d]));
  return zeros;
}

int64_t lowlp::getPowerOf2Divisor(OpFoldResult value) {
  TrailingZeros zeros;
  return int64_t(1) << zeros.of(value);
}
