//===- InferLayouts.cpp - lowlp-infer-layouts -----------------------------===//
//
// 1. Which layout each tile gets that has none of its own, and how each op
// needs
//    its operands (LayoutChoices.h).
// 2. The tiles change their types.
// 3. Where an operand is not held as it is needed, a conversion after the
// tile,
//    one for all that need the same; or the op again, of those that cost
//    nothing.
//
//===----------------------------------------------------------------------===//
#include "LayoutChoices.h"
#include "PassRemarks.h"
#include "SourcePlace.h"

#include "lowlp/IR/Report.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

#include "llvm/Support/DebugLog.h"

#include <unordered_map>

#define DEBUG_TYPE "lowlp-infer-layouts"

namespace lowlp {
#define GEN_PASS_DEF_INFERLAYOUTS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

static TileType withLayout(Value tile, const Layout &layout) {
  auto type = cast<TileType>(tile.getType());
  return TileType::get(type.getContext(), type.getElementType(), layout);
}

namespace {

/// What an op needs of a tile, and why the tile is not held so.
struct Need {
  OpOperand *operand;
  Layout layout;
  std::string reason;
};

struct InferLayouts : lowlp::impl::InferLayoutsBase<InferLayouts> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<Operation *> marked, conversions;
    kernel.walk([&](Operation *op) {
      if (!op->hasAttr(LowlpDialect::kFreeLayoutAttrName))
        return;
      bool isConversion = LayoutChoices::isFreeConversion(op);
      (isConversion ? conversions : marked).push_back(op);
    });
    if (marked.empty() && conversions.empty())
      return;
    LayoutChoices choices(kernel);
    SmallVector<Need> needs = collectNeeds(choices);
    for (auto &[tile, layout] : choices.getChanged())
      changeType(tile, layout);
    for (Need &need : needs)
      satisfy(need);
    for (Operation *conversion : llvm::reverse(conversions))
      conversion->erase();
    kernel.walk([](ConvertLayoutOp op) {
      if (op.getSource().getType() != op.getType())
        return;
      op.replaceAllUsesWith(op.getSource());
      op.erase();
    });
    for (Operation *op : marked)
      op->removeAttr(LowlpDialect::kFreeLayoutAttrName);
    numRemoved += conversions.size();
    writeNote(conversions.size());
  }

private:
  SmallVector<Need> collectNeeds(const LayoutChoices &choices) {
    SmallVector<Need> needs;
    getOperation().walk([&](Operation *op) {
      if (LayoutChoices::isFreeConversion(op))
        return;
      for (OpOperand *operand : getTileOperands(op)) {
        Layout layout = choices.getNeeded(*operand);
        bool isHeldSo = choices.getLayout(operand->get()) == layout;
        needs.push_back(
            {operand, layout, isHeldSo ? "" : choices.explain(*operand)});
      }
    });
    return needs;
  }

  void changeType(Value tile, const Layout &layout) {
    ++numTiles;
    TileType type = withLayout(tile, layout);
    tile.setType(type);
    if (auto argument = dyn_cast<BlockArgument>(tile))
      cast<scf::ForOp>(argument.getOwner()->getParentOp())
          .getTiedLoopResult(argument)
          .setType(type);
  }

  /// Gives an op the tile behind free conversions, in the layout that it needs.
  void satisfy(Need &need) {
    Value tile = LayoutChoices::getSource(need.operand->get());
    TileType type = withLayout(tile, need.layout);
    if (tile.getType() != type) {
      Value &held = others[tile][need.layout];
      if (!held)
        held = hold(tile, type, need);
      tile = held;
    }
    need.operand->set(tile);
  }

  Value hold(Value tile, TileType type, const Need &need) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(tile);
    Operation *op = tile.getDefiningOp();
    if (LayoutChoices::costsNothing(op)) {
      Operation *again = builder.clone(*op);
      again->removeAttr(LowlpDialect::kFreeLayoutAttrName);
      again->getResult(0).setType(type);
      return again->getResult(0);
    }
    ++numLeft;
    Operation *user = need.operand->getOwner();
    Location loc = user->getLoc();
    std::string left = "converts from " +
                       str(cast<TileType>(tile.getType()).getLayout()) +
                       " to " + str(need.layout) + ", as " + need.reason;
    LDBG() << user->getName() << " " << left;
    remarkDeclined(user, DEBUG_TYPE, "layout", [&] { return left; });
    notes.push_back(describePlace(loc, user->getName().getStringRef()) + ": " +
                    left);
    return ConvertLayoutOp::create(builder, loc, type, tile);
  }

  void writeNote(size_t removed) {
    notes.insert(notes.begin(),
                 "conversions removed: " + std::to_string(removed) +
                     ", left: " + std::to_string(notes.size()));
    setReport(getOperation(), "layouts", notes);
  }

  /// The tiles again, by the layouts in which ops need them.
  DenseMap<Value, std::unordered_map<Layout, Value>> others;
  SmallVector<std::string> notes;
};

} // namespace
