//===- LowlpLookupOps.cpp - tables in shared memory -----------------------===//
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

/// The most copies that a table may have: one for each lane of a warp.
static constexpr int64_t kMaxCopies = 32;
/// Of entries and pairs of halves: as many as 256 bytes hold, so that an index
/// is a byte of the address.
static constexpr int64_t kMaxCopiesOfHalves = 128;
static constexpr int64_t kMaxCopiesOfPairs = 64;
/// The widest codes that are looked up in pairs.
static constexpr int64_t kMaxPairedBits = 6;

static LogicalResult verifyCopies(Operation *op, int64_t copies, int64_t most) {
  if (llvm::isPowerOf2_64(copies) && copies <= most)
    return success();
  return op->emitOpError("a table has a power of two of copies, at most ")
         << most << ", but this one has " << copies;
}

/// The most copies of single entries.
static int64_t getMostCopies(SharedType table) {
  Type element = table.getElementType();
  return element.isF16() || element.isBF16() ? kMaxCopiesOfHalves : kMaxCopies;
}

/// What a table of pairs of codes of `bits` bits must satisfy.
static LogicalResult verifyPairTable(Operation *op, SharedType table,
                                     int64_t bits) {
  if (bits < 1 || bits > kMaxPairedBits)
    return op->emitOpError("codes in pairs have 1 to ")
           << kMaxPairedBits << " bits, but these have " << bits;
  int64_t numPairs = int64_t(1) << 2 * bits;
  ArrayRef<int64_t> shape = table.getShape();
  if (shape.size() != 3 || shape[0] != numPairs || shape[2] != 2)
    return op->emitOpError("the table of pairs must be of ")
           << numPairs << " x copies x 2 elements, but is "
           << llvm::interleaved(shape, "x");
  if (failed(verifyCopies(op, shape[1], kMaxCopiesOfPairs)))
    return failure();
  if (table.getLayout().contiguousAddresses(2) != 2 ||
      table.getLayout().swizzle())
    return op->emitOpError("the values of a pair must lie side by side, "
                           "without a swizzle, but the layout is ")
           << table.getLayout().str();
  return success();
}

static LogicalResult verifyHalves(Operation *op, SharedType table) {
  Type element = table.getElementType();
  if (element.isF16() || element.isBF16())
    return success();
  return op->emitOpError("the table must hold f16 or bf16, but holds ")
         << element;
}

/// Checks the tiles of codes that make up one index; returns their bits.
static FailureOr<int64_t> verifySlices(Operation *op, OperandRange slices) {
  auto first = cast<TileType>(slices.front().getType());
  int64_t bits = 0;
  for (Type type : slices.getTypes()) {
    auto slice = cast<TileType>(type);
    if (!slice.getElementType().isUnsignedInteger() ||
        !getScalarFormat(slice.getElementType()))
      return op->emitOpError("such codes must be unsigned integers of up to 8 "
                             "bits, but are ")
             << slice.getElementType();
    if (slice.getLayout() != first.getLayout())
      return op->emitOpError("all slices must have the layout ")
             << str(first.getLayout()) << ", but one has "
             << str(slice.getLayout());
    bits += slice.getElementType().getIntOrFloatBitWidth();
  }
  return bits;
}

LogicalResult LookupOp::verify() {
  SharedType table = getTable().getType();
  if (getSlices().empty())
    return emitOpError("expected at least one tile of codes");
  auto codes = cast<TileType>(getSlices().front().getType());
  if (table.getRank() > 2)
    return emitOpError("a table has 1 dimension, or 2 with copies, but this "
                       "one has ")
           << table.getRank();
  if (table.getRank() == 2 &&
      failed(verifyCopies(*this, table.getShape()[1], getMostCopies(table))))
    return failure();
  if (!isa<IntegerType>(codes.getElementType()))
    return emitOpError("codes must be integers, but are ")
           << codes.getElementType();
  if (getSlices().size() > 1) {
    FailureOr<int64_t> bits = verifySlices(*this, getSlices());
    if (failed(bits))
      return failure();
    int64_t numEntries = table.getShape()[0];
    if (*bits > 8 || numEntries < int64_t(1) << *bits ||
        !llvm::isPowerOf2_64(numEntries) || table.getLayout().swizzle() ||
        getScalarFormat(table.getElementType()))
      return emitOpError("slices of ")
             << *bits
             << " bits need an entry of 16 or 32 bits for every code of up to "
                "8 bits, a power of two of them, without a swizzle, but the "
                "table is "
             << table;
  }
  TileType expected = codes.cloneWith(table.getElementType());
  if (getType() != expected)
    return emitOpError("the result must be ")
           << expected << ", but is " << getType();
  return success();
}

LogicalResult LookupPairsOp::verify() {
  if (getSlices().empty())
    return emitOpError("expected at least one tile of codes");
  FailureOr<int64_t> bits = verifySlices(*this, getSlices());
  if (failed(bits))
    return failure();
  auto first = cast<TileType>(getSlices().front().getType());
  if (first.getNumLocals() % 2 != 0)
    return emitOpError("each thread must hold pairs of codes, but holds ")
           << first.getNumLocals();
  SharedType table = getTable().getType();
  if (failed(verifyHalves(*this, table)) ||
      failed(verifyPairTable(*this, table, *bits)))
    return failure();
  TileType expected = first.cloneWith(table.getElementType());
  if (getType() != expected)
    return emitOpError("the result must be ")
           << expected << ", but is " << getType();
  return success();
}

LogicalResult AddLookupsOp::verify() {
  TileType codes = getCodes().getType(), sums = getSums().getType();
  SharedType table = getTable().getType();
  if (!codes.getElementType().isUnsignedInteger())
    return emitOpError("codes must be unsigned integers, but are ")
           << codes.getElementType();
  if (codes.getRank() != 2)
    return emitOpError("codes must have 2 dimensions, rows and columns, but "
                       "have ")
           << codes.getRank();
  if (!table.getElementType().isF32() || table.getRank() < 2 ||
      table.getLayout() != *SharedLayout::plain(Layout::local(
                               std::vector<int64_t>(table.getShape()))))
    return emitOpError("the table must be of f32, of entries by columns in "
                       "row-major order, but is ")
           << table;
  int64_t columns = llvm::product_of(table.getShape().drop_front());
  if (columns < codes.getShape()[1])
    return emitOpError("the table must have at least ")
           << codes.getShape()[1] << " columns, but has " << columns;
  if (std::optional<int64_t> first = getConstantIntValue(getColumn());
      first && (*first < 0 || *first > columns - codes.getShape()[1]))
    return emitOpError("the first column must be 0 to ")
           << columns - codes.getShape()[1] << ", but is " << *first;
  TileType expected =
      TileType::get(getContext(), Float32Type::get(getContext()),
                    *dropLocals(codes.getLayout(), /*dim=*/1));
  if (sums != expected)
    return emitOpError("the sums must be ") << expected << ", but are " << sums;
  return success();
}

LogicalResult ExpandTableOp::verify() {
  SharedType table = getTable().getType(), expanded = getExpanded().getType();
  if (failed(verifyHalves(*this, table)))
    return failure();
  if (table.getElementType() != expanded.getElementType())
    return emitOpError("element types must match: the table holds ")
           << table.getElementType() << ", the expanded one holds "
           << expanded.getElementType();
  if (table.getRank() != 1)
    return emitOpError("the table must have 1 dimension, but has ")
           << table.getRank();
  int64_t numCodes = expanded.getShape()[0];
  if (expanded.getRank() == 2) {
    if (getSlices())
      return emitOpError("only tables of pairs have slices");
    if (!llvm::isPowerOf2_64(numCodes) || numCodes < 2 ||
        expanded.getLayout().swizzle())
      return emitOpError("a table with copies must hold a power of two of "
                         "entries, without a swizzle, but is ")
             << expanded;
    if (failed(verifyCopies(*this, expanded.getShape()[1],
                            getMostCopies(expanded))))
      return failure();
  } else if (expanded.getRank() == 3) {
    int64_t bits = llvm::Log2_64(numCodes) / 2;
    if (failed(verifyPairTable(*this, expanded, bits)))
      return failure();
    int64_t sum = 0;
    for (int64_t slice : getSlices().value_or(ArrayRef<int64_t>(bits))) {
      if (slice < 1)
        return emitOpError("a slice has at least 1 bit, but one has ") << slice;
      sum += slice;
    }
    if (sum != bits)
      return emitOpError("the slices must have ")
             << bits << " bits together, but have " << sum;
    numCodes = int64_t(1) << bits;
  } else {
    return emitOpError("the expanded table must have 2 or 3 dimensions, but "
                       "has ")
           << expanded.getRank();
  }
  if (table.getShape()[0] < numCodes)
    return emitOpError("the table must have at least ")
           << numCodes << " entries, but has " << table.getShape()[0];
  return success();
}
