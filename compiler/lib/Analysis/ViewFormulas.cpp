//===- ViewFormulas.cpp - views as functions of parameters ----------------===//
#include "lowlp/Analysis/ViewFormulas.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lowlp;

/// `value` as a function of the integer parameters of `kernel`, or null.
static AffineExpr getFormula(OpFoldResult value, KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return getAffineConstantExpr(*constant, context);
  Value ssa = cast<Value>(value);
  if (auto argument = dyn_cast<BlockArgument>(ssa)) {
    if (argument.getOwner()->getParentOp() != kernel)
      return {};
    ArrayRef<Type> types = kernel.getArgumentTypes();
    unsigned dim =
        llvm::count_if(types.take_front(argument.getArgNumber()),
                       [](Type type) { return isa<IntegerType>(type); });
    return getAffineDimExpr(dim, context);
  }
  Operation *op = ssa.getDefiningOp();
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op))
    return getFormula(op->getOperand(0), kernel);
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return {};
  AffineExpr lhs = getFormula(op->getOperand(0), kernel);
  AffineExpr rhs = getFormula(op->getOperand(1), kernel);
  if (!lhs || !rhs)
    return {};
  if (isa<arith::AddIOp>(op))
    return lhs + rhs;
  if (isa<arith::SubIOp>(op))
    return lhs - rhs;
  bool isAffine = lhs.isSymbolicOrConstant() || rhs.isSymbolicOrConstant();
  return isAffine ? lhs * rhs : AffineExpr();
}

/// `lhs * rhs`, or null if that is not affine.
static AffineExpr multiply(AffineExpr lhs, AffineExpr rhs) {
  bool isAffine =
      lhs && rhs && (lhs.isSymbolicOrConstant() || rhs.isSymbolicOrConstant());
  return isAffine ? lhs * rhs : AffineExpr();
}

ViewFormulas lowlp::getViewFormulas(ViewGlobalOp view, KernelOp kernel) {
  ViewFormulas formulas;
  for (OpFoldResult extent : view.getMixedShape())
    formulas.extents.push_back(getFormula(extent, kernel));
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  formulas.strides.resize(strides.size());
  AffineExpr running = getAffineConstantExpr(1, view.getContext());
  for (size_t d = strides.size(); d-- > 0;) {
    formulas.strides[d] = strides[d] ? getFormula(strides[d], kernel) : running;
    running = multiply(running, formulas.extents[d]);
  }
  return formulas;
}
