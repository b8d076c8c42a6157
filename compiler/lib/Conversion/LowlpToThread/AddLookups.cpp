//===- AddLookups.cpp - sums of what codes name ---------------------------===//
//
// Code c of column j names the f32 at c * line + 4 * (column + j). Lanes that
// hold the same columns of other rows would read one bank each time, with other
// entries: so they take their codes in orders of their own. Of eight lanes that
// hold eight columns of a row each, all of one bank group,
//
//   step             0  1  2  3  4  5  6  7
//   lane of row 0    0  1  2  3  4  5  6  7      the column that it reads
//   lane of row 1    1  0  3  2  5  4  7  6
//   lane of row 2    2  3  0  1  6  7  4  5
//                    ...                         step xor row
//
// no two read one column at a time. Each bit of the row that counts goes with a
// bit of the local index: words are exchanged by one selection each, bytes of a
// word by the selector of the instruction which takes the code to its place in
// the address. In lines of 256 bytes that is byte 1, beside the column:
//
//   prmt(word, column * 4, 0x7704 | byte << 4)
//
//===----------------------------------------------------------------------===//
#include "ByteWords.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace lowlp;

static constexpr StringLiteral kNoEntry = "a code names no entry of the table";
static constexpr StringLiteral kNoColumn =
    "the columns of the codes leave the table";
static constexpr int64_t kBytesOfValue = 4;
static constexpr int64_t kBanks = 32;
/// In a line of so many bytes a code of 8 bits is byte 1 of the address.
static constexpr int64_t kByteLine = 256;
/// Of the nibble that names byte 1 of what `prmt` gives.
static constexpr int64_t kSelectorBits = 4;

namespace {

/// What one bit of a thread's number or of the local index adds to an index of
/// the tile.
struct IndexBit {
  int64_t bit, dim, stride;
};

/// A bit of the lane that exchanges the codes whose local indices differ by
/// another, and with them columns that differ by `columns`.
struct Exchange {
  int64_t laneBit, localBit, columns;
};

} // namespace

/// The lowest bits of a list of digits, as far as extents are powers of two;
/// those of replicas have dimension -1.
static SmallVector<IndexBit> getBits(const Layout &layout,
                                     ArrayRef<Digit> digits) {
  SmallVector<IndexBit> bits;
  int64_t bit = 0;
  for (const Digit &digit : llvm::reverse(digits)) {
    if (!llvm::isPowerOf2_64(digit.extent))
      break;
    for (int64_t i = 1; i < digit.extent; i *= 2) {
      if (digit.isReplica()) {
        bits.push_back({bit++, -1, 0});
        continue;
      }
      const Mode &mode = layout.modes()[digit.mode];
      bits.push_back({bit++, mode.dim, mode.stride * i});
    }
  }
  return bits;
}

/// Which lanes exchange which codes so that fewer of them read one bank.
static SmallVector<Exchange> findExchanges(const Layout &layout) {
  // Columns must be made of bits, each of a thread or of a register.
  for (const Mode &mode : layout.modes())
    if (mode.dim == 1 && !llvm::isPowerOf2_64(mode.extent))
      return {};
  SmallVector<IndexBit> columns, rows;
  for (const IndexBit &bit : getBits(layout, layout.localDigits()))
    if (bit.dim == 1 && bit.stride < kBanks)
      columns.push_back(bit);
  for (const IndexBit &bit : getBits(layout, layout.threadDigits()))
    if (bit.dim == 0 && (int64_t(1) << bit.bit) < kThreadsPerWarp)
      rows.push_back(bit);
  SmallVector<Exchange> exchanges;
  for (auto [row, column] : llvm::zip(rows, columns))
    exchanges.push_back({row.bit, column.bit, column.stride});
  return exchanges;
}

namespace {

/// The sums of all codes of a tile, in the program of one thread.
class LookupSums {
public:
  LookupSums(OpBuilder &builder, AddLookupsOp op,
             AddLookupsOp::Adaptor adaptor);

  /// The sums, in the order of the result's local index.
  SmallVector<Value> emit();

private:
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }
  /// Bit `bit` of the thread's number, as an i32.
  Value getThreadBit(int64_t bit);
  /// Sets `words`, and with it what else exchanges change.
  void exchangeCodes();
  Value getCode(int64_t local);
  /// Says so on the CPU target where the code names no entry.
  void checkCode(int64_t local);
  /// The column of the code in the place of local index `local`, times the
  /// bytes of a value. Requires: codes are exchanged.
  Value getPlace(int64_t local);
  Value getAddress(int64_t local);

  OpBuilder &builder;
  Location loc;
  TileType codes;
  Layout layout, sumLayout;
  int64_t codeBits, numEntries, lineBytes;
  Value codeRegisters, sums, base;
  SmallVector<Exchange> exchanges;
  /// Of codes that are exchanged; else none.
  SmallVector<Value> words;
  /// Bits 4 and 5: by what the number of a byte is changed; null for nothing.
  Value selector;
  /// The thread's part of the column, with what exchanges change, times the
  /// bytes of a value.
  Value threadPlace;
};

} // namespace

LookupSums::LookupSums(OpBuilder &builder, AddLookupsOp op,
                       AddLookupsOp::Adaptor adaptor)
    : builder(builder), loc(getNamedLoc(op)), codes(op.getCodes().getType()),
      layout(codes.getLayout()), sumLayout(op.getSums().getType().getLayout()),
      codeBits(codes.getElementType().getIntOrFloatBitWidth()),
      codeRegisters(adaptor.getCodes()), sums(adaptor.getSums()) {
  SharedType table = op.getTable().getType();
  numEntries = table.getShape()[0];
  lineBytes = kBytesOfValue * llvm::product_of(table.getShape().drop_front());
  int64_t last = lineBytes / kBytesOfValue - layout.shape()[1];
  Value isInside = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::ule, adaptor.getColumn(),
      arith::ConstantIndexOp::create(builder, loc, last));
  simt::AssertOp::create(builder, loc, isInside, kNoColumn);
  Value column = arith::IndexCastUIOp::create(
      builder, loc, builder.getI64Type(), adaptor.getColumn());
  Value offset = make<arith::MulIOp>(
      column, arith::ConstantIntOp::create(builder, loc, kBytesOfValue, 64));
  base = simt::OffsetOp::create(builder, loc, adaptor.getTable().getType(),
                                adaptor.getTable(), offset);
  // Only in lines of all banks does the bank follow from the column.
  if (codeBits == 8 && lineBytes % (kBanks * kBytesOfValue) == 0)
    exchanges = findExchanges(layout);
}

Value LookupSums::getThreadBit(int64_t bit) {
  Value thread = arith::IndexCastUIOp::create(
      builder, loc, builder.getI32Type(),
      gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x));
  return make<arith::AndIOp>(make<arith::ShRUIOp>(thread, i32(bit)), i32(1));
}

void LookupSums::exchangeCodes() {
  auto type = cast<VectorType>(codeRegisters.getType());
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    words.push_back(vector::ExtractOp::create(builder, loc, codeRegisters, i));
  for (const Exchange &exchange : exchanges) {
    Value bit = getThreadBit(exchange.laneBit);
    threadPlace = make<arith::AddIOp>(
        threadPlace,
        make<arith::MulIOp>(bit, i32(kBytesOfValue * exchange.columns)));
    // A word has four codes: bits 0 and 1 of a local index are of a byte.
    if (exchange.localBit < 2) {
      Value change =
          make<arith::ShLIOp>(bit, i32(kSelectorBits + exchange.localBit));
      selector = selector ? make<arith::OrIOp>(selector, change) : change;
      continue;
    }
    Value isExchanged = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ne, bit, i32(0));
    auto distance = static_cast<size_t>(1) << (exchange.localBit - 2);
    for (size_t i = 0; i < words.size(); ++i) {
      if ((i & distance) != 0)
        continue;
      Value low = words[i], high = words[i + distance];
      words[i] = arith::SelectOp::create(builder, loc, isExchanged, high, low);
      words[i + distance] =
          arith::SelectOp::create(builder, loc, isExchanged, low, high);
    }
  }
}

Value LookupSums::getCode(int64_t local) {
  if (isPacked(codes.getElementType()))
    return PackedBits(builder, loc, codeRegisters)
        .extract(local * codeBits, codeBits);
  Value code = vector::ExtractOp::create(builder, loc, codeRegisters, local);
  return codeBits < 32
             ? arith::ExtUIOp::create(builder, loc, builder.getI32Type(), code)
                   .getResult()
             : code;
}

Value LookupSums::getPlace(int64_t local) {
  // Bits that are exchanged are in both.
  return make<arith::XOrIOp>(threadPlace,
                             i32(kBytesOfValue * layout.evaluate(0, local)[1]));
}

void LookupSums::checkCode(int64_t local) {
  if ((int64_t(1) << codeBits) <= numEntries)
    return;
  Value isEntry = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                        getCode(local), i32(numEntries));
  simt::AssertOp::create(builder, loc, isEntry, kNoEntry);
}

Value LookupSums::getAddress(int64_t local) {
  if (words.empty()) {
    Value place = make<arith::AddIOp>(
        threadPlace, i32(kBytesOfValue * layout.evaluate(0, local)[1]));
    return make<arith::AddIOp>(
        make<arith::MulIOp>(getCode(local), i32(lineBytes)), place);
  }
  Value word = words[local / 4];
  int64_t byte = local % 4;
  Value place = getPlace(local);
  bool isByte = lineBytes == kByteLine;
  if (isByte && !selector)
    return emitByteAddress(builder, loc, word, byte, /*target=*/1, place);
  // Byte 7 is zero; byte 4 is the column.
  int64_t plain = (isByte ? 0x7704 : 0x7770) | byte << (isByte ? 4 : 0);
  Value chosen = i32(plain);
  if (selector)
    chosen = make<arith::XOrIOp>(
        isByte ? selector : make<arith::ShRUIOp>(selector, i32(kSelectorBits)),
        chosen);
  if (isByte)
    return simt::SelectBytesOp::create(builder, loc, builder.getI32Type(), word,
                                       place, chosen);
  Value code = simt::SelectBytesOp::create(builder, loc, builder.getI32Type(),
                                           word, i32(0), chosen);
  return make<arith::AddIOp>(make<arith::MulIOp>(code, i32(lineBytes)), place);
}

SmallVector<Value> LookupSums::emit() {
  threadPlace = make<arith::MulIOp>(
      buildThreadPart(builder, loc, layout, /*dim=*/1), i32(kBytesOfValue));
  if (!exchanges.empty())
    exchangeCodes();
  SmallVector<Value> results;
  std::map<int64_t, size_t> sumOfRow;
  for (int64_t i = 0; i < sumLayout.numLocals(); ++i) {
    sumOfRow[sumLayout.evaluate(0, i)[0]] = results.size();
    results.push_back(vector::ExtractOp::create(builder, loc, sums, i));
  }
  for (int64_t i = 0; i < layout.numLocals(); ++i)
    checkCode(i);
  for (int64_t i = 0; i < layout.numLocals(); ++i) {
    Value offset = arith::ExtUIOp::create(builder, loc, builder.getI64Type(),
                                          getAddress(i));
    Value value =
        simt::LoadOp::create(builder, loc, builder.getF32Type(), base, offset,
                             /*align=*/kBytesOfValue);
    Value &sum = results[sumOfRow[layout.evaluate(0, i)[0]]];
    sum = make<arith::AddFOp>(sum, value);
  }
  return results;
}

namespace {

struct AddLookupsPattern : OpConversionPattern<AddLookupsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(AddLookupsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> results = LookupSums(rewriter, op, adaptor).emit();
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, getRegisterType(op.getSums().getType()), results);
    return success();
  }
};

} // namespace

void lowlp::populateAddLookupsPattern(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<AddLookupsPattern>(converter, patterns.getContext());
}
