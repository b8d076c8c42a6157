//===- CarriedOperand.cpp - an operand made one iteration ahead -----------===//
//
//   for place, parity:                wait full[first place]
//     wait full[place]                a = decode(place)
//     a = decode(place)               for place, parity, a:
//     multiply a                        multiply a
//     ...                     ->        ...
//     multiply z                        multiply z
//                                       wait full[next place]
//                                       next = decode(next place)
//
// Behind the last iteration there is no next place. It makes its own operand
// once more, as its place is full and still its own.
//
//===----------------------------------------------------------------------===//
#include "CarriedOperand.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowlp;

namespace {
class OperandCarrier {
public:
  OperandCarrier(scf::ForOp loop, DotOp first, DotOp last)
      : loop(loop), first(first), last(last), loc(first.getLoc()) {}

  bool run() {
    TileType type = first.getA().getType();
    Type element = type.getElementType();
    if (!(element.isF16() || element.isBF16()) || !findWait() ||
        !collect(first.getA(), makers) || !hasLoads())
      return false;
    nextPlace = getYielded(wait.getIndex());
    nextParity = getYielded(wait.getParity());
    if (!collect(nextPlace, steppers) || !collect(nextParity, steppers))
      return false;
    Value initial = makeBefore(type);
    Value next = makeNext();
    IRRewriter rewriter(loop.getContext());
    rewriter.setInsertionPoint(loop);
    auto wider = *loop.replaceWithAdditionalYields(
        rewriter, initial, /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
          return SmallVector<Value>{next};
        });
    loop = cast<scf::ForOp>(wider.getOperation());
    first.getAMutable().assign(loop.getRegionIterArgs().back());
    wait.erase();
    return true;
  }

private:
  /// The wait for the place that an iteration reads.
  bool findWait() {
    for (Operation &op : *loop.getBody())
      if (auto found = dyn_cast<MbarrierWaitOp>(op)) {
        if (wait)
          return false;
        wait = found;
      }
    return wait && wait->isBeforeInBlock(first) &&
           loop.isDefinedOutsideOfLoop(wait.getBarriers()) &&
           isCarried(wait.getIndex()) && isCarried(wait.getParity());
  }

  bool isCarried(Value value) {
    return llvm::is_contained(loop.getRegionIterArgs(), value);
  }

  /// Its place among what the loop carries.
  unsigned getNumber(Value carried) {
    return cast<BlockArgument>(carried).getArgNumber() -
           loop.getNumInductionVars();
  }
  Value getYielded(Value carried) {
    return loop.getYieldedValues()[getNumber(carried)];
  }
  Value getInitial(Value carried) {
    return loop.getInitArgs()[getNumber(carried)];
  }

  /// Adds to `ops`, in order, what makes `value` in the body of the place, of
  /// its parity and of what is known before the loop.
  bool collect(Value value, SetVector<Operation *> &ops) {
    if (value == wait.getIndex() || value == wait.getParity() ||
        loop.isDefinedOutsideOfLoop(value))
      return true;
    Operation *op = value.getDefiningOp();
    bool isLoad = isa_and_nonnull<LoadSharedOp>(op);
    if (!op || op->getParentOp() != loop || op->getNumRegions() != 0 ||
        !(isMemoryEffectFree(op) || isLoad) ||
        (isLoad && op->isBeforeInBlock(wait)))
      return false;
    for (Value operand : op->getOperands())
      if (!collect(operand, ops))
        return false;
    ops.insert(op);
    return true;
  }

  bool hasLoads() const {
    return llvm::any_of(makers,
                        [](Operation *op) { return isa<LoadSharedOp>(op); });
  }

  static Value clone(OpBuilder &builder, const SetVector<Operation *> &ops,
                     Value value, IRMapping &mapping) {
    for (Operation *op : ops)
      if (!mapping.contains(op->getResult(0)))
        builder.clone(*op, mapping);
    return mapping.lookupOrDefault(value);
  }

  /// The operand that is made of a place: `early` waits and loads, `late` does
  /// the rest.
  Value make(OpBuilder &early, OpBuilder &late, Value place, Value parity) {
    MbarrierWaitOp::create(early, loc, wait.getBarriers(), place, parity);
    IRMapping mapping;
    mapping.map(wait.getIndex(), place);
    mapping.map(wait.getParity(), parity);
    DenseSet<Operation *> behindLoads;
    for (Operation *op : makers) {
      bool isBehind = llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *maker = operand.getDefiningOp();
        return isa_and_nonnull<LoadSharedOp>(maker) ||
               behindLoads.contains(maker);
      });
      if (isBehind)
        behindLoads.insert(op);
      (isBehind ? late : early).clone(*op, mapping);
    }
    return mapping.lookupOrDefault(first.getA());
  }

  /// The operand of the first iteration; zeros if there is none, as nobody
  /// would fill a place.
  Value makeBefore(TileType type) {
    OpBuilder builder(loop);
    Value exists =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                              loop.getLowerBound(), loop.getUpperBound());
    auto choice = scf::IfOp::create(builder, loc, TypeRange(Type(type)), exists,
                                    /*withElseRegion=*/true);
    builder.setInsertionPointToStart(choice.thenBlock());
    Value made = make(builder, builder, getInitial(wait.getIndex()),
                      getInitial(wait.getParity()));
    scf::YieldOp::create(builder, loc, made);
    builder.setInsertionPointToStart(choice.elseBlock());
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getFloatAttr(type.getElementType(), 0));
    Value zeros = SplatOp::create(builder, loc, type, zero);
    scf::YieldOp::create(builder, loc, zeros);
    return choice.getResult(0);
  }

  /// Loads go before the last product, so that what is made of them need not
  /// wait for them behind it.
  Value makeNext() {
    OpBuilder builder(last), late(loop.getContext());
    late.setInsertionPointAfter(last);
    IRMapping mapping;
    Value place = clone(builder, steppers, nextPlace, mapping);
    Value parity = clone(builder, steppers, nextParity, mapping);
    Value number = arith::AddIOp::create(builder, loc, loop.getInductionVar(),
                                         loop.getStep());
    Value follows = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::slt, number, loop.getUpperBound());
    auto choose = [&](Value next, Value own) -> Value {
      return arith::SelectOp::create(builder, loc, follows, next, own);
    };
    place = choose(place, wait.getIndex());
    parity = choose(parity, wait.getParity());
    Value next = make(builder, late, place, parity);
    return HoldOp::create(late, loc, next.getType(), next);
  }

  scf::ForOp loop;
  DotOp first, last;
  Location loc;
  MbarrierWaitOp wait;
  Value nextPlace, nextParity;
  /// What makes the operand, and the next place and parity.
  SetVector<Operation *> makers, steppers;
};
} // namespace

bool lowlp::carryFirstOperand(scf::ForOp loop, DotOp first, DotOp last) {
  return OperandCarrier(loop, first, last).run();
}
