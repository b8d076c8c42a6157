//===- Lookup.cpp - tables in shared memory -------------------------------===//
//
// The registers hold codes without gaps, so a pair of codes of b bits is 2b
// neighbouring bits. A lookup moves them straight to where the address has them
// (TableBits) and adds the thread's copy by an OR:
//
//   codes of 4 bits, 32 copies, pair 2:   word = .... .... pppp pppp .... ....
//
//     ((word >> 9) & 0x7f80) | lane * 4   the byte address: pair * 128 + copy *
//     4
//
// which is a shift, one instruction of three operands (PTX ISA, `lop3`), and a
// load whose immediate offset is where the table begins. Single codes are
// looked up likewise. Slices are put together first, in bytes (ByteWords).
// Where the index fits into a byte of the address that holds no bit of the
// lane, one `prmt` takes both to their places:
//
//   codes of 7 bits, a line of 256 bytes for each entry:
//
//     prmt(word, lane * 4, 0x5514)    bytes of the address: lane * 4, code, 0,
//     0
//
// Codes of 1 bit choose between registers (LookupInRegisters). Where a code may
// name no entry, or the table's extents are no powers of two, a lookup is a
// gather from shared memory.
//
//===----------------------------------------------------------------------===//
#include "ByteWords.h"
#include "LookupInRegisters.h"
#include "SharedMemory.h"
#include "TableBits.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

static Value i32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, 32);
}

/// The thread's number in its block, as an i32.
static Value getThread(OpBuilder &builder, Location loc) {
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  return arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(),
                                      thread);
}

/// Loads `type` at the byte `address`, an i32, of the table at `base`.
static Value load(OpBuilder &builder, Location loc, Type type, Value base,
                  Value address) {
  Value offset =
      arith::ExtUIOp::create(builder, loc, builder.getI64Type(), address);
  return simt::LoadOp::create(builder, loc, type, base, offset,
                              simt::getSizeInBytes(type));
}

//===----------------------------------------------------------------------===//
// Lookups by the bits of the codes
//===----------------------------------------------------------------------===//

namespace {

/// Bits of a thread's registers that are bits of an address.
struct AddressBits {
  unsigned slice;
  /// Of the registers: of the first group of codes, and from one to the next.
  int64_t first, step;
  int64_t width, target;
};

} // namespace

/// Where the address has the bits of each group of `codesPerIndex` codes, whose
/// slices have `widths` bits.
static SmallVector<AddressBits> getAddressBits(ArrayRef<BitRun> runs,
                                               ArrayRef<int64_t> widths,
                                               int64_t codesPerIndex) {
  SmallVector<AddressBits> result;
  int64_t begin = 0;
  for (auto [slice, codeBits] : llvm::enumerate(widths)) {
    int64_t groupBits = codesPerIndex * codeBits;
    for (const BitRun &run : runs) {
      int64_t from = std::max(begin, run.source);
      int64_t to = std::min(begin + groupBits, run.source + run.width);
      if (from < to)
        result.push_back({static_cast<unsigned>(slice), from - begin, groupBits,
                          to - from, run.target + from - run.source});
    }
    begin += groupBits;
  }
  return result;
}

/// The runs of bits of a thread's number that choose its copy.
static SmallVector<BitRun> getLaneBits(SharedType table) {
  int64_t copies = table.getShape()[1];
  // Of more copies than lanes, a lane has the first in a word of its own.
  bool areWords = copies <= kThreadsPerWarp || table.getRank() == 3;
  int64_t skipped = areWords ? 0 : 1;
  int64_t laneBits = llvm::Log2_64(std::min<int64_t>(copies, kThreadsPerWarp));
  SmallVector<BitRun> runs;
  for (const BitRun &run : getTableBits(table, 1)) {
    int64_t from = std::max(run.source, skipped);
    int64_t to = std::min(run.source + run.width, skipped + laneBits);
    if (from < to)
      runs.push_back(
          {from - skipped, run.target + from - run.source, to - from});
  }
  return runs;
}

namespace {

/// A lookup of all codes of a tile in a table that has bits.
class BitLookup {
public:
  /// Of `op`, in whose table every `codesPerIndex` codes have an index.
  template <typename Op>
  BitLookup(Op op, typename Op::Adaptor adaptor, int64_t codesPerIndex)
      : table(op.getTable().getType()), base(adaptor.getTable()),
        codesPerIndex(codesPerIndex) {
    for (auto [registers, slice] :
         llvm::zip_equal(adaptor.getSlices(), op.getSlices())) {
      auto type = cast<TileType>(slice.getType());
      slices.push_back(registers);
      widths.push_back(*getElementBits(type.getElementType()));
      numIndices = type.getNumLocals() / codesPerIndex;
    }
  }

  /// The values, `loaded` for each index.
  SmallVector<Value> emit(OpBuilder &builder, Location loc, Type loaded) const {
    Value copy;
    if (table.getRank() > 1 && table.getShape()[1] > 1)
      copy = moveToAddress(builder, loc, getThread(builder, loc),
                           getLaneBits(table));
    std::optional<ByteIndices> bytes = findBytes();
    SmallVector<Value> words;
    SmallVector<PackedBits> registers;
    if (bytes)
      words = emitByteWords(builder, loc, *bytes, slices);
    else
      for (Value slice : slices)
        registers.emplace_back(builder, loc, slice);
    SmallVector<Value> values;
    for (int64_t i = 0; i < numIndices; ++i) {
      Value address = bytes ? takeByte(builder, loc, *bytes, words, i, copy)
                            : joinSlices(builder, loc, registers, i, copy);
      values.push_back(load(builder, loc, loaded, base, address));
    }
    return values;
  }

private:
  /// How indices get into bytes, if they do.
  std::optional<ByteIndices> findBytes() const {
    SmallVector<int64_t> indexWidths;
    for (int64_t width : widths)
      indexWidths.push_back(codesPerIndex * width);
    std::optional<int64_t> target;
    for (const BitRun &run : getTableBits(table, 0))
      if (run.source == 0 && run.width >= llvm::sum_of(indexWidths))
        target = run.target;
    return ByteIndices::get(indexWidths, numIndices, target);
  }

  /// The address of index `i`, which is in a byte of one of the words.
  Value takeByte(OpBuilder &builder, Location loc, const ByteIndices &bytes,
                 ArrayRef<Value> words, int64_t i, Value copy) const {
    int64_t laneEnd = 0;
    if (copy)
      for (const BitRun &run : getLaneBits(table))
        laneEnd = std::max(laneEnd, run.target + run.width);
    auto [word, byte] = bytes.getPlace(i);
    if (std::optional<int64_t> target = bytes.getByteOfAddress();
        target && laneEnd <= 8 * *target)
      return emitByteAddress(builder, loc, words[word], byte, *target, copy);
    PackedBits registers(builder, loc,
                         vector::FromElementsOp::create(
                             builder, loc,
                             VectorType::get({1}, builder.getI32Type()),
                             words[word]));
    int64_t bit = 8 * byte + bytes.getFirstBit();
    Value address = copy;
    for (const AddressBits &part :
         getAddressBits(getTableBits(table, 0), bytes.getIndexBits(),
                        /*codesPerIndex=*/1))
      address = join(builder, loc,
                     registers.move(bit + part.first, part.width, part.target),
                     address);
    return address;
  }

  /// The address of index `i`, each slice of which goes to its own place.
  Value joinSlices(OpBuilder &builder, Location loc,
                   MutableArrayRef<PackedBits> registers, int64_t i,
                   Value copy) const {
    Value address = copy;
    for (const AddressBits &part :
         getAddressBits(getTableBits(table, 0), widths, codesPerIndex))
      address = join(builder, loc,
                     registers[part.slice].move(part.first + i * part.step,
                                                part.width, part.target),
                     address);
    return address;
  }

  static Value join(OpBuilder &builder, Location loc, Value bits,
                    Value address) {
    return address
               ? arith::OrIOp::create(builder, loc, bits, address).getResult()
               : bits;
  }

  SharedType table;
  Value base;
  /// The registers of each slice, and the bits that it has of a code.
  SmallVector<Value> slices;
  SmallVector<int64_t> widths;
  int64_t codesPerIndex, numIndices = 0;
};

struct LookupPairsPattern : OpConversionPattern<LookupPairsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LookupPairsOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    BitLookup lookup(op, adaptor, /*codesPerIndex=*/2);
    auto pair = VectorType::get({2}, op.getType().getElementType());
    SmallVector<Value> elements;
    for (Value values : lookup.emit(rewriter, loc, pair))
      for (int64_t half : {0, 1})
        elements.push_back(
            vector::ExtractOp::create(rewriter, loc, values, half));
    rewriter.replaceOpWithNewOp<vector::FromElementsOp>(
        op, getRegisterType(op.getType()), elements);
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Lookups of single codes
//===----------------------------------------------------------------------===//

/// Whether every code names an entry, found by its bits. Slices are verified to
/// be such.
static bool isFoundByBits(LookupOp op) {
  SharedType table = op.getTable().getType();
  Type codes =
      cast<TileType>(op.getSlices().front().getType()).getElementType();
  if (op.getSlices().size() > 1)
    return true;
  return codes.isUnsignedInteger() && isPacked(codes) &&
         !isPacked(table.getElementType()) && hasTableBits(table) &&
         table.getShape()[0] >= int64_t(1) << codes.getIntOrFloatBitWidth();
}

namespace {

struct LookupPattern : OpConversionPattern<LookupOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(LookupOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SharedType table = op.getTable().getType();
    auto codes = cast<TileType>(op.getSlices().front().getType());
    Value result;
    if (op.getSlices().size() == 1 && canLookUpInRegisters(table, codes))
      result = lookUpInRegisters(rewriter, getNamedLoc(op), adaptor.getTable(),
                                 codes, adaptor.getSlices().front(),
                                 getRegisterType(op.getType()));
    else if (isFoundByBits(op))
      result = byBits(op, adaptor, rewriter);
    else
      result = byIndices(op, adaptor, rewriter);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  static Value byBits(LookupOp op, OpAdaptor adaptor,
                      ConversionPatternRewriter &rewriter) {
    Location loc = getNamedLoc(op);
    BitLookup lookup(op, adaptor, /*codesPerIndex=*/1);
    VectorType registers = getRegisterType(op.getType());
    return vector::FromElementsOp::create(
        rewriter, loc, registers,
        lookup.emit(rewriter, loc, registers.getElementType()));
  }

  /// The thread's copy of so many, as an index.
  static Value getCopy(OpBuilder &builder, Location loc, int64_t copies) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
    Value copy = arith::RemUIOp::create(
        builder, loc, thread, constant(std::min(copies, kThreadsPerWarp)));
    // Words hold two copies.
    return copies > kThreadsPerWarp
               ? arith::MulIOp::create(builder, loc, copy, constant(2))
                     .getResult()
               : copy;
  }

  static Value byIndices(LookupOp op, OpAdaptor adaptor,
                         ConversionPatternRewriter &rewriter) {
    Location loc = getNamedLoc(op);
    SharedType table = op.getTable().getType();
    GatheredDim codes{
        0, unpackIndices(rewriter, loc,
                         cast<TileType>(op.getSlices().front().getType()),
                         adaptor.getSlices().front())};
    SmallVector<Value> begin{arith::ConstantIndexOp::create(rewriter, loc, 0)};
    // How threads share the codes does not matter to the table.
    std::vector<int64_t> shape{op.getType().getNumLocals()};
    if (table.getRank() == 2) {
      begin.push_back(getCopy(rewriter, loc, table.getShape()[1]));
      shape.push_back(1);
    }
    Layout locals = Layout::local(shape);
    SharedPositions positions(rewriter, loc, table.getLayout(), begin, locals,
                              std::move(codes));
    positions.outside = "a code names no entry of the table";
    auto held =
        TileType::get(op.getContext(), op.getType().getElementType(), locals);
    return emitTileLoad(rewriter, loc, adaptor.getTable(), held, /*width=*/1,
                        positions, /*isInBounds=*/true);
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Filling tables
//===----------------------------------------------------------------------===//

/// How many words of 4 bytes side by side hold the same: copies that one store
/// can write.
static int64_t countEqualWords(SharedType expanded) {
  constexpr int64_t maxWords = 4;
  for (const BitRun &run : getTableBits(expanded, 1))
    if (int64_t end = run.target + run.width; run.target <= 2 && end > 2)
      return std::min(maxWords, int64_t(1) << (end - 2));
  return 1;
}

namespace {

struct ExpandTablePattern : OpConversionPattern<ExpandTableOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ExpandTableOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    SharedType expanded = op.getExpanded().getType();
    int64_t bytesPerStore = 4 * countEqualWords(expanded);
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    int64_t bytesPerRound = bytesPerStore * getNumWorkers(kernel);
    int64_t bytes = expanded.getSizeInBytes();
    int64_t bytesAtOnce = kRoundsAtOnce * bytesPerRound;
    Value address =
        arith::MulIOp::create(rewriter, loc, getThread(rewriter, loc),
                              i32(rewriter, loc, bytesPerStore));
    if (bytes > bytesAtOnce) {
      auto loop = scf::ForOp::create(rewriter, loc, i32(rewriter, loc, 0),
                                     i32(rewriter, loc, bytes),
                                     i32(rewriter, loc, bytesAtOnce));
      rewriter.setInsertionPointToStart(loop.getBody());
      address =
          arith::AddIOp::create(rewriter, loc, address, loop.getInductionVar());
    }
    // All entries are loaded before the first store, so that they arrive
    // together.
    struct Round {
      Value address, words;
      bool isWhole;
    };
    SmallVector<Round> rounds;
    for (int64_t begin = 0; begin < std::min(bytes, bytesAtOnce);
         begin += bytesPerRound) {
      Value at = arith::AddIOp::create(rewriter, loc, address,
                                       i32(rewriter, loc, begin));
      bool isWhole = bytes > bytesAtOnce ? bytes % bytesAtOnce == 0
                                         : begin + bytesPerRound <= bytes;
      rounds.push_back({at,
                        getWords(rewriter, loc, op, adaptor, at, bytesPerStore),
                        isWhole});
    }
    for (const Round &round : rounds) {
      OpBuilder::InsertionGuard guard(rewriter);
      if (!round.isWhole) {
        Value exists =
            arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                  round.address, i32(rewriter, loc, bytes));
        auto branch = scf::IfOp::create(rewriter, loc, exists);
        rewriter.setInsertionPointToStart(branch.thenBlock());
      }
      Value offset = arith::ExtUIOp::create(
          rewriter, loc, rewriter.getI64Type(), round.address);
      simt::StoreOp::create(rewriter, loc, round.words, adaptor.getExpanded(),
                            offset, bytesPerStore);
    }
    rewriter.eraseOp(op);
    return success();
  }

private:
  static constexpr int64_t kRoundsAtOnce = 8;

  /// What the words from the byte `address` on hold, which are all the same. Of
  /// an address after the table, what some other words hold.
  static Value getWords(OpBuilder &builder, Location loc, ExpandTableOp op,
                        OpAdaptor adaptor, Value address,
                        int64_t bytesPerStore) {
    Type element = op.getExpanded().getType().getElementType();
    SmallVector<Value> elements;
    for (int64_t half : {0, 1}) {
      Value code = getCode(builder, loc, op, address, half);
      Value entry =
          arith::ShLIOp::create(builder, loc, code, i32(builder, loc, 1));
      elements.push_back(
          load(builder, loc, element, adaptor.getTable(), entry));
    }
    for (int64_t i = 2; i < bytesPerStore / 2; ++i)
      elements.push_back(elements[i % 2]);
    auto type = VectorType::get({bytesPerStore / 2}, element);
    return vector::FromElementsOp::create(builder, loc, type, elements);
  }

  /// The code of which half `half` of the word at `address` holds the value.
  static Value getCode(OpBuilder &builder, Location loc, ExpandTableOp op,
                       Value address, int64_t half) {
    SharedType expanded = op.getExpanded().getType();
    SmallVector<BitRun> runs = getTableBits(expanded, 0);
    if (expanded.getRank() == 2) {
      Value byte = arith::OrIOp::create(builder, loc, address,
                                        i32(builder, loc, 2 * half));
      return moveFromAddress(builder, loc, byte, runs);
    }
    Value pair = moveFromAddress(builder, loc, address, runs);
    int64_t bits = llvm::Log2_64(expanded.getShape()[0]) / 2;
    SmallVector<BitRun> slices;
    int64_t begin = 0;
    for (int64_t width : op.getSlices().value_or(ArrayRef<int64_t>(bits))) {
      slices.push_back({begin, 2 * begin + half * width, width});
      begin += width;
    }
    return moveFromAddress(builder, loc, pair, slices);
  }
};

} // namespace

void lowlp::populateLookupPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<LookupPattern, LookupPairsPattern, ExpandTablePattern>(
      converter, patterns.getContext());
}
