//===- RowSteps.cpp - what is done to codes row by row --------------------===//
#include "RowSteps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowlp;

bool lowlp::isCastOfCodes(Value tile) {
  auto cast = tile.getDefiningOp<CastOp>();
  return cast && cast.getSource().getDefiningOp<UnpackOp>();
}

/// The codes that a tile is as they are: cast, perhaps times a power of two, or
/// looked up in a table; null for anything else.
static UnpackOp getBaseCodes(Value tile) {
  if (auto lookup = tile.getDefiningOp<LookupOp>())
    return lookup.getSlices().size() == 1
               ? lookup.getSlices().front().getDefiningOp<UnpackOp>()
               : UnpackOp();
  CodedWeights weights = getWeights(tile);
  return weights.scales ? UnpackOp() : weights.codes;
}

/// Takes casts that hold every number off a column of f16 and the like.
static Value stripWidening(Value column) {
  auto cast = column.getDefiningOp<CastOp>();
  if (!cast)
    return column;
  Type narrow = cast.getSource().getType().getElementType();
  int64_t bits = *getElementBits(narrow);
  bool isHeld = bits < *getElementBits(cast.getType().getElementType()) &&
                (isa<FloatType>(narrow) || bits <= 8);
  return isHeld ? cast.getSource() : column;
}

/// The numbers of a step, if each row of `tile` has one.
static std::optional<RowStep> getNumbers(RowStep::Kind kind, Value tile) {
  if (Value column = getRepeatedColumn(tile))
    return RowStep{kind, stripWidening(column), {}};
  if (auto splat = tile.getDefiningOp<SplatOp>())
    return RowStep{kind, {}, splat.getValue()};
  return std::nullopt;
}

/// The step that `op` is, and the tile to which it is done.
static std::optional<std::pair<RowStep, Value>> getStep(Operation *op) {
  auto as = [&](RowStep::Kind kind, Value weights,
                Value numbers) -> std::optional<std::pair<RowStep, Value>> {
    if (std::optional<RowStep> step = getNumbers(kind, numbers))
      return std::pair(*step, weights);
    return std::nullopt;
  };
  auto commuted = [&](RowStep::Kind kind, Value lhs, Value rhs) {
    auto found = as(kind, lhs, rhs);
    return found ? found : as(kind, rhs, lhs);
  };
  if (auto product = dyn_cast<MulOp>(op))
    return commuted(RowStep::Multiply, product.getLhs(), product.getRhs());
  if (auto sum = dyn_cast<AddOp>(op))
    return commuted(RowStep::Add, sum.getLhs(), sum.getRhs());
  if (auto difference = dyn_cast<SubOp>(op))
    return as(RowStep::Subtract, difference.getLhs(), difference.getRhs());
  return std::nullopt;
}

/// The codes that a tile is made of by arithmetic, if it is.
static UnpackOp findCodes(Value tile) {
  Operation *op = tile.getDefiningOp();
  if (auto codes = dyn_cast_or_null<UnpackOp>(op))
    return codes;
  if (!op || op->getNumRegions() != 0 || !isMemoryEffectFree(op))
    return {};
  for (OpOperand *operand : getTileOperands(op))
    if (UnpackOp codes = findCodes(operand->get()))
      return codes;
  return {};
}

ScaledWeights lowlp::getScaledWeights(Value operand) {
  ScaledWeights found;
  Value at = operand;
  while (!(found.codes = getBaseCodes(at))) {
    Operation *op = at.getDefiningOp();
    auto cast = dyn_cast_or_null<CastOp>(op);
    if (cast && isa<FloatType>(cast.getType().getElementType()) &&
        isa<FloatType>(cast.getSource().getType().getElementType())) {
      at = cast.getSource();
      continue;
    }
    auto step = op ? getStep(op) : std::nullopt;
    if (!step) {
      found.codes = findCodes(at);
      found.obstacle =
          op ? "weights are made by " + op->getName().getStringRef().str() +
                   ", which is no product or sum with one number for each row"
             : "weights come from outside of the block";
      return found;
    }
    found.steps.push_back(step->first);
    at = step->second;
  }
  found.base = at;
  std::reverse(found.steps.begin(), found.steps.end());
  return found;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// Whether two values are the same: one value, or made alike of the same ones
/// by ops that move and cast tiles.
static bool areSame(Value first, Value second) {
  if (first == second)
    return true;
  if (!first || !second || first.getType() != second.getType())
    return false;
  Operation *a = first.getDefiningOp(), *b = second.getDefiningOp();
  bool isPure = a && b && isMemoryEffectFree(a) && a->getNumRegions() == 0 &&
                a->getNumResults() == 1;
  return isPure && a->getName() == b->getName() &&
         a->getAttrDictionary() == b->getAttrDictionary() &&
         llvm::equal(a->getOperands(), b->getOperands(), areSame);
}

bool lowlp::haveSameSteps(const ScaledWeights &first,
                          const ScaledWeights &second) {
  return first.obstacle.empty() && second.obstacle.empty() &&
         llvm::equal(first.steps, second.steps,
                     [](const RowStep &a, const RowStep &b) {
                       return a.kind == b.kind && areSame(a.column, b.column) &&
                              areSame(a.scalar, b.scalar);
                     });
}
