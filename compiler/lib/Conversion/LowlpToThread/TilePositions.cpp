//===- TilePositions.cpp - where the elements of a tile lie ---------------===//
#include "TilePositions.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lowlp;

TilePositions::TilePositions(ConversionPatternRewriter &rewriter, Location loc,
                             ValueRange offsets, const Layout &layout,
                             GatheredDim gathered)
    : rewriter(rewriter), loc(loc), layout(layout),
      gathered(std::move(gathered)),
      firstTileDim(static_cast<int64_t>(offsets.size()) - layout.rank()),
      starts(offsets) {}

void TilePositions::addThreadIndex() {
  Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
  int64_t below = layout.numThreads();
  for (const Digit &digit : layout.threadDigits()) {
    bool isTop = below == layout.numThreads();
    below /= digit.extent;
    Value value =
        below == 1 ? thread : make<arith::DivUIOp>(thread, index(below));
    if (!isTop)
      value = make<arith::RemUIOp>(value, index(digit.extent));
    if (digit.isReplica()) {
      Value first = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::eq, value, index(0));
      isFirst = isFirst ? make<arith::AndIOp>(isFirst, first) : first;
      continue;
    }
    const Mode &mode = layout.modes()[digit.mode];
    if (firstTileDim + mode.dim == gathered.dim)
      continue;
    Value &start = starts[firstTileDim + mode.dim];
    start = make<arith::AddIOp>(start,
                                make<arith::MulIOp>(value, index(mode.stride)));
  }
}

Value TilePositions::isInside(int64_t i) {
  std::vector<int64_t> element = layout.evaluate(0, i);
  Value inside;
  for (int64_t d = 0; d < static_cast<int64_t>(extents.size()); ++d) {
    int64_t part = getPart(element, d);
    bool isGathered = d == gathered.dim;
    // Which local element decides about a gathered index, else the part does.
    Value &test = tests[{d, isGathered ? i : part}];
    if (!test) {
      Value place = starts[d];
      if (isGathered)
        place = make<arith::AddIOp>(place, gathered.indices[i]);
      else if (part)
        place = make<arith::AddIOp>(place, index(part));
      // Unsigned, so that a negative index is outside too.
      test = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                   place, extents[d]);
    }
    inside = inside ? make<arith::AndIOp>(inside, test) : test;
  }
  return inside;
}

/// Neighbours lie along one dimension, so the first and the last speak for all.
Value TilePositions::areInside(int64_t i, int64_t count) {
  Value first = isInside(i);
  return count == 1 ? first
                    : make<arith::AndIOp>(first, isInside(i + count - 1));
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

Value GlobalPositions::materialize(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return index(*constant);
  return rewriter.getRemappedValue(cast<Value>(value));
}

GlobalPositions::GlobalPositions(ConversionPatternRewriter &rewriter,
                                 Location loc, ViewGlobalOp view,
                                 ValueRange offsets, const Layout &layout,
                                 GatheredDim gathered)
    : TilePositions(rewriter, loc, offsets, layout, std::move(gathered)) {
  for (OpFoldResult extent : view.getMixedShape())
    extents.push_back(materialize(extent));
  strides.resize(extents.size());
  Value running = index(1);
  SmallVector<OpFoldResult> mixed = view.getMixedStrides();
  for (int64_t d = static_cast<int64_t>(extents.size()) - 1; d >= 0; --d) {
    strides[d] = mixed[d] ? materialize(mixed[d]) : running;
    if (view.isRowMajor() && d > 0)
      running = make<arith::MulIOp>(strides[d], extents[d]);
  }
  addThreadIndex();
  basePosition = index(0);
  for (auto [start, stride] : llvm::zip_equal(starts, strides))
    basePosition =
        make<arith::AddIOp>(basePosition, make<arith::MulIOp>(start, stride));
}

Value GlobalPositions::getElementPosition(int64_t i) {
  Value position = basePosition;
  std::vector<int64_t> element = layout.evaluate(0, i);
  for (int64_t d = firstTileDim; d < static_cast<int64_t>(strides.size()); ++d)
    if (int64_t part = getPart(element, d))
      position = make<arith::AddIOp>(
          position, make<arith::MulIOp>(strides[d], index(part)));
  if (gathered.dim >= 0)
    position =
        make<arith::AddIOp>(position, make<arith::MulIOp>(strides[gathered.dim],
                                                          gathered.indices[i]));
  return arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(),
                                    position);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

SharedPositions::SharedPositions(ConversionPatternRewriter &rewriter,
                                 Location loc, const SharedLayout &sharedLayout,
                                 ValueRange offsets, const Layout &layout,
                                 GatheredDim gathered)
    : TilePositions(rewriter, loc, offsets, layout, std::move(gathered)),
      sharedLayout(sharedLayout) {
  for (int64_t extent : sharedLayout.shape())
    extents.push_back(index(extent));
  addThreadIndex();
}

Value SharedPositions::getDigit(Value value, int64_t unit, int64_t extent,
                                bool isOutermost) {
  if (unit > 1)
    value = make<arith::DivUIOp>(value, index(unit));
  return isOutermost ? value : make<arith::RemUIOp>(value, index(extent));
}

/// As `Swizzle::apply`.
void SharedPositions::applySwizzle(MutableArrayRef<Value> element) {
  const Swizzle &swizzle = *sharedLayout.swizzle();
  Value decides =
      getDigit(element[swizzle.byDim], swizzle.byUnit, swizzle.byExtent,
               /*isOutermost=*/false);
  decides = getDigit(decides, int64_t(1) << swizzle.logStep, swizzle.extent,
                     /*isOutermost=*/false);
  Value &changes = element[swizzle.dim];
  if (llvm::isPowerOf2_64(swizzle.unit)) {
    // As its extent is one, the digit is some bits of the index.
    changes = make<arith::XOrIOp>(
        changes, make<arith::MulIOp>(decides, index(swizzle.unit)));
    return;
  }
  Value digit = getDigit(changes, swizzle.unit, swizzle.extent,
                         /*isOutermost=*/false);
  Value difference =
      make<arith::SubIOp>(make<arith::XOrIOp>(digit, decides), digit);
  changes = make<arith::AddIOp>(
      changes, make<arith::MulIOp>(difference, index(swizzle.unit)));
}

/// Whether an index along a dimension is more than where the tile begins and
/// where the element lies in it.
bool SharedPositions::isChanged(int64_t dim) const {
  return dim == gathered.dim ||
         (sharedLayout.swizzle() && sharedLayout.swizzle()->dim == dim);
}

Value SharedPositions::getElementPosition(int64_t i) {
  std::vector<int64_t> parts = layout.evaluate(0, i);
  SmallVector<Value> element;
  for (auto [d, start] : llvm::enumerate(starts)) {
    int64_t part = getPart(parts, static_cast<int64_t>(d));
    element.push_back(part ? make<arith::AddIOp>(start, index(part)) : start);
  }
  if (gathered.dim >= 0)
    element[gathered.dim] =
        make<arith::AddIOp>(element[gathered.dim], gathered.indices[i]);
  if (sharedLayout.swizzle())
    applySwizzle(element);
  // The local index of a layout of one thread is the address: each of its
  // digits is one of the element's index. What is constant is added last, so
  // that it becomes part of an instruction.
  const Layout &addresses = sharedLayout.layout();
  Value position = index(0);
  int64_t weight = 1, constant = 0;
  for (const Digit &digit : llvm::reverse(addresses.localDigits())) {
    const Mode &mode = addresses.modes()[digit.mode];
    bool isOutermost = digit.mode == addresses.modesOf(mode.dim).first;
    Value value;
    if (isOutermost && mode.stride == 1 && !isChanged(mode.dim)) {
      value = starts[mode.dim];
      constant += getPart(parts, mode.dim) * weight;
    } else {
      value =
          getDigit(element[mode.dim], mode.stride, mode.extent, isOutermost);
    }
    position = make<arith::AddIOp>(position,
                                   make<arith::MulIOp>(value, index(weight)));
    weight *= digit.extent;
  }
  if (constant)
    position = make<arith::AddIOp>(position, index(constant));
  return arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(),
                                    position);
}
