//===- Access.cpp - loads and stores of tiles -----------------------------===//
//
// Element (t, i) of a tile lies at
//
//   sum over dimensions of (offset + part of t + part of i) * stride
//
// where the part of i is a number and the part of t is made of the digits of
// the thread index. Elements are moved in groups of neighbours (AccessWidth).
// A group of whole bytes is one simt.load or simt.store. An element that shares
// its bytes with others is taken out of the one or two bytes that hold it, and
// put in by an atomic AND and an atomic OR of the one or two 32-bit words that
// hold it (Tilus, section 6.1), because the neighbours may be written by other
// threads at the same time.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace lowlp;

namespace {

/// Where the elements of one access lie, and which of them exist.
class Addressing {
public:
  Addressing(ConversionPatternRewriter &rewriter, Location loc,
             ViewGlobalOp view, ValueRange offsets, const Layout &layout);

  /// The position of local element `i`, counted in elements, as an i64.
  Value getElementPosition(int64_t i);
  /// Whether local element `i` lies inside of the view, as an i1.
  Value isInside(int64_t i);
  /// Whether all of the `count` neighbours from `i` on do.
  Value areInside(int64_t i, int64_t count);
  /// Whether this thread is the first of those that hold its elements; null
  /// when every element is held once.
  Value isFirstOwner();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(rewriter, loc, a, b);
  }
  /// A value of the view's, as it is now, after the conversion of its op.
  Value materialize(OpFoldResult value);
  void splitThreadIndex();
  int64_t tileDim(int64_t viewDim) const { return viewDim - firstTileDim; }

  ConversionPatternRewriter &rewriter;
  Location loc;
  const Layout &layout;
  int64_t firstTileDim;
  /// For each dimension of the view: extent, stride, and the index of this
  /// thread's element 0.
  SmallVector<Value> extents, strides, starts;
  Value basePosition, isFirst;
  /// Tests made already, by dimension and number added to the start.
  std::map<std::pair<int64_t, int64_t>, Value> tests;
};

} // namespace

Value Addressing::materialize(OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return index(*constant);
  return rewriter.getRemappedValue(cast<Value>(value));
}

/// Adds to `starts` what the digits of the thread index contribute.
void Addressing::splitThreadIndex() {
  Value thread = gpu::ThreadIdOp::create(rewriter, loc, gpu::Dimension::x);
  int64_t below = layout.numThreads();
  for (const Digit &digit : layout.threadDigits()) {
    bool isTop = below == layout.numThreads();
    below /= digit.extent;
    Value value = below == 1 ? thread : make<arith::DivUIOp>(thread, index(below));
    if (!isTop)
      value = make<arith::RemUIOp>(value, index(digit.extent));
    if (digit.isReplica()) {
      Value first = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::eq, value, index(0));
      isFirst = isFirst ? make<arith::AndIOp>(isFirst, first) : first;
      continue;
    }
    const Mode &mode = layout.modes()[digit.mode];
    Value &start = starts[firstTileDim + mode.dim];
    start = make<arith::AddIOp>(
        start, make<arith::MulIOp>(value, index(mode.stride)));
  }
}

Addressing::Addressing(ConversionPatternRewriter &rewriter, Location loc,
                       ViewGlobalOp view, ValueRange offsets,
                       const Layout &layout)
    : rewriter(rewriter), loc(loc), layout(layout),
      firstTileDim(view.getView().getType().getRank() - layout.rank()),
      starts(offsets) {
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
  splitThreadIndex();
  basePosition = index(0);
  for (auto [start, stride] : llvm::zip_equal(starts, strides))
    basePosition = make<arith::AddIOp>(basePosition,
                                       make<arith::MulIOp>(start, stride));
}

Value Addressing::getElementPosition(int64_t i) {
  Value position = basePosition;
  std::vector<int64_t> element = layout.evaluate(0, i);
  for (int64_t d = firstTileDim; d < static_cast<int64_t>(strides.size()); ++d)
    if (int64_t part = element[tileDim(d)])
      position = make<arith::AddIOp>(
          position, make<arith::MulIOp>(strides[d], index(part)));
  return arith::IndexCastOp::create(rewriter, loc, rewriter.getI64Type(),
                                    position);
}

Value Addressing::isInside(int64_t i) {
  std::vector<int64_t> element = layout.evaluate(0, i);
  Value inside;
  for (int64_t d = 0; d < static_cast<int64_t>(extents.size()); ++d) {
    int64_t part = d < firstTileDim ? 0 : element[tileDim(d)];
    Value &test = tests[{d, part}];
    // Unsigned, so that a negative index is outside too.
    if (!test)
      test = arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ult,
          part ? make<arith::AddIOp>(starts[d], index(part)) : starts[d],
          extents[d]);
    inside = inside ? make<arith::AndIOp>(inside, test) : test;
  }
  return inside;
}

/// Neighbours lie along one dimension, so the first and the last speak for all.
Value Addressing::areInside(int64_t i, int64_t count) {
  Value first = isInside(i);
  return count == 1 ? first
                    : make<arith::AndIOp>(first, isInside(i + count - 1));
}

Value Addressing::isFirstOwner() { return isFirst; }

//===----------------------------------------------------------------------===//
// Groups of elements
//===----------------------------------------------------------------------===//

namespace {

/// What one simt.load or simt.store of whole bytes moves.
struct Group {
  int64_t elements;
  unsigned elementBits;
  Type elementType;

  int64_t bits() const { return elements * elementBits; }
  int64_t bytes() const { return bits() / 8; }
  bool isPacked() const { return lowlp::isPacked(elementType); }

  /// i8, i16, i32 or a vector of i32 for packed elements, else a scalar or
  /// vector of the elements.
  Type getMachineType(MLIRContext *context) const {
    if (!isPacked())
      return elements == 1 ? elementType
                           : Type(VectorType::get({elements}, elementType));
    if (bits() <= 32)
      return IntegerType::get(context, bits());
    return VectorType::get({bits() / 32}, IntegerType::get(context, 32));
  }
};

/// Emits the accesses of one load or store.
class Mover {
public:
  Mover(ConversionPatternRewriter &rewriter, Location loc, Value base,
        TileType tile, int64_t width)
      : rewriter(rewriter), loc(loc), base(base), tile(tile),
        group{width, *getElementBits(tile.getElementType()),
              tile.getElementType()} {}

  bool movesWholeBytes() const { return group.bits() % 8 == 0; }
  int64_t getWidth() const { return group.elements; }

  /// A group of whole bytes at `position`, as `Group::getMachineType`.
  Value loadGroup(Value position) {
    return simt::LoadOp::create(
        rewriter, loc, group.getMachineType(rewriter.getContext()), base,
        getByteOffset(position), group.bytes());
  }
  void storeGroup(Value value, Value position) {
    simt::StoreOp::create(rewriter, loc, value, base, getByteOffset(position),
                          group.bytes());
  }
  Value loadBits(Value position);
  void storeBits(Value code, Value position);

  Type getMachineType() {
    return movesWholeBytes() ? group.getMachineType(rewriter.getContext())
                             : Type(rewriter.getI32Type());
  }
  const Group &getGroup() const { return group; }

private:
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(rewriter, loc, value, 32);
  }
  Value i64(int64_t value) {
    return arith::ConstantIntOp::create(rewriter, loc, value, 64);
  }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(rewriter, loc, a, b);
  }
  Value toI32(Value value) {
    return arith::TruncIOp::create(rewriter, loc, rewriter.getI32Type(), value);
  }
  /// `position` counts elements; groups start at whole bytes.
  Value getByteOffset(Value position) {
    if (group.elementBits % 8 == 0)
      return make<arith::MulIOp>(position, i64(group.elementBits / 8));
    Value bit = make<arith::MulIOp>(position, i64(group.elementBits));
    return make<arith::ShRUIOp>(bit, i64(3));
  }
  Value loadByte(Value offset) {
    Value byte = simt::LoadOp::create(rewriter, loc, rewriter.getI8Type(), base,
                                      offset, 1);
    return arith::ExtUIOp::create(rewriter, loc, rewriter.getI32Type(), byte);
  }
  void replaceBits(Value mask, Value bits, Value byteOffset);

  ConversionPatternRewriter &rewriter;
  Location loc;
  Value base;
  TileType tile;
  Group group;
};

} // namespace

/// One element narrower than a byte, as an i32 whose other bits are zero.
Value Mover::loadBits(Value position) {
  int64_t bits = group.elementBits;
  Value first = make<arith::MulIOp>(position, i64(bits));
  Value shift = toI32(make<arith::AndIOp>(first, i64(7)));
  Value value = loadByte(make<arith::ShRUIOp>(first, i64(3)));
  // Where the element ends in the byte it began in, the same byte is read
  // again, and what it adds lies above the element's bits.
  if (8 % bits != 0) {
    Value last = make<arith::AddIOp>(first, i64(bits - 1));
    Value high = loadByte(make<arith::ShRUIOp>(last, i64(3)));
    value = make<arith::OrIOp>(value, make<arith::ShLIOp>(high, i32(8)));
  }
  value = make<arith::ShRUIOp>(value, shift);
  return make<arith::AndIOp>(value, i32((int64_t(1) << bits) - 1));
}

/// Makes the bits of a word that `mask` names those of `bits`.
void Mover::replaceBits(Value mask, Value bits, Value byteOffset) {
  Value keep = make<arith::XOrIOp>(mask, i32(-1));
  simt::AtomicRMWOp::create(rewriter, loc, simt::AtomicKind::And, keep, base,
                            byteOffset);
  simt::AtomicRMWOp::create(rewriter, loc, simt::AtomicKind::Or, bits, base,
                            byteOffset);
}

void Mover::storeBits(Value code, Value position) {
  int64_t bits = group.elementBits;
  Value first = make<arith::MulIOp>(position, i64(bits));
  Value shift = make<arith::AndIOp>(first, i64(31));
  Value word = make<arith::MulIOp>(make<arith::ShRUIOp>(first, i64(5)), i64(4));
  Value wide =
      arith::ExtUIOp::create(rewriter, loc, rewriter.getI64Type(), code);
  Value mask = make<arith::ShLIOp>(i64((int64_t(1) << bits) - 1), shift);
  wide = make<arith::ShLIOp>(wide, shift);
  replaceBits(toI32(mask), toI32(wide), word);
  if (32 % bits == 0)
    return;
  Value highMask = toI32(make<arith::ShRUIOp>(mask, i64(32)));
  Value highBits = toI32(make<arith::ShRUIOp>(wide, i64(32)));
  Value crosses = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::ne, highMask, i32(0));
  auto branch = scf::IfOp::create(rewriter, loc, crosses, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  replaceBits(highMask, highBits, make<arith::AddIOp>(word, i64(4)));
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Emits `access` where `condition` holds, with zero as the value elsewhere.
static Value emitGuarded(OpBuilder &builder, Location loc, Value condition,
                         Type type, llvm::function_ref<Value()> access) {
  auto branch = scf::IfOp::create(builder, loc, type, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, access());
  builder.setInsertionPointToStart(branch.elseBlock());
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  scf::YieldOp::create(builder, loc, zero);
  return branch.getResult(0);
}

static constexpr StringLiteral kOutside =
    "the access promises in_bounds, but an element lies outside of the view";

namespace {

struct LoadPattern : OpConversionPattern<LoadGlobalOp> {
  LoadPattern(const TypeConverter &converter, MLIRContext *context,
              const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(LoadGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    Mover mover(rewriter, loc, adaptor.getSource(), tile, widths.lookup(op));
    Addressing addressing(rewriter, loc,
                          op.getSource().getDefiningOp<ViewGlobalOp>(),
                          adaptor.getOffsets(), tile.getLayout());
    SmallVector<Value> groups;
    for (int64_t i = 0; i < tile.getNumLocals(); i += mover.getWidth()) {
      Value position = addressing.getElementPosition(i);
      auto load = [&] {
        return mover.movesWholeBytes() ? mover.loadGroup(position)
                                       : mover.loadBits(position);
      };
      if (op.getInBounds()) {
        Value inside = addressing.areInside(i, mover.getWidth());
        simt::AssertOp::create(rewriter, loc, inside, kOutside);
        groups.push_back(load());
        continue;
      }
      groups.push_back(emitGuarded(rewriter, loc, addressing.isInside(i),
                                   mover.getMachineType(), load));
    }
    rewriter.replaceOp(op, join(rewriter, loc, tile, mover, groups));
    return success();
  }

private:
  /// The thread's registers, made of the groups in the order of locals.
  static Value join(OpBuilder &builder, Location loc, TileType tile,
                    const Mover &mover, ArrayRef<Value> groups) {
    const Group &group = mover.getGroup();
    if (!group.isPacked()) {
      SmallVector<Value> elements;
      for (Value value : groups)
        for (int64_t j = 0; j < group.elements; ++j)
          elements.push_back(
              group.elements == 1
                  ? value
                  : vector::ExtractOp::create(builder, loc, value, j));
      return vector::FromElementsOp::create(builder, loc, getRegisterType(tile),
                                            elements);
    }
    PackedBits bits(builder, loc, tile.getBitsPerThread());
    for (auto [g, value] : llvm::enumerate(groups)) {
      int64_t position = g * group.bits();
      if (auto vector = dyn_cast<VectorType>(value.getType())) {
        for (int64_t j = 0; j < vector.getNumElements(); ++j)
          bits.insert(position + 32 * j, 32,
                      vector::ExtractOp::create(builder, loc, value, j));
        continue;
      }
      Value wide = value;
      if (wide.getType().getIntOrFloatBitWidth() < 32)
        wide = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), wide);
      bits.insert(position, group.bits(), wide);
    }
    return bits.getVector();
  }

  const AccessWidths &widths;
};

struct StorePattern : OpConversionPattern<StoreGlobalOp> {
  StorePattern(const TypeConverter &converter, MLIRContext *context,
               const AccessWidths &widths)
      : OpConversionPattern(converter, context), widths(widths) {}

  LogicalResult
  matchAndRewrite(StoreGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType tile = op.getTile().getType();
    Mover mover(rewriter, loc, adaptor.getDestination(), tile,
                widths.lookup(op));
    Addressing addressing(rewriter, loc,
                          op.getDestination().getDefiningOp<ViewGlobalOp>(),
                          adaptor.getOffsets(), tile.getLayout());
    SmallVector<Value> groups =
        split(rewriter, loc, tile, mover, adaptor.getTile());
    for (auto [g, value] : llvm::enumerate(groups)) {
      int64_t i = g * mover.getWidth();
      Value position = addressing.getElementPosition(i);
      Value condition;
      if (op.getInBounds())
        simt::AssertOp::create(
            rewriter, loc, addressing.areInside(i, mover.getWidth()), kOutside);
      else
        condition = addressing.isInside(i);
      if (Value first = addressing.isFirstOwner())
        condition = condition ? arith::AndIOp::create(rewriter, loc, condition,
                                                      first)
                              : first;
      OpBuilder::InsertionGuard guard(rewriter);
      if (condition) {
        auto branch =
            scf::IfOp::create(rewriter, loc, condition, /*withElse=*/false);
        rewriter.setInsertionPointToStart(branch.thenBlock());
      }
      if (mover.movesWholeBytes())
        mover.storeGroup(value, position);
      else
        mover.storeBits(value, position);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// The groups of the thread's registers, in the order of locals.
  static SmallVector<Value> split(OpBuilder &builder, Location loc,
                                  TileType tile, Mover &mover,
                                  Value registers) {
    const Group &group = mover.getGroup();
    Type type = mover.getMachineType();
    SmallVector<Value> groups;
    auto makeVector = [&](ArrayRef<Value> elements) -> Value {
      return vector::FromElementsOp::create(builder, loc,
                                            cast<VectorType>(type), elements);
    };
    if (!group.isPacked()) {
      for (int64_t i = 0; i < tile.getNumLocals(); i += group.elements) {
        SmallVector<Value> elements;
        for (int64_t j = 0; j < group.elements; ++j)
          elements.push_back(
              vector::ExtractOp::create(builder, loc, registers, i + j));
        groups.push_back(group.elements == 1 ? elements[0]
                                             : makeVector(elements));
      }
      return groups;
    }
    PackedBits bits(builder, loc, registers);
    for (int64_t position = 0; position < tile.getBitsPerThread();
         position += group.bits()) {
      if (group.bits() > 32) {
        SmallVector<Value> words;
        for (int64_t j = 0; j < group.bits(); j += 32)
          words.push_back(bits.extract(position + j, 32));
        groups.push_back(makeVector(words));
        continue;
      }
      Value value = bits.extract(position, group.bits());
      if (type.getIntOrFloatBitWidth() < 32)
        value = arith::TruncIOp::create(builder, loc, type, value);
      groups.push_back(value);
    }
    return groups;
  }

  const AccessWidths &widths;
};

/// A view is its pointer; loads and stores have read the rest off the op.
struct ViewGlobalPattern : OpConversionPattern<ViewGlobalOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ViewGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, adaptor.getSource());
    return success();
  }
};

} // namespace

void lowlp::populateAccessPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns,
                                   const AccessWidths &widths) {
  patterns.add<LoadPattern, StorePattern>(converter, patterns.getContext(),
                                          widths);
  patterns.add<ViewGlobalPattern>(converter, patterns.getContext());
}
