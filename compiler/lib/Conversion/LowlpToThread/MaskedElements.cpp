//===- MaskedElements.cpp - elements that no view holds -------------------===//
//
// Element e of a tile that was made element by element of other tiles comes
// from their elements e, and so from those of the loads at the beginning, back
// to which the ops are followed. A broadcast along one dimension makes that
// dimension's index 0, and an exchange between threads, which has become a
// store and a load of scratch memory by now, changes nothing.
//
//===----------------------------------------------------------------------===//
#include "MaskedElements.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace lowlp;

/// The dimension of the result along which a broadcast repeats its source; -1
/// if there are several.
static int64_t getRepeatedDim(BroadcastOp op) {
  ArrayRef<int64_t> from = op.getSource().getType().getShape();
  ArrayRef<int64_t> to = op.getType().getShape();
  int64_t repeated = -1;
  for (auto [dim, extents] : llvm::enumerate(llvm::zip_equal(from, to))) {
    if (std::get<0>(extents) == std::get<1>(extents))
      continue;
    if (repeated >= 0)
      return -1;
    repeated = static_cast<int64_t>(dim);
  }
  return repeated;
}

/// The tile that an exchange by way of shared memory has stored whole, if
/// `load` loads it again; else null.
static Value getExchanged(LoadSharedOp load) {
  auto scratch = load.getSource().getDefiningOp<AllocSharedOp>();
  if (!scratch || !scratch.getScratch())
    return {};
  StoreSharedOp store;
  for (Operation *user : scratch->getUsers()) {
    auto other = dyn_cast<StoreSharedOp>(user);
    if (other && store)
      return {};
    store = other ? other : store;
  }
  bool isWhole = store && store->getBlock() == load->getBlock() &&
                 store.getTile().getType().getShape() ==
                     load.getTile().getType().getShape();
  return isWhole ? Value(store.getTile()) : Value();
}

MaskedElements::MaskedElements(ConversionPatternRewriter &rewriter,
                               Location loc, Value tile, const Layout &layout)
    : rewriter(rewriter), loc(loc), layout(layout) {
  // Values, with the dimension along which they are repeated, or -1.
  llvm::SetVector<std::pair<Value, int64_t>> values;
  values.insert({tile, -1});
  for (size_t i = 0; i < values.size(); ++i) {
    auto [value, repeatedDim] = values[i];
    Operation *op = value.getDefiningOp();
    if (!op)
      continue;
    if (auto load = dyn_cast<LoadGlobalOp>(op)) {
      if (!load.getInBounds())
        add(load, repeatedDim);
    } else if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
      int64_t dim = getRepeatedDim(broadcast);
      if (dim >= 0 && (repeatedDim < 0 || repeatedDim == dim))
        values.insert({broadcast.getSource(), dim});
    } else if (auto load = dyn_cast<LoadSharedOp>(op)) {
      if (Value exchanged = getExchanged(load))
        values.insert({exchanged, repeatedDim});
    } else if (isa<LayoutTransferInterface>(op) &&
               !isa<ReduceOp, TransposeOp>(op)) {
      for (Value operand : op->getOperands())
        if (isa<TileType>(operand.getType()))
          values.insert({operand, repeatedDim});
    }
  }
}

void MaskedElements::add(LoadGlobalOp load, int64_t repeatedDim) {
  SmallVector<Value> offsets;
  for (Value offset : load.getOffsets())
    offsets.push_back(rewriter.getRemappedValue(offset));
  GatheredDim gathered;
  if (repeatedDim >= 0) {
    gathered.dim =
        static_cast<int64_t>(offsets.size()) - layout.rank() + repeatedDim;
    Value first = arith::ConstantIndexOp::create(rewriter, loc, 0);
    gathered.indices.assign(static_cast<size_t>(layout.numLocals()), first);
  }
  loads.push_back(std::make_unique<GlobalPositions>(
      rewriter, loc, load.getSource().getDefiningOp<ViewGlobalOp>(), offsets,
      layout, std::move(gathered)));
}

Value MaskedElements::isInside(int64_t i) {
  Value inside;
  for (const std::unique_ptr<GlobalPositions> &load : loads) {
    Value here = load->isInside(i);
    inside = inside ? arith::AndIOp::create(rewriter, loc, inside, here) : here;
  }
  return inside;
}
