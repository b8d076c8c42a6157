//===- AccessWidth.cpp - how many elements an access may move at once -----===//
//
// An access may move v elements, v consecutive ones along the last dimension,
// when
//   - the layout gives each thread runs of v along it, aligned to v,
//   - they fill 1, 2, 4, 8 or 16 bytes,
//   - they are neighbours in memory (the last stride is 1) and every term of
//     the address is a multiple of v elements, as is the pointer,
//   - they lie inside of the view together or not at all: its last extent and
//     offset are multiples of v, unless the access is in_bounds.
// Then v is a power of two, so all that matters of an extent, a stride or an
// offset is how many zero bits it ends in. Those are read off the ops that
// compute it; they survive the wrap-around of integers.
//
//===----------------------------------------------------------------------===//
#include "Codebooks.h"

#include "lowlp/Analysis/TrailingZeros.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

int64_t lowlp::getNaturalAlignBytes(Type elementType) {
  int64_t elementBits = *getElementBits(elementType);
  return elementBits % 8 == 0 ? elementBits / 8 : 1;
}

/// The bytes to which the view's pointer is aligned.
static int64_t getPointerAlignBytes(ViewGlobalOp view) {
  int64_t natural =
      getNaturalAlignBytes(view.getView().getType().getElementType());
  if (view.getSource().getDefiningOp<AllocGlobalOp>())
    return std::max(kAllocGlobalAlignBytes, natural);
  auto argument = dyn_cast<BlockArgument>(view.getSource());
  auto kernel = argument
                    ? dyn_cast<KernelOp>(argument.getOwner()->getParentOp())
                    : KernelOp();
  if (!kernel)
    return natural;
  auto align = kernel.getArgAttrOfType<IntegerAttr>(
      argument.getArgNumber(), LowlpDialect::kAlignAttrName);
  return align ? std::max(align.getInt(), natural) : natural;
}

namespace {

/// What is known of one access, whatever its width.
struct Access {
  /// Nothing is known of the index along dimension `gatheredDim` of the view.
  Access(TrailingZeros &zeros, ViewGlobalOp view, OperandRange offsets,
         const Layout &layout, bool isInBounds, int64_t gatheredDim);

  /// True when `v` > 1 elements at once are legal; the layout has been asked.
  bool allows(int64_t v) const;

  int64_t elementBits, alignBytes;
  bool hasUnitStride;
  /// All terms of an address end in as many zero bits.
  unsigned addressZeros;
  /// So do the last extent and offset, where they matter.
  unsigned edgeZeros;
};

} // namespace

Access::Access(TrailingZeros &zeros, ViewGlobalOp view, OperandRange offsets,
               const Layout &layout, bool isInBounds, int64_t gatheredDim)
    : elementBits(*getElementBits(view.getView().getType().getElementType())),
      alignBytes(getPointerAlignBytes(view)),
      hasUnitStride(getConstantIntValue(view.getMixedStrides().back()) == 1),
      addressZeros(~0u), edgeZeros(~0u) {
  SmallVector<unsigned> strides = zeros.ofStrides(view);
  int64_t rank = static_cast<int64_t>(strides.size());
  int64_t firstTileDim = rank - layout.rank();
  for (int64_t d = 0; d < rank; ++d) {
    bool isSpread = d == gatheredDim || (d >= firstTileDim && d != rank - 1 &&
                                         layout.shape()[d - firstTileDim] > 1);
    unsigned offset = isSpread ? 0 : zeros.of(offsets[d]);
    addressZeros = std::min(addressZeros, strides[d] + offset);
  }
  if (!isInBounds)
    edgeZeros = std::min(zeros.of(view.getMixedShape().back()),
                         zeros.of(offsets.back()));
}

bool Access::allows(int64_t v) const {
  int64_t bits = v * elementBits;
  if (bits % 8 != 0 || bits > 128 || !llvm::isPowerOf2_64(bits))
    return false;
  unsigned zeros = llvm::Log2_64(v);
  return hasUnitStride && alignBytes % (bits / 8) == 0 &&
         addressZeros >= zeros && edgeZeros >= zeros;
}

static int64_t findWidth(TrailingZeros &zeros, Value source,
                         OperandRange offsets, const Layout &layout,
                         int64_t run, bool isInBounds,
                         int64_t gatheredDim = -1) {
  Access access(zeros, source.getDefiningOp<ViewGlobalOp>(), offsets, layout,
                isInBounds, gatheredDim);
  for (int64_t v = std::min<int64_t>(run, 128); v > 1; --v)
    if (run % v == 0 && access.allows(v))
      return v;
  return 1;
}

int64_t lowlp::findGlobalWidth(Value source, OperandRange offsets,
                               const Layout &layout, int64_t run,
                               bool isInBounds, int64_t gatheredDim) {
  TrailingZeros zeros;
  return findWidth(zeros, source, offsets, layout, run, isInBounds,
                   gatheredDim);
}

int64_t lowlp::findEntryAlignBytes(Value source, OperandRange offsets,
                                   CodebookType codebook) {
  auto view = source.getDefiningOp<ViewGlobalOp>();
  int64_t elementBytes = *getElementBits(codebook.getElementType()) / 8;
  // Neighbouring entries may be read together.
  int64_t widest = std::max<int64_t>(codebook.getEntryBytes(), 16);
  int64_t alignBytes = std::min(widest, getPointerAlignBytes(view));
  TrailingZeros zeros;
  SmallVector<unsigned> strides = zeros.ofStrides(view);
  for (auto [offset, stride] : llvm::zip(offsets, strides))
    alignBytes =
        std::min(alignBytes, elementBytes << (zeros.of(offset) + stride));
  return alignBytes;
}

/// The width of an access by a register tile.
static int64_t findTileWidth(TrailingZeros &zeros, Value source,
                             OperandRange offsets, TileType tile,
                             bool isInBounds) {
  const Layout &layout = tile.getLayout();
  return findWidth(zeros, source, offsets, layout,
                   layout.contiguousLocals(layout.rank() - 1), isInBounds);
}

AccessWidths lowlp::planAccessWidths(Operation *root) {
  AccessWidths widths;
  TrailingZeros zeros;
  root->walk([&](LoadGlobalOp load) {
    widths[load] = findTileWidth(zeros, load.getSource(), load.getOffsets(),
                                 load.getTile().getType(), load.getInBounds());
  });
  root->walk([&](StoreGlobalOp store) {
    widths[store] =
        findTileWidth(zeros, store.getDestination(), store.getOffsets(),
                      store.getTile().getType(), store.getInBounds());
  });
  return widths;
}
