//===- Access.cpp - loads and stores of tiles -----------------------------===//
//
// Elements lie where TilePositions says, and are moved in groups of neighbours
// (AccessWidth). A group of whole bytes is one simt.load or simt.store. An
// element that shares its bytes with others is taken out of the one or two
// bytes that hold it, and put in by an atomic AND and an atomic OR of the one
// or two 32-bit words that hold it (Tilus, section 6.1), because the neighbours
// may be written by other threads at the same time.
//
//===----------------------------------------------------------------------===//
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

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
      return elements == 1
                 ? getThreadElementType(elementType)
                 : Type(VectorType::get({elements},
                                        getThreadElementType(elementType)));
    if (bits() <= 32)
      return IntegerType::get(context, bits());
    return VectorType::get({bits() / 32}, IntegerType::get(context, 32));
  }
};

/// Emits the accesses of one load or store.
class Mover {
public:
  Mover(ConversionPatternRewriter &rewriter, Location loc, Value base,
        Type elementType, int64_t width)
      : rewriter(rewriter), loc(loc), base(base),
        group{width, *getElementBits(elementType), elementType} {}

  bool movesWholeBytes() const { return group.bits() % 8 == 0; }
  int64_t getWidth() const { return group.elements; }

  /// A group of whole bytes at `position`, as `Group::getMachineType`.
  Value loadGroup(Value position) {
    return simt::LoadOp::create(rewriter, loc,
                                group.getMachineType(rewriter.getContext()),
                                base, getByteOffset(position), group.bytes());
  }
  void storeGroup(Value value, Value position) {
    simt::StoreOp::create(rewriter, loc, value, base, getByteOffset(position),
                          group.bytes());
  }
  Value loadBits(Value position);
  void storeBits(Value code, Value position);
  /// One group, or one element that fills no bytes, at `position`.
  Value load(Value position) {
    return movesWholeBytes() ? loadGroup(position) : loadBits(position);
  }
  void store(Value value, Value position) {
    if (movesWholeBytes())
      storeGroup(value, position);
    else
      storeBits(value, position);
  }
  /// Begins to copy a group to `other`.
  void copyAsync(Value position, Mover &other, Value otherPosition) {
    simt::CopyAsyncOp::create(rewriter, loc, base, getByteOffset(position),
                              other.base, other.getByteOffset(otherPosition),
                              group.bytes());
  }

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
  Value crosses = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne,
                                        highMask, i32(0));
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

/// The thread's registers, made of the groups in the order of locals.
static Value join(OpBuilder &builder, Location loc, TileType tile,
                  const Mover &mover, ArrayRef<Value> groups) {
  const Group &group = mover.getGroup();
  if (!group.isPacked()) {
    SmallVector<Value> elements;
    for (Value value : groups)
      for (int64_t j = 0; j < group.elements; ++j)
        elements.push_back(group.elements == 1 ? value
                                               : vector::ExtractOp::create(
                                                     builder, loc, value, j));
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

Value lowlp::emitTileLoad(ConversionPatternRewriter &rewriter, Location loc,
                          Value base, TileType tile, int64_t width,
                          TilePositions &positions, bool isInBounds) {
  Mover mover(rewriter, loc, base, tile.getElementType(), width);
  SmallVector<Value> groups;
  for (int64_t i = 0; i < tile.getNumLocals(); i += mover.getWidth()) {
    Value position = positions.getElementPosition(i);
    auto load = [&] { return mover.load(position); };
    if (isInBounds) {
      Value inside = positions.areInside(i, mover.getWidth());
      simt::AssertOp::create(rewriter, loc, inside, positions.outside);
      groups.push_back(load());
      continue;
    }
    groups.push_back(emitGuarded(rewriter, loc, positions.isInside(i),
                                 mover.getMachineType(), load));
  }
  return join(rewriter, loc, tile, mover, groups);
}

/// The groups of the thread's registers, in the order of locals.
static SmallVector<Value> split(OpBuilder &builder, Location loc, TileType tile,
                                Mover &mover, Value registers) {
  const Group &group = mover.getGroup();
  Type type = mover.getMachineType();
  SmallVector<Value> groups;
  auto makeVector = [&](ArrayRef<Value> elements) -> Value {
    return vector::FromElementsOp::create(builder, loc, cast<VectorType>(type),
                                          elements);
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

void lowlp::emitTileStore(ConversionPatternRewriter &rewriter, Location loc,
                          Value registers, Value base, TileType tile,
                          int64_t width, TilePositions &positions,
                          bool isInBounds) {
  Mover mover(rewriter, loc, base, tile.getElementType(), width);
  SmallVector<Value> groups = split(rewriter, loc, tile, mover, registers);
  for (auto [g, value] : llvm::enumerate(groups)) {
    int64_t i = g * mover.getWidth();
    Value position = positions.getElementPosition(i);
    Value condition;
    if (isInBounds)
      simt::AssertOp::create(rewriter, loc,
                             positions.areInside(i, mover.getWidth()),
                             positions.outside);
    else
      condition = positions.isInside(i);
    if (Value first = positions.isFirstOwner())
      condition = condition
                      ? arith::AndIOp::create(rewriter, loc, condition, first)
                      : first;
    OpBuilder::InsertionGuard guard(rewriter);
    if (condition) {
      auto branch =
          scf::IfOp::create(rewriter, loc, condition, /*withElse=*/false);
      rewriter.setInsertionPointToStart(branch.thenBlock());
    }
    mover.store(value, position);
  }
}

void lowlp::emitGroupCopy(ConversionPatternRewriter &rewriter, Location loc,
                          const GroupCopy &copy) {
  Mover from(rewriter, loc, copy.source, copy.elementType, copy.width);
  Mover to(rewriter, loc, copy.destination, copy.elementType, copy.width);
  if (!from.movesWholeBytes() || from.getGroup().bytes() < 4) {
    auto load = [&] { return from.load(copy.sourcePosition); };
    Value value = copy.isInside ? emitGuarded(rewriter, loc, copy.isInside,
                                              from.getMachineType(), load)
                                : load();
    to.store(value, copy.destinationPosition);
    return;
  }
  OpBuilder::InsertionGuard guard(rewriter);
  if (copy.isInside) {
    auto branch =
        scf::IfOp::create(rewriter, loc, copy.isInside, /*withElse=*/true);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(to.getMachineType()));
    to.store(zero, copy.destinationPosition);
    rewriter.setInsertionPointToStart(branch.thenBlock());
  }
  from.copyAsync(copy.sourcePosition, to, copy.destinationPosition);
}

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
    GlobalPositions positions(rewriter, loc,
                              op.getSource().getDefiningOp<ViewGlobalOp>(),
                              adaptor.getOffsets(), tile.getLayout());
    rewriter.replaceOp(op, emitTileLoad(rewriter, loc, adaptor.getSource(),
                                        tile, widths.lookup(op), positions,
                                        op.getInBounds()));
    return success();
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
    GlobalPositions positions(rewriter, loc,
                              op.getDestination().getDefiningOp<ViewGlobalOp>(),
                              adaptor.getOffsets(), tile.getLayout());
    emitTileStore(rewriter, loc, adaptor.getTile(), adaptor.getDestination(),
                  tile, widths.lookup(op), positions, op.getInBounds());
    rewriter.eraseOp(op);
    return success();
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
