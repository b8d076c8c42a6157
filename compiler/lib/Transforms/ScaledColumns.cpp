//===- ScaledColumns.cpp - columns that take powers of two ----------------===//
#include "ScaledColumns.h"

#include "CodedProducts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Constant tiles
//===----------------------------------------------------------------------===//

Value lowlp::buildSplat(OpBuilder &builder, Location loc, TileType type,
                        double number) {
  TypedAttr attribute;
  if (type.getElementType().isInteger())
    attribute = builder.getI32IntegerAttr(static_cast<int32_t>(number));
  else
    attribute = builder.getFloatAttr(type.getElementType(), number);
  Value scalar = arith::ConstantOp::create(builder, loc, attribute);
  return SplatOp::create(builder, loc, type, scalar);
}

Value lowlp::buildRows(OpBuilder &builder, Location loc, TileType type,
                       ArrayRef<float> values) {
  if (llvm::all_equal(values))
    return buildSplat(builder, loc, type, values.front());
  return RowConstantsOp::create(builder, loc, type, values);
}

//===----------------------------------------------------------------------===//
// Columns of factors
//===----------------------------------------------------------------------===//

/// What a column is before threads give it to each other, or see it in other
/// dimensions.
static Value stripMoves(Value column) {
  while (Operation *op = column.getDefiningOp()) {
    if (!isa<ConvertLayoutOp, ViewOp>(op))
      break;
    Value source = op->getOperand(0);
    if (cast<TileType>(source.getType()).getElementType() !=
        cast<TileType>(column.getType()).getElementType())
      break;
    column = source;
  }
  return column;
}

/// `numbers`, of the layout of `column`, as `stripMoves(column)` lies.
static Value moveBack(OpBuilder &builder, Value column, Value numbers) {
  Value made = stripMoves(column);
  while (column != made) {
    Operation *op = column.getDefiningOp();
    Type type = op->getOperand(0).getType();
    numbers =
        isa<ViewOp>(op)
            ? ViewOp::create(builder, op->getLoc(), type, numbers).getResult()
            : ConvertLayoutOp::create(builder, op->getLoc(), type, numbers)
                  .getResult();
    column = op->getOperand(0);
  }
  return numbers;
}

/// The column made anew out of `source` in place of `stripMoves(column)`.
static Value moveAgain(OpBuilder &builder, Value column, Value source) {
  if (column == stripMoves(column))
    return source;
  Operation *op = column.getDefiningOp();
  IRMapping mapping;
  mapping.map(op->getOperand(0), moveAgain(builder, op->getOperand(0), source));
  return builder.clone(*op, mapping)->getResult(0);
}

/// Whether f32 holds what a column of numbers of f16 or fewer bits is times any
/// normal power of two that a plan has.
static bool areSmall(Value column) {
  auto wide = column.getDefiningOp<CastOp>();
  if (!wide || !wide.getType().getElementType().isF32())
    return false;
  Type narrow = wide.getSource().getType().getElementType();
  return narrow.isF16() || *getElementBits(narrow) <= 8;
}

/// Of some powers of two those by which f32 holds what a column of bf16 is,
/// with 1 for others: it has 16 bits more below the least bits of bf16, and no
/// number above. None for any other column.
static SmallVector<float> getHeldByBF16(Value column, ArrayRef<float> powers) {
  auto wide = column.getDefiningOp<CastOp>();
  if (!wide || !wide.getType().getElementType().isF32() ||
      !wide.getSource().getType().getElementType().isBF16())
    return {};
  return llvm::map_to_vector(powers, [](float power) {
    return power <= 1.0f && power >= 0x1p-16f ? power : 1.0f;
  });
}

/// The least and the greatest that a positive scalar may be, as the program
/// says: a constant; max(min(scalar, greatest), least); or a product of such.
static std::optional<std::pair<double, double>> getBounds(Value scalar) {
  llvm::APFloat low(0.0f), high(0.0f);
  if (matchPattern(scalar, m_ConstantFloat(&low)))
    return std::pair(low.convertToDouble(), low.convertToDouble());
  if (auto product = scalar.getDefiningOp<arith::MulFOp>()) {
    auto left = getBounds(product.getLhs()),
         right = getBounds(product.getRhs());
    if (!left || !right)
      return std::nullopt;
    return std::pair(left->first * right->first, left->second * right->second);
  }
  auto least = scalar.getDefiningOp<arith::MaximumFOp>();
  auto most = least ? least.getLhs().getDefiningOp<arith::MinimumFOp>()
                    : arith::MinimumFOp();
  if (most && matchPattern(least.getRhs(), m_ConstantFloat(&low)) &&
      matchPattern(most.getRhs(), m_ConstantFloat(&high)))
    return std::pair(low.convertToDouble(), high.convertToDouble());
  return std::nullopt;
}

/// Whether a tile is a scalar that lies from 2^-64 to 2^64.
static bool isBoundedSplat(Value tile) {
  auto splat = tile.getDefiningOp<SplatOp>();
  if (!splat)
    return false;
  auto bounds = getBounds(splat.getValue());
  return bounds && bounds->first >= 0x1p-64 && bounds->second <= 0x1p64;
}

/// Small numbers, or small numbers times a bounded scalar.
static bool areBounded(Value column) {
  auto product = column.getDefiningOp<MulOp>();
  return areSmall(column) || (product && areSmall(product.getLhs()) &&
                              isBoundedSplat(product.getRhs()));
}

/// The product of two such columns, an integer of a group and what multiplies
/// several groups (docs/adr/0043); null for anything else. Integers of 8 bits,
/// and bounded scalars, take as much off the powers of two that f32 holds.
static MulOp getProductOfSmall(Value column, ArrayRef<float> powers) {
  auto product = column.getDefiningOp<MulOp>();
  if (!product || !areSmall(product.getLhs()) || !areBounded(product.getRhs()))
    return {};
  float most = areSmall(product.getRhs()) ? 0x1p64f : 0x1p32f;
  bool fits = llvm::all_of(powers, [&](float power) {
    return power < most && (most == 0x1p64f || power > 0x1p-32f);
  });
  return fits ? product : MulOp();
}

std::optional<ColumnOfFactors> lowlp::findColumn(Value tile,
                                                 ArrayRef<float> powers) {
  Operation *product = tile.hasOneUse() ? *tile.user_begin() : nullptr;
  // The third operand of an fma is added.
  if (!isa_and_nonnull<MulOp, FmaOp>(product) ||
      tile.use_begin()->getOperandNumber() > 1)
    return std::nullopt;
  OpOperand &factor =
      product->getOpOperand(1 - tile.use_begin()->getOperandNumber());
  Value column = getRepeatedColumn(factor.get());
  if (!column)
    return std::nullopt;
  Value made = stripMoves(column);
  MulOp parts = getProductOfSmall(made, powers);
  bool areNear = llvm::all_of(
      powers, [](float power) { return power < 0x1p32f && power > 0x1p-32f; });
  if (parts || areSmall(made) || (areNear && areBounded(made)))
    return ColumnOfFactors{&factor, column, made, parts,
                           llvm::to_vector(powers)};
  SmallVector<float> held = getHeldByBF16(made, powers);
  if (llvm::all_equal(held) && (held.empty() || held.front() == 1.0f))
    return std::nullopt;
  return ColumnOfFactors{&factor, column, made, parts, std::move(held)};
}

void lowlp::multiplyColumn(const ColumnOfFactors &found) {
  OpBuilder builder(found.factor->getOwner());
  Location loc = found.factor->getOwner()->getLoc();
  Value column = found.column;
  Value rows = moveBack(
      builder, column,
      buildRows(builder, loc, cast<TileType>(column.getType()), found.taken));
  // The second factor is that of several groups, and once multiplied.
  MulOp parts = found.parts;
  Value scaled =
      MulOp::create(builder, loc, parts ? parts.getRhs() : found.made, rows);
  if (parts)
    scaled = MulOp::create(builder, loc, parts.getLhs(), scaled);
  scaled = moveAgain(builder, column, scaled);
  found.factor->assign(
      BroadcastOp::create(builder, loc, found.factor->get().getType(), scaled));
}

static SmallVector<float> getPowers(ArrayRef<DecodePlan::Row> rows) {
  return llvm::map_to_vector(rows, [](const DecodePlan::Row &row) {
    return static_cast<float>(1 / row.getFactor());
  });
}

bool lowlp::canScaleColumn(Value tile, ArrayRef<DecodePlan::Row> rows) {
  if (llvm::any_of(rows,
                   [](const DecodePlan::Row &row) { return row.offset != 0; }))
    return false;
  SmallVector<float> powers = getPowers(rows);
  std::optional<ColumnOfFactors> column = findColumn(tile, powers);
  return column && column->takesAll(powers);
}

void lowlp::scaleColumn(Value tile, ArrayRef<DecodePlan::Row> rows) {
  multiplyColumn(*findColumn(tile, getPowers(rows)));
}
