//===- CodebookFill.cpp - filling the caches of codebooks -----------------===//
//
// Thread t writes slots t, t + T, ... of T threads. A slot is a copy of an
// entry of a book; copies come first, then books or entries, whichever lie
// closer:
//
//   in lines     slot = (e * books + book) * copies + copy
//   else         slot = (book * entries + e) * copies + copy
//
// So lanes side by side write side by side, and those that write copies of one
// entry read the same bytes.
//
// Where the copies of an entry fill 128 bytes, all banks, a thread takes whole
// entries instead, of which it loads all it has at once: a fill waits for
// memory once. `EntryCopies` stores these, and entries that threads hold.
//
// Of small entries without copies in lines of several books, a slot is 16 bytes
// of a book: two lanes read the 32 bytes of a sector, and the pairs of lanes
// side by side write to different banks. Where a loop comes back to the op, or
// another codebook was there, a barrier stands in front: lookups of the
// codebook before are over then.
//
// Books that lie alike in both memories, without copies and whole, are copied
// 16 bytes at a time, whatever their entries.
//
// Asynchronous copies take 16 bytes of the same entry of neighbouring books,
// which lie side by side in both memories.
//
//===----------------------------------------------------------------------===//
#include "CodebookFill.h"

#include "CodebookEntry.h"
#include "EntryCopies.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// Writes the shared part of a codebook, all threads together.
class SharedFill : EntryCopies {
public:
  SharedFill(OpBuilder &builder, Location loc, const CodebookFill &fill,
             Value source)
      : EntryCopies(builder, loc, fill.codebook, fill.shared), source(source),
        plan(fill.plan), isInLines(fill.isInLines),
        isCopied(fill.isAsync && canCopy()) {}

  /// Writes entries that threads hold as `tile`, its `registers`, when all have
  /// looked entries of the codebook before up.
  void emitLoaded(TileType tile, Value registers) {
    emitBarrier(builder, loc);
    int64_t values = codebook.getVectorLength();
    int64_t books = codebook.getNumBooks(), entries = codebook.getNumEntries();
    const Layout &layout = tile.getLayout();
    Value threadRow = buildThreadPart(builder, loc, layout, 0);
    Value isFirst = buildIsFirstOwner(builder, loc, layout);
    Value thread = getThread();
    for (int64_t i = 0; i < layout.numLocals(); i += values) {
      Value row = i32(layout.evaluate(0, i)[0]);
      if (threadRow)
        row = add(threadRow, row);
      Value book = books == 1 ? Value() : quotient(row, entries);
      Value entry = book ? remainder(row, entries) : row;
      Value isStored = isFirst;
      auto require = [&](Value index, int64_t end) {
        Value isBelow = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ult, index, i32(end));
        isStored = isStored
                       ? arith::AndIOp::create(builder, loc, isStored, isBelow)
                             .getResult()
                       : isBelow;
      };
      if (layout.shape()[0] > books * entries)
        require(row, books * entries);
      if (codebook.getSharedEntries() < entries)
        require(entry, codebook.getSharedEntries());
      OpBuilder::InsertionGuard guard(builder);
      if (isStored)
        builder.setInsertionPointToStart(
            scf::IfOp::create(builder, loc, isStored).thenBlock());
      Value held = extractEntry(builder, loc, codebook, registers, i);
      if (plan.isRaised)
        held = raiseEntry(builder, loc, held);
      store(thread, entry, {held, getLine(entry, book)});
    }
  }

  /// `isAgain`: a barrier stands before the first store, as others may look
  /// entries of the codebook before up.
  void emit(int64_t numThreads, bool isAgain) {
    if (fillsBanks())
      return emitEntries(numThreads, isAgain);
    if (isAgain)
      emitBarrier(builder, loc);
    int64_t slots =
        liesAlike() ? getBookBytes() / kWideBytes
                    : codebook.getNumBooks() * codebook.getSharedEntries() *
                          codebook.getCache().getCopies() / getEntriesOfSlot();
    int64_t whole = slots / numThreads;
    Value thread = getThread();
    int64_t atOnce = liesAlike() ? kWideRoundsAtOnce : kRoundsAtOnce;
    int64_t looped = whole / atOnce * atOnce;
    if (looped > atOnce) {
      auto loop =
          scf::ForOp::create(builder, loc, i32(0), i32(looped * numThreads),
                             i32(atOnce * numThreads));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      emitRounds(add(thread, loop.getInductionVar()), atOnce, numThreads);
    } else {
      looped = 0;
    }
    emitRounds(add(thread, i32(looped * numThreads)), whole - looped,
               numThreads);
    if (slots == whole * numThreads)
      return;
    Value slot = add(thread, i32(whole * numThreads));
    Value exists = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::ult, slot, i32(slots));
    auto branch = scf::IfOp::create(builder, loc, exists);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emitRounds(slot, 1, numThreads);
  }

private:
  static constexpr int64_t kRoundsAtOnce = 8;
  /// Of books that are copied as they are: registers are free at the beginning.
  static constexpr int64_t kWideRoundsAtOnce = 16;
  static constexpr int64_t kLanesOfSector = 2;
  /// Entries that a thread loads before it stores the first.
  static constexpr int64_t kEntriesAtOnce = 8;

  /// As `emit`, where the copies of each entry have all banks. What is left of
  /// whole rounds is loaded with the last of them.
  void emitEntries(int64_t numThreads, bool isAgain) {
    int64_t all = codebook.getNumBooks() * codebook.getSharedEntries();
    Value thread = getThread();
    int64_t whole = all / numThreads;
    int64_t looped = whole / kEntriesAtOnce * kEntriesAtOnce;
    if (looped > kEntriesAtOnce) {
      if (std::exchange(isAgain, false))
        emitBarrier(builder, loc);
      auto loop =
          scf::ForOp::create(builder, loc, i32(0), i32(looped * numThreads),
                             i32(kEntriesAtOnce * numThreads));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value first = add(thread, loop.getInductionVar());
      SmallVector<Taken> taken;
      for (int64_t round = 0; round < kEntriesAtOnce; ++round)
        taken.push_back(take(add(first, i32(round * numThreads))));
      for (Taken one : taken)
        storeCopies(thread, one);
    } else {
      looped = 0;
    }
    SmallVector<Taken> taken;
    for (int64_t round = looped; round < whole; ++round)
      taken.push_back(take(add(thread, i32(round * numThreads))));
    Value exists;
    if (all > whole * numThreads) {
      exists = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                     thread, i32(all - whole * numThreads));
      taken.push_back(take(add(thread, i32(whole * numThreads)), exists));
    }
    // Entries are on their way while warps wait for each other.
    if (isAgain)
      emitBarrier(builder, loc);
    for (Taken one : ArrayRef(taken).take_front(whole - looped))
      storeCopies(thread, one);
    if (!exists)
      return;
    auto branch = scf::IfOp::create(builder, loc, exists);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    storeCopies(thread, taken.back());
  }

  /// Loads entry `number` of all books; zeros where it does not `exist`.
  Taken take(Value number, Value exists = Value()) {
    int64_t bytes = codebook.getEntryBytes();
    auto [entry, book] = getEntry(number);
    Value from = getNumber(entry, book);
    Value line = getLine(entry, book);
    Value offset = toOffset(scale(from, bytes));
    auto load = [&] {
      return loadEntry(builder, loc, codebook, source, offset, plan.alignBytes);
    };
    Value loaded;
    if (exists) {
      Type type = getEntryType(codebook);
      auto branch = scf::IfOp::create(builder, loc, type, exists,
                                      /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(builder, loc, load());
      builder.setInsertionPointToStart(branch.elseBlock());
      Value zero = arith::ConstantOp::create(builder, loc, type,
                                             builder.getZeroAttr(type));
      scf::YieldOp::create(builder, loc, zero);
      loaded = branch.getResult(0);
    } else {
      loaded = load();
    }
    return {plan.isRaised ? raiseEntry(builder, loc, loaded) : loaded, line};
  }

  /// Of all books in shared memory, without copies.
  int64_t getBookBytes() const {
    return codebook.getNumBooks() * codebook.getSharedEntries() *
           codebook.getEntryBytes();
  }

  /// Whether the books lie one after the other in both memories, entry after
  /// entry, from where 16 bytes can be taken on.
  bool liesAlike() const {
    CodebookCacheAttr cache = codebook.getCache();
    int64_t entryBytes = codebook.getEntryBytes();
    bool isWhole = codebook.getSharedEntries() == codebook.getNumEntries();
    bool isDense =
        cache.getCopies() == 1 && cache.getLineBytes() == entryBytes &&
        (codebook.getNumBooks() == 1 ||
         cache.getBookBytes() == codebook.getNumEntries() * entryBytes);
    return isWhole && isDense && !isInLines && !isCopied &&
           plan.alignBytes >= kWideBytes && getBookBytes() % kWideBytes == 0;
  }

  /// Whether lines of the view are those of the cache, in pieces that may be
  /// copied as they are.
  bool canCopy() const {
    CodebookCacheAttr cache = codebook.getCache();
    int64_t entryBytes = codebook.getEntryBytes();
    return isInLines && cache.areBooksInLines() && cache.getCopies() == 1 &&
           cache.getBookBytes() == entryBytes && !plan.isRaised &&
           plan.alignBytes >= kWideBytes && entryBytes <= kWideBytes &&
           codebook.getNumBooks() * entryBytes % kWideBytes == 0 &&
           cache.getLineBytes() % kWideBytes == 0;
  }

  /// How many entries a thread takes at once: of a book, or of as many books.
  int64_t getEntriesOfSlot() const {
    int64_t count = kWideBytes / codebook.getEntryBytes();
    if (isCopied)
      return count;
    CodebookCacheAttr cache = codebook.getCache();
    bool isWide = count > 1 && !isInLines && plan.alignBytes >= kWideBytes &&
                  codebook.getNumBooks() > 1 && cache.areBooksInLines() &&
                  cache.getCopies() == 1 &&
                  !isPacked(codebook.getElementType()) &&
                  codebook.getNumEntries() % count == 0 &&
                  cache.getShared() % (kLanesOfSector * count) == 0;
    return isWide ? count : 1;
  }

  /// The entry and the book, null where there is one, of which a slot that is
  /// divided by the copies is a copy.
  std::pair<Value, Value> getEntry(Value number) {
    int64_t books = codebook.getNumBooks();
    int64_t entries = codebook.getSharedEntries();
    if (books == 1)
      return {number, Value()};
    if (codebook.getCache().areBooksInLines())
      return {quotient(number, books), remainder(number, books)};
    return {remainder(number, entries), quotient(number, entries)};
  }

  /// Which of all entries it is in the view.
  Value getNumber(Value entry, Value book) {
    if (!book)
      return entry;
    return isInLines ? add(scale(entry, codebook.getNumBooks()), book)
                     : add(scale(book, codebook.getNumEntries()), entry);
  }

  /// All entries are loaded before the first is stored, so that they arrive
  /// together.
  void emitRounds(Value first, int64_t numRounds, int64_t numThreads) {
    if (isCopied)
      return emitCopies(first, numRounds, numThreads);
    if (liesAlike())
      return emitAlike(first, numRounds, numThreads);
    if (getEntriesOfSlot() > 1)
      return emitWideRounds(first, numRounds, numThreads);
    int64_t copies = codebook.getCache().getCopies();
    int64_t bytes = codebook.getEntryBytes();
    SmallVector<std::pair<Value, Value>> stores;
    for (int64_t round = 0; round < numRounds; ++round) {
      Value slot = add(first, i32(round * numThreads));
      auto [entry, book] = getEntry(quotient(slot, copies));
      Value from = getNumber(entry, book);
      Value loaded = loadEntry(builder, loc, codebook, source,
                               toOffset(scale(from, bytes)), plan.alignBytes);
      if (plan.isRaised)
        loaded = raiseEntry(builder, loc, loaded);
      Value to = add(scale(entry, codebook.getCache().getLineBytes()),
                     scale(remainder(slot, copies), bytes));
      if (book)
        to = add(to, scale(book, codebook.getCache().getBookBytes()));
      stores.emplace_back(loaded, toOffset(to));
    }
    for (auto [loaded, to] : stores)
      simt::StoreOp::create(builder, loc, loaded, shared, to,
                            std::min<int64_t>(bytes, 16));
  }

  /// As `emitRounds`, where a slot is 16 bytes of what lies alike.
  void emitAlike(Value first, int64_t numRounds, int64_t numThreads) {
    auto type = VectorType::get({kWideBytes / 4}, builder.getI32Type());
    SmallVector<std::pair<Value, Value>> stores;
    for (int64_t round = 0; round < numRounds; ++round) {
      Value at =
          toOffset(scale(add(first, i32(round * numThreads)), kWideBytes));
      Value loaded =
          simt::LoadOp::create(builder, loc, type, source, at, kWideBytes);
      if (plan.isRaised)
        loaded = raiseEntry(builder, loc, loaded);
      stores.emplace_back(loaded, at);
    }
    for (auto [loaded, at] : stores)
      simt::StoreOp::create(builder, loc, loaded, shared, at, kWideBytes);
  }

  /// As `emitRounds`, where a slot is several entries of a book.
  void emitWideRounds(Value first, int64_t numRounds, int64_t numThreads) {
    int64_t bytes = codebook.getEntryBytes(), count = getEntriesOfSlot();
    int64_t books = codebook.getNumBooks();
    auto type = VectorType::get({kWideBytes / 2}, codebook.getElementType());
    SmallVector<std::pair<Value, Value>> loads;
    for (int64_t round = 0; round < numRounds; ++round) {
      Value slot = add(first, i32(round * numThreads));
      Value pair = quotient(slot, kLanesOfSector);
      Value book = remainder(pair, books);
      Value wide = add(scale(quotient(pair, books), kLanesOfSector),
                       remainder(slot, kLanesOfSector));
      Value entry = scale(wide, count);
      Value from = add(scale(book, codebook.getNumEntries()), entry);
      Value loaded = simt::LoadOp::create(
          builder, loc, type, source, toOffset(scale(from, bytes)), kWideBytes);
      Value to = add(scale(entry, codebook.getCache().getLineBytes()),
                     scale(book, codebook.getCache().getBookBytes()));
      loads.emplace_back(loaded, to);
    }
    for (auto [loaded, to] : loads)
      for (int64_t i = 0; i < count; ++i) {
        Value at = add(to, i32(i * codebook.getCache().getLineBytes()));
        Value stored = vector::ExtractStridedSliceOp::create(
            builder, loc, loaded, i * bytes / 2, bytes / 2, 1);
        simt::StoreOp::create(builder, loc, stored, shared, toOffset(at),
                              bytes);
      }
  }

  /// As `emitRounds`, where a slot is a piece of a line.
  void emitCopies(Value first, int64_t numRounds, int64_t numThreads) {
    int64_t pieces =
        codebook.getNumBooks() * codebook.getEntryBytes() / kWideBytes;
    for (int64_t round = 0; round < numRounds; ++round) {
      Value slot = add(first, i32(round * numThreads));
      Value to =
          add(scale(quotient(slot, pieces), codebook.getCache().getLineBytes()),
              scale(remainder(slot, pieces), kWideBytes));
      simt::CopyAsyncOp::create(builder, loc, source,
                                toOffset(scale(slot, kWideBytes)), shared,
                                toOffset(to), kWideBytes);
    }
  }

  Value source;
  EntryPlan plan;
  bool isInLines, isCopied;
};

} // namespace

void lowlp::fillCodebook(OpBuilder &builder, Location loc,
                         const CodebookFill &fill, Value source,
                         int64_t numThreads, bool isAgain) {
  SharedFill(builder, loc, fill, source).emit(numThreads, isAgain);
}

void lowlp::fillCodebook(OpBuilder &builder, Location loc,
                         const CodebookFill &fill, TileType tile,
                         Value registers) {
  SharedFill(builder, loc, fill, Value()).emitLoaded(tile, registers);
}
