//===- UncodedProducts.cpp - why packed weights have no form --------------===//
#include "UncodedProducts.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowlp;

/// Whether a tile is computed from packed codes. What is looked up is not: the
/// numbers come from a table.
static bool isMadeOfCodes(Value tile) {
  SmallVector<Value> pending = {tile};
  SmallPtrSet<Operation *, 16> seen;
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (isa_and_nonnull<UnpackOp>(op))
      return true;
    bool isFollowed = op && op->getNumRegions() == 0 &&
                      !isa<LookupOp, LookupPairsOp, DotOp>(op) &&
                      isMemoryEffectFree(op) && seen.insert(op).second;
    if (isFollowed)
      for (OpOperand *operand : getTileOperands(op))
        pending.push_back(operand->get());
  }
  return false;
}

static std::string printName(Operation *op) {
  return op->getName().getStringRef().str();
}

/// For `weights * factor`, the last op of which is `product`.
static std::string explainFactor(MulOp product) {
  bool isLeft = isMadeOfCodes(product.getLhs());
  Value weights = isLeft ? product.getLhs() : product.getRhs();
  Value factor = isLeft ? product.getRhs() : product.getLhs();
  Operation *op = weights.getDefiningOp();
  if (isa<MulOp>(op))
    return "weights are multiplied more than once; multiply the factors with "
           "each other first";
  if (isMadeOfCodes(factor))
    return "weights are multiplied with each other";
  if (getSplat(factor))
    return "weights are multiplied by one number for all of the tile; multiply "
           "the accumulators";
  if (!getRepeatedColumn(factor))
    return "weights are multiplied by a tile that is not a column [rows, 1], "
           "repeated along the rows";
  if (auto difference = dyn_cast<SubOp>(op)) {
    if (!getRepeatedColumn(difference.getRhs()))
      return "zero points are not a column [rows, 1], repeated along the rows";
    op = difference.getLhs().getDefiningOp();
  }
  return "weights go through " + printName(op) +
         " before they are scaled, and not through one cast of the codes";
}

std::string lowlp::explainUncoded(Product product) {
  Value weights = product.getA().get();
  if (!isMadeOfCodes(weights))
    return "";
  Operation *op = weights.getDefiningOp();
  if (auto scaled = dyn_cast<MulOp>(op))
    return explainFactor(scaled);
  auto rounds = dyn_cast<CastOp>(op);
  Operation *wide = rounds ? rounds.getSource().getDefiningOp() : nullptr;
  if (isa_and_nonnull<AddOp, FmaOp, MulOp, SubOp>(wide)) {
    auto type = rounds.getSource().getType();
    std::string text;
    llvm::raw_string_ostream(text)
        << "weights are scaled in " << type.getElementType()
        << " and rounded after; scale them in "
        << product.getTypeOfA().getElementType() << ", or the accumulators";
    return text;
  }
  Operation *last = wide ? wide : op;
  return "weights go through " + printName(last) +
         " and not through one cast of the codes";
}
