//===- ReinterpretLayouts.cpp - lowlp-reinterpret-layouts -----------------===//
#include "lowlp/Decode/PackedTile.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

#include <map>
#include <tuple>

namespace lowlp {
#define GEN_PASS_DEF_REINTERPRETLAYOUTS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

static Value buildIndex(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// The number of units of `unit` elements that an extent takes.
static OpFoldResult countUnits(OpBuilder &builder, Location loc,
                               OpFoldResult extent, int64_t unit) {
  if (std::optional<int64_t> number = getConstantIntValue(extent))
    return builder.getIndexAttr(llvm::divideCeil(*number, unit));
  return arith::CeilDivUIOp::create(builder, loc, cast<Value>(extent),
                                    buildIndex(builder, loc, unit))
      .getResult();
}

/// The view of the words, [units of rows, units of K, 32 words], of several
/// matrices with their number in front.
static ViewGlobalOp viewWords(OpBuilder &builder, ViewPackedOp view) {
  Location loc = view.getLoc();
  const Placement &placement = view.getView().getType().getPlacement();
  SmallVector<OpFoldResult> shape = view.getMixedShape();
  OpFoldResult &rows = shape[shape.size() - 2], &k = shape.back();
  rows = countUnits(builder, loc, rows, placement.getUnitRows());
  k = countUnits(builder, loc, k, placement.getUnitK());
  shape.push_back(
      builder.getIndexAttr(FragmentFamily::lanes * placement.getNumWords()));
  SmallVector<int64_t> staticShape;
  SmallVector<Value> dynamicShape;
  dispatchIndexOpFoldResults(shape, dynamicShape, staticShape);
  Type word = view.getSource().getType().getElementType();
  auto type = GlobalType::get(builder.getContext(), staticShape, word);
  return ViewGlobalOp::create(builder, loc, type, view.getSource(),
                              dynamicShape, /*dynamicStrides=*/ValueRange(),
                              staticShape, ArrayRef<int64_t>());
}

/// Which unit an offset falls on. The offset is promised to be a multiple.
static Value buildUnit(OpBuilder &builder, Location loc, Value offset,
                       int64_t unit) {
  if (std::optional<int64_t> number = getConstantIntValue(offset))
    return buildIndex(builder, loc, *number / unit);
  Value aligned =
      AssumeDivisibleOp::create(builder, loc, offset.getType(), offset, unit);
  return arith::DivUIOp::create(builder, loc, aligned,
                                buildIndex(builder, loc, unit));
}

/// Numbers of units by block, offset and extent of a unit: loads of one unit
/// have the same, so that they are seen to be neighbours.
using Units = std::map<std::tuple<Block *, void *, int64_t>, Value>;

static void expandLoad(LoadPackedOp load, ViewGlobalOp words, Units &units) {
  OpBuilder builder(load);
  Location loc = load.getLoc();
  PackedType view = load.getSource().getType();
  const Placement &placement = view.getPlacement();
  TileType tile = load.getTile().getType();
  auto step = static_cast<int>(load.getStep());
  std::optional<int> book;
  if (load.getBook())
    book = static_cast<int>(*load.getBook());
  PackedTile match = *matchPackedTile(tile.getLayout(), placement, step, book);
  SmallVector<Value> offsets(load.getOffsets().drop_back(2));
  for (auto [offset, extent] :
       {std::pair(load.getRow(), int64_t(placement.getUnitRows())),
        std::pair(load.getK(), int64_t(placement.getUnitK()))}) {
    Value &unit =
        units[{load->getBlock(), offset.getAsOpaquePointer(), extent}];
    if (!unit)
      unit = buildUnit(builder, loc, offset, extent);
    offsets.push_back(unit);
  }
  offsets.push_back(buildIndex(builder, loc, 0));
  auto type =
      TileType::get(builder.getContext(),
                    words.getView().getType().getElementType(), match.words);
  Value loaded = LoadGlobalOp::create(builder, loc, type, words.getView(),
                                      offsets, load.getInBounds());
  Value codes = UnpackOp::create(
      builder, loc, tile, loaded,
      PlacementAttr::get(load.getContext(), &placement), load.getStep(),
      /*bit=*/0, load.getBookAttr());
  load.replaceAllUsesWith(codes);
  load.erase();
}

namespace {
struct ReinterpretLayouts
    : lowlp::impl::ReinterpretLayoutsBase<ReinterpretLayouts> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<ViewPackedOp> views;
    getOperation().walk([&](ViewPackedOp view) { views.push_back(view); });
    DenseMap<Value, ViewGlobalOp> words;
    for (ViewPackedOp view : views) {
      OpBuilder builder(view);
      words[view] = viewWords(builder, view);
    }
    Units units;
    SmallVector<LoadPackedOp> loads;
    getOperation().walk([&](LoadPackedOp load) { loads.push_back(load); });
    for (LoadPackedOp load : loads) {
      expandLoad(load, words.lookup(load.getSource()), units);
      ++numLoads;
    }
    for (ViewPackedOp view : views)
      view.erase();
  }
};
} // namespace
