//===- LookupVectors.cpp - vectors of codebooks ---------------------------===//
//
// Entry c of book b is read from registers below the first boundary of the
// cache, from shared memory below the second, else from global memory:
//
//   if c < registers:   select(c == 0, entry 0, select(c == 1, ...))
//   elif c < shared:    shared [c * line + b * book + copy * bytes]
//   else:               global [(b * entries + c) * bytes]
//
// What a code cannot reach is not tested for. The copy is made of those bits of
// the thread's number that do not say which book it reads, the lowest first:
// lanes of one phase that read one book then read different copies. All that
// depends on the thread is one register, the lane's slot in a line; the rest of
// b is a number, which the load adds. Of books that are exchanged by another
// index all of b depends on the thread, and each column has a slot. In lines of
// 256 bytes a code of 8 bits is byte 1 of the address and the slot byte 0, so
// that one `prmt` makes it:
//
//   prmt(word, slot, 0x7704 | byte << 4)    bytes of the address: slot, code,
//   0, 0
//
// Matrices of 8 entries are gathered likewise by `ldmatrix`: each lane gives
// the address of an entry, which goes to four lanes.
//
//===----------------------------------------------------------------------===//
#include "ByteWords.h"
#include "CodebookEntry.h"
#include "Codebooks.h"
#include "TableBits.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace lowlp;

static constexpr StringLiteral kNoEntry =
    "a code names no entry of the codebook";
/// In a line of so many bytes a code of 8 bits is byte 1 of the address.
static constexpr int64_t kByteLine = 256;

namespace {

/// A lookup of all codes of a part, in the program of one thread.
class VectorLookup {
public:
  VectorLookup(OpBuilder &builder, LookupVectorsOp op, Value codes,
               ValueRange parts, EntryPlan plan);

  /// The entries that the codes name, in the order of the part's local index.
  SmallVector<Value> emit();
  /// The words of a tile that is gathered as matrices, by a load for each of
  /// the part's `locals`.
  SmallVector<Value> emitMatrices(ArrayRef<int64_t> locals);

private:
  Value i32(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  }
  Value i64(int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  }
  Value toI64(Value value) {
    return arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value);
  }
  Value isBelow(Value code, int64_t end) {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, code,
                                 i32(end));
  }

  /// The number of the book of local element `i` that all threads have in
  /// common.
  int64_t getCommonBook(int64_t i);
  /// What the thread adds to it; null for none.
  Value getThreadBook();
  /// Of books that are exchanged: what the thread adds for local element `i`.
  Value getStaggeredBook(int64_t i);
  /// Makes `threadBook` and `slot` those of local element `i`.
  void enter(int64_t i);
  /// The lane's slot in a line, in bytes.
  Value getSlot();
  /// The code in the register `local` of the tile, as an i32.
  Value getCode(int64_t local);

  /// Whether a code may be the number of no entry.
  bool mayMiss() const {
    return (int64_t(1) << codeBits) > codebook.getNumEntries();
  }
  void checkCode(Value code) {
    simt::AssertOp::create(builder, loc,
                           isBelow(code, codebook.getNumEntries()), kNoEntry);
  }

  Value emitEntry(int64_t local, int64_t book);
  /// Where the entry is in shared memory: a begin, and bytes from there on.
  std::pair<Value, Value> getSharedPlace(int64_t local, int64_t book);
  Value loadShared(int64_t local, int64_t book);
  Value loadGlobal(Value code, int64_t book);
  Value selectRegister(Value code, int64_t book);
  Value choose(Value condition, llvm::function_ref<Value()> ifTrue,
               llvm::function_ref<Value()> ifFalse);

  OpBuilder &builder;
  Location loc;
  LookupVectorsOp op;
  CodebookType codebook;
  Layout layout;
  Value codes, global, shared;
  ValueRange registers;
  EntryPlan plan;
  int64_t codeBits;
  /// The most that a code can be, and one.
  int64_t reach;
  Value threadBook, slot;
  /// Of exchanged books: the thread's book and slot, by what the register adds
  /// to the two indices.
  std::map<std::pair<int64_t, int64_t>, std::pair<Value, Value>> staggered;
};

} // namespace

VectorLookup::VectorLookup(OpBuilder &builder, LookupVectorsOp op, Value codes,
                           ValueRange parts, EntryPlan plan)
    : builder(builder), loc(getNamedLoc(op)), op(op),
      codebook(op.getCodebook().getType()), layout(op.getPartLayout()),
      codes(codes), plan(plan),
      codeBits(*getElementBits(op.getCodes().getType().getElementType())),
      reach(std::min(int64_t(1) << codeBits, codebook.getNumEntries())) {
  if (codebook.hasGlobalEntries()) {
    global = parts.front();
    parts = parts.drop_front();
  }
  if (codebook.getSharedEntries() != 0) {
    shared = parts.front();
    parts = parts.drop_front();
  }
  registers = parts;
  if (op.getStaggered())
    return;
  threadBook = getThreadBook();
  if (shared)
    slot = getSlot();
}

int64_t VectorLookup::getCommonBook(int64_t i) {
  auto book = static_cast<int64_t>(op.getBook());
  std::optional<uint64_t> dim = op.getBookAlong();
  if (!dim && op.getStaggered())
    return 0; // all of it depends on the thread
  if (dim && !op.getStaggered())
    book += layout.evaluate(0, i)[*dim];
  return book;
}

Value VectorLookup::getThreadBook() {
  std::optional<uint64_t> dim = op.getBookAlong();
  if (!dim)
    return {};
  return buildThreadPart(builder, loc, layout, static_cast<int64_t>(*dim));
}

/// What books are exchanged by: bit b is the parity of `index & masks[b]`.
static Value buildExchange(OpBuilder &builder, Location loc, Value index,
                           ArrayRef<int64_t> masks) {
  auto i32 = [&](int64_t value) {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  Value all = i32(0);
  for (auto [target, mask] : llvm::enumerate(masks)) {
    auto bit = static_cast<int64_t>(target);
    for (int64_t source = 0; mask >> source != 0; ++source) {
      if ((mask >> source & 1) == 0)
        continue;
      Value moved = index;
      if (source > bit)
        moved = arith::ShRUIOp::create(builder, loc, index, i32(source - bit));
      if (source < bit)
        moved = arith::ShLIOp::create(builder, loc, index, i32(bit - source));
      moved =
          arith::AndIOp::create(builder, loc, moved, i32(int64_t(1) << bit));
      all = arith::XOrIOp::create(builder, loc, all, moved);
    }
  }
  return all;
}

Value VectorLookup::getStaggeredBook(int64_t i) {
  ArrayRef<int64_t> staggered = *op.getStaggered();
  std::vector<int64_t> index = layout.evaluate(0, i);
  auto at = [&](int64_t dim) -> Value {
    Value thread = buildThreadPart(builder, loc, layout, dim);
    return thread ? arith::AddIOp::create(builder, loc, thread, i32(index[dim]))
                        .getResult()
                  : i32(index[dim]);
  };
  Value exchange = buildExchange(builder, loc, at(staggered.front()),
                                 staggered.drop_front());
  Value own = i32(static_cast<int64_t>(op.getBook()));
  if (std::optional<uint64_t> along = op.getBookAlong())
    own = at(static_cast<int64_t>(*along));
  return arith::XOrIOp::create(builder, loc, own, exchange);
}

void VectorLookup::enter(int64_t i) {
  if (!op.getStaggered())
    return;
  ArrayRef<int64_t> numbers = *op.getStaggered();
  // Bits above all masks do not count.
  int64_t period = 1;
  for (int64_t mask : numbers.drop_front())
    period = std::max(period, static_cast<int64_t>(llvm::bit_ceil(
                                  static_cast<uint64_t>(mask) + 1)));
  std::vector<int64_t> index = layout.evaluate(0, i);
  std::optional<uint64_t> along = op.getBookAlong();
  auto [known, isNew] = staggered.try_emplace(
      {along ? index[*along] : 0, index[numbers.front()] % period});
  if (isNew) {
    threadBook = getStaggeredBook(i);
    slot = shared ? getSlot() : Value();
    known->second = {threadBook, slot};
  }
  std::tie(threadBook, slot) = known->second;
}

/// The bits of a thread's number within its warp that choose the copy of so
/// many, as bits from `target` on.
static SmallVector<BitRun> getCopyBits(const Layout &layout,
                                       std::optional<uint64_t> bookDim,
                                       int64_t copies, int64_t target) {
  // The bits of the thread's number that say which book it reads.
  int64_t bookBits = 0, bit = 0;
  for (const Digit &digit : llvm::reverse(layout.threadDigits())) {
    if (!llvm::isPowerOf2_64(digit.extent))
      break;
    int64_t width = llvm::Log2_64(digit.extent);
    if (bookDim && !digit.isReplica() &&
        layout.modes()[digit.mode].dim == static_cast<int64_t>(*bookDim))
      bookBits |= ((int64_t(1) << width) - 1) << bit;
    bit += width;
  }
  // Lanes that read different books differ by them already, unless there are
  // more copies than others to tell apart.
  constexpr int64_t lanes = kThreadsPerWarp - 1;
  SmallVector<BitRun> runs;
  int64_t wanted = llvm::Log2_64(copies), taken = 0;
  for (int64_t candidates : {lanes & ~bookBits, lanes & bookBits})
    for (int64_t source = 0; candidates >> source != 0 && taken < wanted;
         ++source) {
      if ((candidates >> source & 1) == 0)
        continue;
      if (!runs.empty() && runs.back().source + runs.back().width == source)
        ++runs.back().width;
      else
        runs.push_back({source, target + taken, 1});
      ++taken;
    }
  return runs;
}

Value VectorLookup::getSlot() {
  int64_t bytes = codebook.getEntryBytes();
  int64_t copies = codebook.getCache().getCopies();
  Value slot;
  if (copies > 1) {
    Value thread = arith::IndexCastUIOp::create(
        builder, loc, builder.getI32Type(),
        gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x));
    // Books that lanes differ in are told apart by other bits than copies.
    std::optional<uint64_t> bookDim = op.getBookAlong();
    if (!bookDim && op.getStaggered())
      bookDim = op.getStaggered()->front();
    slot = moveToAddress(
        builder, loc, thread,
        getCopyBits(layout, bookDim, copies, llvm::Log2_64(bytes)));
  }
  if (threadBook) {
    Value part = arith::MulIOp::create(builder, loc, threadBook,
                                       i32(codebook.getCache().getBookBytes()));
    slot = slot ? arith::AddIOp::create(builder, loc, slot, part).getResult()
                : part;
  }
  return slot;
}

Value VectorLookup::getCode(int64_t local) {
  if (isPacked(op.getCodes().getType().getElementType()))
    return PackedBits(builder, loc, codes).extract(local * codeBits, codeBits);
  Value code = vector::ExtractOp::create(builder, loc, codes, local);
  if (codeBits < 32)
    code = arith::ExtUIOp::create(builder, loc, builder.getI32Type(), code);
  return code;
}

std::pair<Value, Value> VectorLookup::getSharedPlace(int64_t local,
                                                     int64_t book) {
  int64_t line = codebook.getCache().getLineBytes();
  Value address;
  bool isByte = codeBits == 8 && line == kByteLine &&
                (!threadBook || codebook.getCache().areBooksInLines());
  if (isByte) {
    Value word = vector::ExtractOp::create(builder, loc, codes, local / 4);
    address =
        emitByteAddress(builder, loc, word, local % 4, /*target=*/1, slot);
  } else {
    address = arith::MulIOp::create(builder, loc, getCode(local), i32(line));
  }
  Value begin = shared;
  // Added to the begin the slot is added once, and what is left one IMAD.
  if (slot && !isByte)
    begin = simt::OffsetOp::create(builder, loc, shared.getType(), shared,
                                   toI64(slot));
  if (int64_t common = book * codebook.getCache().getBookBytes())
    begin = simt::OffsetOp::create(builder, loc, shared.getType(), begin,
                                   i64(common));
  return {begin, toI64(address)};
}

Value VectorLookup::loadShared(int64_t local, int64_t book) {
  auto [begin, offset] = getSharedPlace(local, book);
  return loadEntry(builder, loc, codebook, begin, offset,
                   codebook.getEntryBytes());
}

Value VectorLookup::loadGlobal(Value code, int64_t book) {
  Value number = toI64(code);
  if (threadBook) {
    Value first = arith::MulIOp::create(builder, loc, toI64(threadBook),
                                        i64(codebook.getNumEntries()));
    number = arith::AddIOp::create(builder, loc, number, first);
  }
  Value offset = arith::MulIOp::create(builder, loc, number,
                                       i64(codebook.getEntryBytes()));
  if (book != 0)
    offset = arith::AddIOp::create(
        builder, loc, offset,
        i64(book * codebook.getNumEntries() * codebook.getEntryBytes()));
  Value entry =
      loadEntry(builder, loc, codebook, global, offset, plan.alignBytes);
  return plan.isRaised ? raiseEntry(builder, loc, entry) : entry;
}

Value VectorLookup::selectRegister(Value code, int64_t book) {
  int64_t perBook = codebook.getRegisterEntries();
  // Of books that depend on the thread, each is a candidate.
  int64_t numBooks = threadBook ? codebook.getNumBooks() : 1;
  Value result;
  for (int64_t b = 0; b < numBooks; ++b)
    for (int64_t e = 0; e < perBook; ++e) {
      int64_t number = threadBook ? b : book;
      Value entry = registers[number * perBook + e];
      Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         code, i32(e));
      if (threadBook) {
        Value isBook = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::eq,
            arith::AddIOp::create(builder, loc, threadBook, i32(book)), i32(b));
        isIt = arith::AndIOp::create(builder, loc, isIt, isBook);
      }
      result = result
                   ? arith::SelectOp::create(builder, loc, isIt, entry, result)
                         .getResult()
                   : entry;
    }
  return result;
}

Value VectorLookup::choose(Value condition, llvm::function_ref<Value()> ifTrue,
                           llvm::function_ref<Value()> ifFalse) {
  auto branch =
      scf::IfOp::create(builder, loc, getEntryType(codebook), condition,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, ifTrue());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, ifFalse());
  return branch.getResult(0);
}

Value VectorLookup::emitEntry(int64_t local, int64_t book) {
  int64_t inRegisters = codebook.getRegisterEntries();
  int64_t inShared = std::max(inRegisters, codebook.getSharedEntries());
  bool isWhole = shared && inRegisters == 0 && inShared >= reach;
  if (isWhole && !mayMiss())
    return loadShared(local, book);
  Value code = getCode(local);
  if (mayMiss())
    checkCode(code);
  if (isWhole)
    return loadShared(local, book);
  auto fromGlobal = [&] { return loadGlobal(code, book); };
  auto fromShared = [&] { return loadShared(local, book); };
  auto fromMemory = [&]() -> Value {
    if (!shared || inShared == inRegisters)
      return fromGlobal();
    if (inShared >= reach)
      return fromShared();
    return choose(isBelow(code, inShared), fromShared, fromGlobal);
  };
  auto fromRegisters = [&] { return selectRegister(code, book); };
  if (inRegisters == 0)
    return fromMemory();
  if (inRegisters >= reach)
    return fromRegisters();
  return choose(isBelow(code, inRegisters), fromRegisters, fromMemory);
}

SmallVector<Value> VectorLookup::emit() {
  SmallVector<Value> entries;
  for (auto [i, local] : llvm::enumerate(op.getPartLocals())) {
    enter(static_cast<int64_t>(i));
    entries.push_back(emitEntry(local, getCommonBook(static_cast<int64_t>(i))));
  }
  return entries;
}

SmallVector<Value> VectorLookup::emitMatrices(ArrayRef<int64_t> locals) {
  SmallVector<int64_t> registersOfCodes = op.getPartLocals();
  int64_t numWords = op.getType().getBitsPerThread() / 32;
  auto type = VectorType::get({numWords / static_cast<int64_t>(locals.size())},
                              builder.getI32Type());
  SmallVector<Value> words;
  for (int64_t i : locals) {
    enter(i);
    if (mayMiss())
      checkCode(getCode(registersOfCodes[i]));
    auto [begin, offset] =
        getSharedPlace(registersOfCodes[i], getCommonBook(i));
    Value loaded = simt::LdMatrixOp::create(builder, loc, type, begin, offset,
                                            /*trans=*/false);
    for (int64_t m = 0; m < type.getNumElements(); ++m)
      words.push_back(vector::ExtractOp::create(builder, loc, loaded, m));
  }
  return words;
}

namespace {

struct LookupVectorsPattern : OpConversionPattern<LookupVectorsOp> {
  LookupVectorsPattern(const TypeConverter &converter, MLIRContext *context,
                       const EntryPlans &plans)
      : OpConversionPattern(converter, context), plans(plans) {}

  LogicalResult
  matchAndRewrite(LookupVectorsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    VectorLookup lookup(rewriter, op, adaptor.getCodes().front(),
                        adaptor.getCodebook(),
                        plans.lookup(op.getCodebook().getType()));
    if (std::optional<SmallVector<int64_t>> locals =
            op.findMatrices(op.getType().getLayout())) {
      SmallVector<Value> words = lookup.emitMatrices(*locals);
      auto type = VectorType::get({static_cast<int64_t>(words.size())},
                                  rewriter.getI32Type());
      Value all = vector::FromElementsOp::create(rewriter, getNamedLoc(op),
                                                 type, words);
      rewriter.replaceOp(
          op, fromWords(rewriter, getNamedLoc(op), op.getType(), all));
      return success();
    }
    SmallVector<Value> entries = lookup.emit();
    rewriter.replaceOp(
        op, joinEntries(rewriter, getNamedLoc(op), op.getType(), entries));
    return success();
  }

  const EntryPlans &plans;
};

} // namespace

void lowlp::populateVectorLookupPattern(const TypeConverter &converter,
                                        RewritePatternSet &patterns,
                                        const EntryPlans &plans) {
  patterns.add<LookupVectorsPattern>(converter, patterns.getContext(), plans);
}
