//===- LayoutChoices.cpp - layouts for tiles that have no own -------------===//
#include "LayoutChoices.h"

#include "AccessCost.h"
#include "PipelinedLoads.h"

#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Layout/TileLayouts.h"
#include "lowlp/Layout/WarpConversion.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lowlp;

LayoutChoices::LayoutChoices(KernelOp kernel) {
  kernel.walk([&](scf::ForOp loop) {
    if (loop->hasAttr(LowlpDialect::kStagesAttrName))
      for (const StagedLoad &load : findPipelinedLoads(loop, false).staged)
        staged.insert(load.load);
  });
  findFree(kernel);
  wishOfUsers(kernel);
  while (!backward.empty() || !forward.empty() || !idle.empty()) {
    std::deque<Wish> &next = !backward.empty()  ? backward
                             : !forward.empty() ? forward
                                                : idle;
    Wish wish = next.front();
    next.pop_front();
    settle(wish);
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static bool isTile(Value value) { return isa<TileType>(value.getType()); }

static Layout getOwnLayout(Value tile) {
  return cast<TileType>(tile.getType()).getLayout();
}

static bool isMarked(Operation *op) {
  return op->hasAttr(LowlpDialect::kFreeLayoutAttrName);
}

bool LayoutChoices::isFreeConversion(Operation *op) {
  return isa_and_nonnull<ConvertLayoutOp>(op) && isMarked(op);
}

Value LayoutChoices::getSource(Value tile) {
  while (isFreeConversion(tile.getDefiningOp()))
    tile = tile.getDefiningOp()->getOperand(0);
  return tile;
}

bool LayoutChoices::costsNothing(Operation *op) {
  return isa_and_nonnull<LayoutTransferInterface>(op) &&
         getTileOperands(op).empty() && isMemoryEffectFree(op);
}

Value LayoutChoices::getNode(Value tile) {
  Value source = getSource(tile);
  if (auto loop = source.getDefiningOp<scf::ForOp>())
    return loop.getTiedLoopRegionIterArg(cast<OpResult>(source));
  return source;
}

Layout LayoutChoices::getLayout(Value tile) const {
  auto found = chosen.find(getNode(tile));
  return found == chosen.end() ? getOwnLayout(getSource(tile)) : found->second;
}

/// The loop whose body `value` is a carried argument of, or null.
static scf::ForOp getLoop(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                  : scf::ForOp();
}

/// The operands that a tile is made of, where its op, loop or branch holds it
/// as it holds those.
static SmallVector<OpOperand *> getOrigins(Value node) {
  if (scf::ForOp loop = getLoop(node)) {
    auto argument = cast<BlockArgument>(node);
    return {loop.getTiedLoopInit(argument),
            loop.getTiedLoopYieldedValue(argument)};
  }
  Operation *op = node.getDefiningOp();
  if (auto branch = dyn_cast_or_null<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(node).getResultNumber();
    return {&branch.thenYield()->getOpOperand(number),
            &branch.elseYield()->getOpOperand(number)};
  }
  return op ? getTileOperands(op) : SmallVector<OpOperand *>();
}

/// Whether the layout of a tile follows from those it is made of.
static bool followsOrigins(Value node) {
  Operation *op = node.getDefiningOp();
  if (!op)
    return bool(getLoop(node));
  return isa<scf::IfOp>(op) ||
         (isa<LayoutTransferInterface>(op) && !isa<ConvertLayoutOp>(op) &&
          !getTileOperands(op).empty());
}

/// Finds the greatest set: what follows from tiles of which one is not free is
/// taken out, until there is none.
void LayoutChoices::findFree(KernelOp kernel) {
  SmallVector<Value> followers;
  auto add = [&](Value tile) {
    Operation *op = tile.getDefiningOp();
    if (!isTile(tile) || isFreeConversion(op) || getNode(tile) != tile)
      return;
    bool follows = followsOrigins(tile);
    bool isOrigin = op && isMarked(op) && isa<LayoutTransferInterface>(op);
    if (follows || isOrigin)
      free.insert(tile);
    if (follows)
      followers.push_back(tile);
  };
  kernel.walk([&](Operation *op) {
    llvm::for_each(op->getResults(), add);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), add);
  });
  auto isHeldByName = [&](OpOperand *operand) {
    return !isFreeConversion(operand->get().getDefiningOp()) &&
           !isFree(getNode(operand->get()));
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (Value tile : followers)
      if (isFree(tile) && llvm::any_of(getOrigins(tile), isHeldByName))
        changed |= free.erase(tile);
  }
}

//===----------------------------------------------------------------------===//
// What is wanted
//===----------------------------------------------------------------------===//

/// The layouts of the operands of `op`, which has the interface, for a layout
/// of the result: those it has, for the one it has.
static std::optional<SmallVector<Layout>>
getOperandLayouts(Operation *op, const Layout &layout) {
  if (!(layout == getOwnLayout(op->getResult(0))))
    return cast<LayoutTransferInterface>(op).getOperandLayouts(layout);
  SmallVector<Layout> own;
  for (OpOperand *operand : getTileOperands(op))
    own.push_back(getOwnLayout(operand->get()));
  return own;
}

std::optional<SmallVector<Layout>>
LayoutChoices::findOperandLayouts(Operation *op, const Layout &layout) const {
  std::optional<SmallVector<Layout>> found = getOperandLayouts(op, layout);
  auto reduction = dyn_cast<ReduceOp>(op);
  if (found || !reduction)
    return found;
  // More than one layout reduces to the same: that which was chosen, if it
  // does.
  Layout source = getLayout(reduction.getSource());
  if (reduction.getResultLayout(0, source) == layout)
    return SmallVector<Layout>{source};
  return std::nullopt;
}

/// Stores take every layout, and so does a conversion that the user wrote.
static bool takesEveryLayout(Operation *op) {
  return isa<StoreGlobalOp, StoreSharedOp, ConvertLayoutOp>(op);
}

void LayoutChoices::wishOfUsers(KernelOp kernel) {
  kernel.walk([&](Operation *op) {
    bool isLink = isa<scf::ForOp, scf::IfOp>(op) ||
                  (isa<scf::YieldOp>(op) &&
                   isa<scf::ForOp, scf::IfOp>(op->getParentOp()));
    if (isLink)
      return;
    if (isFreeConversion(op)) {
      // What makes its tile in one layout offers that one.
      Value source = getSource(op->getResult(0));
      if (!isFree(getNode(source)))
        passForward(op->getResult(0), getOwnLayout(source));
      return;
    }
    if (auto named = dyn_cast<ConvertLayoutOp>(op)) {
      offer(named.getSource(), named.getType().getLayout());
      return;
    }
    bool makesFreeTile = op->getNumResults() == 1 && isTile(op->getResult(0)) &&
                         isFree(op->getResult(0));
    if (auto reduction = dyn_cast<ReduceOp>(op))
      keepWithinWarps(reduction);
    if (takesEveryLayout(op) || makesFreeTile)
      return;
    for (OpOperand *operand : getTileOperands(op))
      backward.push_back(
          {getNode(operand->get()), getOwnLayout(operand->get())});
  });
}

/// The dimension along which neighbouring threads hold neighbouring elements.
static int64_t getInnerDim(const Layout &layout) {
  for (Digit digit : llvm::reverse(layout.threadDigits()))
    if (!digit.isReplica())
      return layout.modes()[digit.mode].dim;
  return layout.rank() - 1;
}

/// A reduction over warps goes through shared memory, with a barrier. Where the
/// warps can lie along other dimensions it stays within each.
void LayoutChoices::keepWithinWarps(ReduceOp reduction) {
  TileType source = reduction.getSource().getType();
  const Layout &own = source.getLayout();
  auto dim = static_cast<int64_t>(reduction.getDim());
  if (!isFree(getNode(reduction.getSource())) || !splitAcrossWarps(own, dim))
    return;
  std::optional<Layout> within =
      coalesceWithinWarps(own.shape(), *getElementBits(source.getElementType()),
                          own.numThreads(), getInnerDim(own), dim);
  if (within)
    idle.push_back({getNode(reduction.getSource()), *within});
}

/// How often a thread or another holds an element.
static int64_t countHolders(const Layout &layout) {
  return layout.numThreads() * layout.numLocals() / layout.numElements();
}

/// Suggests a layout that something else has already. What holds every element
/// more often than now would make more work.
void LayoutChoices::offer(Value tile, const Layout &layout) {
  if (countHolders(layout) <= countHolders(getOwnLayout(getSource(tile))))
    forward.push_back({getNode(tile), layout});
}

//===----------------------------------------------------------------------===//
// How it spreads
//===----------------------------------------------------------------------===//

void LayoutChoices::settle(const Wish &wish) {
  if (!isFree(wish.node) || chosen.contains(wish.node) || !canHold(wish))
    return;
  chosen.try_emplace(wish.node, wish.layout);
  passBack(wish);
  passForward(wish.node, wish.layout);
  if (scf::ForOp loop = getLoop(wish.node))
    passForward(loop.getTiedLoopResult(cast<BlockArgument>(wish.node)),
                wish.layout);
}

bool LayoutChoices::canHold(const Wish &wish) {
  Operation *op = wish.node.getDefiningOp();
  if (!op || isa<scf::IfOp>(op))
    return true;
  if (!findOperandLayouts(op, wish.layout)) {
    refusals.try_emplace(wish.node, op->getName().getStringRef().str() +
                                        " cannot hold it so");
    return false;
  }
  // Stages copy by lines of memory in any case.
  auto load = dyn_cast<LoadGlobalOp>(op);
  auto view = load ? load.getSource().getDefiningOp<ViewGlobalOp>() : nullptr;
  if (!view || staged.contains(load))
    return true;
  TileType own = load.getTile().getType();
  auto wanted =
      TileType::get(op->getContext(), own.getElementType(), wish.layout);
  int64_t direct = getGlobalAccessCost(view, wanted);
  int64_t access = getGlobalAccessCost(view, own);
  int64_t conversion = getConversionCost(own, wish.layout);
  if (direct <= access + conversion)
    return true;
  refusals.try_emplace(
      wish.node, "a load as needed costs " + std::to_string(direct) +
                     ", one along memory " + std::to_string(access) +
                     " and the " + "conversion " + std::to_string(conversion));
  return false;
}

void LayoutChoices::passBack(const Wish &wish) {
  SmallVector<OpOperand *> origins = getOrigins(wish.node);
  Operation *op = wish.node.getDefiningOp();
  SmallVector<Layout> layouts(origins.size(), wish.layout);
  if (op && !isa<scf::IfOp>(op))
    layouts = *findOperandLayouts(op, wish.layout);
  for (auto [origin, layout] : llvm::zip_equal(origins, layouts))
    backward.push_back({getNode(origin->get()), layout});
}

void LayoutChoices::passForward(Value value, const Layout &layout) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isFreeConversion(user)) {
      passForward(user->getResult(0), layout);
    } else if (auto loop = dyn_cast<scf::ForOp>(user)) {
      offer(loop.getTiedLoopRegionIterArg(&use), layout);
    } else if (isa<scf::YieldOp>(user)) {
      Operation *parent = user->getParentOp();
      if (isa<scf::ForOp, scf::IfOp>(parent))
        offer(parent->getResult(use.getOperandNumber()), layout);
    } else if (auto op = dyn_cast<LayoutTransferInterface>(user)) {
      unsigned number = llvm::find(getTileOperands(user), &use) -
                        getTileOperands(user).begin();
      if (std::optional<Layout> result = op.getResultLayout(number, layout))
        offer(user->getResult(0), *result);
    }
  }
}

//===----------------------------------------------------------------------===//
// What has been chosen
//===----------------------------------------------------------------------===//

SmallVector<std::pair<Value, Layout>> LayoutChoices::getChanged() const {
  SmallVector<std::pair<Value, Layout>> changed;
  for (auto &[node, layout] : chosen)
    if (!(layout == getOwnLayout(node)))
      changed.emplace_back(node, layout);
  return changed;
}

/// Whether a store in the layout of the tile costs no more than one in its own
/// after a conversion.
static bool isStoredAsHeld(StoreGlobalOp store, const Layout &held) {
  auto view = store.getDestination().getDefiningOp<ViewGlobalOp>();
  TileType own = store.getTile().getType();
  auto tile = TileType::get(store.getContext(), own.getElementType(), held);
  return !view || getGlobalAccessCost(view, tile) <=
                      getGlobalAccessCost(view, own) +
                          getConversionCost(tile, own.getLayout());
}

Layout LayoutChoices::getNeeded(OpOperand &operand) const {
  Operation *op = operand.getOwner();
  Layout own = getOwnLayout(operand.get()), held = getLayout(operand.get());
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return getLayout(loop.getTiedLoopRegionIterArg(&operand));
  if (isa<scf::YieldOp>(op)) {
    Operation *parent = op->getParentOp();
    return isa<scf::ForOp, scf::IfOp>(parent)
               ? getLayout(parent->getResult(operand.getOperandNumber()))
               : own;
  }
  if (auto store = dyn_cast<StoreGlobalOp>(op))
    return isStoredAsHeld(store, held) ? held : own;
  if (auto named = dyn_cast<ConvertLayoutOp>(op)) {
    Value node = getNode(operand.get());
    bool isMadeAgain = isFree(node) && costsNothing(node.getDefiningOp());
    return isMadeAgain ? named.getType().getLayout() : held;
  }
  if (takesEveryLayout(op))
    return held;
  auto transfer = dyn_cast<LayoutTransferInterface>(op);
  if (!transfer)
    return own;
  Layout result = getLayout(op->getResult(0));
  if (held == own && result == getOwnLayout(op->getResult(0)))
    return own;
  SmallVector<OpOperand *> tiles = getTileOperands(op);
  unsigned number = llvm::find(tiles, &operand) - tiles.begin();
  if (transfer.getResultLayout(number, held) == result)
    return held;
  return (*findOperandLayouts(op, result))[number];
}

std::string LayoutChoices::explain(OpOperand &operand) const {
  Value node = getNode(operand.get());
  if (auto refused = refusals.find(node); refused != refusals.end())
    return refused->second;
  if (isa<StoreGlobalOp>(operand.getOwner()))
    return "a store as held costs more";
  if (isFree(node))
    return "other uses hold the tile as " + str(getLayout(node));
  Operation *op = node.getDefiningOp();
  return (op ? op->getName().getStringRef().str() : "a loop") +
         " has its own layout";
}
