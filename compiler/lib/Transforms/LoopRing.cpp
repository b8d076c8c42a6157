//===- LoopRing.cpp - the places of a loop, and copies into them ----------===//
#include "LoopRing.h"

#include "lowlp/IR/LowlpRings.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace lowlp;

scf::ForOp lowlp::getLoopAround(scf::ForOp loop) {
  return dyn_cast<scf::ForOp>(loop->getParentOp());
}

scf::ForOp lowlp::getOutermost(scf::ForOp loop) {
  scf::ForOp around = getLoopAround(loop);
  return around ? around : loop;
}

bool lowlp::onlyReads(Operation *op) {
  if (isMemoryEffectFree(op))
    return true;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  return effects && effects.onlyHasEffect<MemoryEffects::Read>();
}

bool lowlp::hasPlaceForRings(scf::ForOp loop) {
  return isa<KernelOp>(getOutermost(loop)->getParentOp());
}

Value LoopRing::buildIndex(OpBuilder &builder, int64_t value) const {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

Value LoopRing::getIteration(OpBuilder &builder, Value from,
                             Value steps) const {
  scf::ForOp op = loop;
  Value distance = arith::MulIOp::create(builder, loc, steps,
                                         before.lookupOrDefault(op.getStep()));
  return arith::AddIOp::create(builder, loc, from, distance);
}

Value LoopRing::isInLoop(OpBuilder &builder, Value number) const {
  scf::ForOp op = loop;
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, number,
                               before.lookupOrDefault(op.getUpperBound()));
}

Value LoopRing::countFirst(OpBuilder &builder) const {
  scf::ForOp op = loop;
  Value distance = arith::SubIOp::create(
      builder, loc, before.lookupOrDefault(op.getUpperBound()),
      before.lookupOrDefault(op.getLowerBound()));
  distance =
      arith::MaxSIOp::create(builder, loc, distance, buildIndex(builder, 0));
  Value count = arith::CeilDivUIOp::create(
      builder, loc, distance, before.lookupOrDefault(op.getStep()));
  return arith::MinUIOp::create(builder, loc, count,
                                buildIndex(builder, numStages));
}

RingPlace LoopRing::getNext(OpBuilder &builder, RingPlace place) const {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(
        builder, loc, builder.getIntegerAttr(place.place.getType(), value));
  };
  Value one = constant(1);
  Value next = arith::AddIOp::create(builder, loc, place.place, one);
  Value wraps = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                      next, constant(numStages));
  Value other = arith::XOrIOp::create(builder, loc, place.parity, one);
  return {arith::SelectOp::create(builder, loc, wraps, constant(0), next),
          arith::SelectOp::create(builder, loc, wraps, other, place.parity)};
}

void LoopRing::forFirst(OpBuilder &builder, Value begin, int64_t count,
                        function_ref<void(Value, Value)> body) const {
  OpBuilder::InsertionGuard guard(builder);
  Value zero = buildIndex(builder, 0), one = buildIndex(builder, 1);
  auto first =
      scf::ForOp::create(builder, loc, zero, buildIndex(builder, count), one);
  builder.setInsertionPointToStart(first.getBody());
  Value place = first.getInductionVar();
  Value number = getIteration(builder, begin, place);
  auto exists = scf::IfOp::create(builder, loc, isInLoop(builder, number),
                                  /*withElseRegion=*/false);
  builder.setInsertionPointToStart(exists.thenBlock());
  body(number, place);
  if (loads.byTensorCopies)
    return;
  // Each iteration waits for a group, so each fills one.
  builder.setInsertionPointAfter(exists);
  CopyAsyncCommitOp::create(builder, loc);
}

void LoopRing::copyAll(OpBuilder &builder, Value number, Value place,
                       IsMeant isMeant) const {
  IRMapping mapping = mapAddresses(builder, number, isMeant);
  for (const StagedLoad &load : loads.staged)
    if (isMeant(load))
      copy(builder, load, place, mapping);
}

IRMapping LoopRing::mapAddresses(OpBuilder &builder, Value number,
                                 IsMeant isMeant) const {
  scf::ForOp op = loop;
  IRMapping mapping = before;
  mapping.map(op.getInductionVar(), number);
  for (const StagedLoad &load : loads.staged) {
    if (!isMeant(load))
      continue;
    for (Operation *address : load.addressOps)
      if (!mapping.contains(address->getResult(0)))
        builder.clone(*address, mapping);
  }
  return mapping;
}

void LoopRing::copy(OpBuilder &builder, const StagedLoad &staged, Value place,
                    const IRMapping &mapping) const {
  LoadGlobalOp load = staged.load;
  SmallVector<Value> from;
  for (Value offset : load.getOffsets())
    from.push_back(mapping.lookupOrDefault(offset));
  SmallVector<Value> to = getOffsets(builder, staged, place, {});
  ArrayRef<int64_t> shape = staged.shape;
  if (!loads.byTensorCopies) {
    CopyAsyncOp::create(builder, loc, load.getSource(), from, staged.shared, to,
                        shape, load.getInBounds());
    return;
  }
  auto copy = CopyTensorOp::create(builder, loc,
                                   mapping.lookupOrDefault(load.getSource()),
                                   from, staged.shared, to, full, place, shape);
  if (staged.isMulticast)
    markMulticast(copy);
}

void LoopRing::markMulticast(Operation *op) const {
  op->setDiscardableAttr(MulticastAttr::kName,
                         MulticastAttr::get(op->getContext(), loads.numBlocks));
}

SmallVector<Value> LoopRing::getOffsets(OpBuilder &builder,
                                        const StagedLoad &load, Value place,
                                        ArrayRef<int64_t> position) const {
  auto rank = cast<SharedType>(load.shared.getType()).getRank();
  SmallVector<Value> offsets(rank, buildIndex(builder, 0));
  offsets.front() = place;
  for (auto [d, number] : llvm::enumerate(position))
    offsets[rank - position.size() + d] = buildIndex(builder, number);
  return offsets;
}
