//===- LoadsOfElements.cpp - which loads elements depend on ---------------===//
#include "LoadsOfElements.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace lowlp;
using llvm::BitVector;

int64_t LoadsOfElements::countElements(Type type) {
  if (auto accumulators = dyn_cast<simt::AccumulatorsType>(type))
    type = accumulators.getVector();
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getRank() == 1 && !vector.isScalable()
               ? vector.getNumElements()
               : 0;
  return type.isIntOrIndexOrFloat() ? 1 : 0;
}

BitVector LoadsOfElements::get(Value value, int64_t element) const {
  auto found = loads.find(value);
  return found == loads.end() ? BitVector() : found->second[element];
}

BitVector LoadsOfElements::getAll(ValueRange values) const {
  BitVector all;
  for (Value value : values)
    if (auto found = loads.find(value); found != loads.end())
      for (const BitVector &element : found->second)
        all |= element;
  return all;
}

void LoadsOfElements::set(Value value,
                          llvm::function_ref<BitVector(int64_t)> of) {
  Elements elements;
  for (int64_t i = 0, e = countElements(value.getType()); i != e; ++i)
    elements.push_back(of(i));
  if (llvm::any_of(elements, [](const BitVector &one) { return one.any(); }))
    loads[value] = std::move(elements);
}

void LoadsOfElements::addLoad(Operation *op, unsigned number) {
  // The address may be of an earlier load.
  BitVector all = getAll(op->getOperands());
  all.resize(std::max<unsigned>(all.size(), number + 1));
  all.set(number);
  for (Value result : op->getResults())
    set(result, [&](int64_t) { return all; });
}

void LoadsOfElements::visitBranch(Operation *branch,
                                  ArrayRef<unsigned> begins) {
  for (OpResult result : branch->getResults())
    set(result, [&](int64_t i) {
      BitVector made, always(begins.back(), true);
      for (auto [number, region] : llvm::enumerate(branch->getRegions())) {
        if (region.empty()) {
          always.reset();
          continue;
        }
        Operation *yield = region.front().getTerminator();
        BitVector yielded = get(yield->getOperand(result.getResultNumber()), i);
        yielded.resize(begins.back());
        always &= yielded;
        for (unsigned load = begins[number]; load < begins[number + 1]; ++load)
          if (yielded.test(load)) {
            made.resize(begins.back());
            made.set(load);
          }
      }
      return always |= made;
    });
}

void LoadsOfElements::visit(Operation *op) {
  auto copy = [&](Value from, auto place) {
    set(op->getResult(0), [&](int64_t i) { return get(from, place(i)); });
  };
  auto insert = [&](Value from, Value to, int64_t at) {
    int64_t count = countElements(from.getType());
    set(op->getResult(0), [&](int64_t i) {
      return i >= at && i < at + count ? get(from, i - at) : get(to, i);
    });
  };
  auto isWhole = [](Value value) { return countElements(value.getType()) > 0; };
  if (op->getNumRegions() || op->getNumResults() == 0 ||
      !llvm::all_of(op->getResults(), isWhole))
    return;

  if (auto extract = dyn_cast<vector::ExtractOp>(op)) {
    if (isWhole(extract.getSource()) && !extract.hasDynamicPosition() &&
        extract.getStaticPosition().size() == 1)
      copy(extract.getSource(),
           [&](int64_t) { return extract.getStaticPosition()[0]; });
  } else if (auto put = dyn_cast<vector::InsertOp>(op)) {
    if (!put.hasDynamicPosition() && put.getStaticPosition().size() == 1)
      insert(put.getValueToStore(), put.getDest(), put.getStaticPosition()[0]);
  } else if (auto slice = dyn_cast<vector::ExtractStridedSliceOp>(op)) {
    int64_t at = cast<IntegerAttr>(slice.getOffsets()[0]).getInt();
    copy(slice.getSource(), [&](int64_t i) { return at + i; });
  } else if (auto into = dyn_cast<vector::InsertStridedSliceOp>(op)) {
    insert(into.getValueToStore(), into.getDest(),
           cast<IntegerAttr>(into.getOffsets()[0]).getInt());
  } else if (auto made = dyn_cast<vector::FromElementsOp>(op)) {
    set(made.getResult(),
        [&](int64_t i) { return get(made.getElements()[i], 0); });
  } else if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
    if (!isa<VectorType>(broadcast.getSource().getType()))
      copy(broadcast.getSource(), [](int64_t) { return 0; });
  } else if (auto shuffle = dyn_cast<vector::ShuffleOp>(op)) {
    int64_t count = countElements(shuffle.getV1().getType());
    set(shuffle.getResult(), [&](int64_t i) {
      int64_t from = shuffle.getMask()[i];
      return from < 0       ? BitVector()
             : from < count ? get(shuffle.getV1(), from)
                            : get(shuffle.getV2(), from - count);
    });
  } else if (auto cast = dyn_cast<vector::BitCastOp>(op)) {
    int64_t from = cast.getSourceVectorType().getElementTypeBitWidth();
    int64_t to = cast.getResultVectorType().getElementTypeBitWidth();
    set(cast.getResult(), [&](int64_t i) {
      BitVector all;
      for (int64_t j = i * to / from; j * from < (i + 1) * to; ++j)
        all |= get(cast.getSource(), j);
      return all;
    });
  } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
    set(shuffle.getShuffleResult(),
        [&](int64_t i) { return get(shuffle.getValue(), i); });
  } else if (isa<simt::WgmmaFenceOp, simt::WgmmaWaitOp>(op)) {
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults()))
      set(result, [&](int64_t i) { return get(operand, i); });
  } else if (isa<simt::MmaOp, simt::WgmmaOp, simt::PrmtOp, simt::Lop3Op,
                 simt::FunnelShiftOp>(op)) {
    BitVector all = getAll(op->getOperands());
    set(op->getResult(0), [&](int64_t) { return all; });
  } else if (OpTrait::hasElementwiseMappableTraits(op) && isPure(op) &&
             !isa<arith::SelectOp>(op)) {
    // A select may become a branch, which waits for what it takes alone.
    set(op->getResult(0), [&](int64_t i) {
      BitVector all;
      for (Value operand : op->getOperands())
        all |= get(operand, isa<VectorType>(operand.getType()) ? i : 0);
      return all;
    });
  }
}
