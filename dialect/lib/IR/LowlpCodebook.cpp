//===- LowlpCodebook.cpp - codebooks and their caches ---------------------===//
#include "lowlp/IR/Lowlp.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

/// What codes of 16 bits can name.
static constexpr int64_t kMaxEntries = int64_t(1) << 16;

LogicalResult
CodebookCacheAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          int64_t registers, int64_t shared, int64_t copies,
                          int64_t lineBytes, int64_t bookBytes) {
  if (registers < 0 || registers > kMaxRegisterEntries)
    return emitError() << "registers must be 0 to " << kMaxRegisterEntries
                       << " entries, but is " << registers;
  if (shared < 0 || shared > kMaxEntries)
    return emitError() << "shared must be 0 to " << kMaxEntries
                       << " entries, but is " << shared;
  if (!llvm::isPowerOf2_64(copies) || copies > kMaxCopies)
    return emitError() << "copies must be a power of two up to " << kMaxCopies
                       << ", but is " << copies;
  if (shared == 0 && (copies != 1 || lineBytes != 0 || bookBytes != 0))
    return emitError() << "without entries in shared memory there is 1 copy, "
                          "and line_bytes and book_bytes are 0, but these are "
                       << copies << ", " << lineBytes << " and " << bookBytes;
  return success();
}

LogicalResult
CacheEstimateAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                          int64_t registerHits, int64_t sharedHits,
                          int64_t globalHits, int64_t bankPasses,
                          int64_t fillBytes, int64_t gatherBytes, StringAttr) {
  constexpr int64_t lookups = 1000;
  if (registerHits < 0 || sharedHits < 0 || globalHits < 0 ||
      registerHits + sharedHits + globalHits != lookups)
    return emitError() << "hits must be at least 0 and " << lookups
                       << " together, but are " << registerHits << ", "
                       << sharedHits << " and " << globalHits;
  if (bankPasses < 100)
    return emitError() << "bank_passes must be at least 100 hundredths, but is "
                       << bankPasses;
  if (fillBytes < 0 || gatherBytes < 0)
    return emitError() << "fill_bytes and gather_bytes must be at least 0, but "
                          "are "
                       << fillBytes << " and " << gatherBytes;
  return success();
}

/// Checks that the cache fits codebooks of this shape.
static LogicalResult verifyCache(function_ref<InFlightDiagnostic()> emitError,
                                 CodebookCacheAttr cache, int64_t books,
                                 int64_t entries, int64_t entryBytes) {
  if (cache.getRegisters() > entries || cache.getShared() > entries)
    return emitError() << "the cache keeps " << cache.getRegisters()
                       << " entries in registers and " << cache.getShared()
                       << " in shared memory, but a book has " << entries;
  if (cache.getShared() == 0)
    return success();
  int64_t line = cache.getLineBytes(), book = cache.getBookBytes();
  int64_t copiesBytes = cache.getCopies() * entryBytes;
  if (line < copiesBytes || line % entryBytes != 0)
    return emitError() << "line_bytes must be a multiple of the " << entryBytes
                       << " bytes of an entry, at least the " << copiesBytes
                       << " of its copies, but is " << line;
  if (books == 1) {
    if (book != 0)
      return emitError() << "book_bytes of one book must be 0, but is " << book;
    return success();
  }
  bool isInLine =
      book >= copiesBytes && (books - 1) * book + copiesBytes <= line;
  bool isBehind = book >= cache.getShared() * line;
  if ((!isInLine && !isBehind) || book % entryBytes != 0)
    return emitError() << "book_bytes must be a multiple of the " << entryBytes
                       << " bytes of an entry, with room for " << books
                       << " books in the " << line
                       << " bytes of a line, or at least the "
                       << cache.getShared() * line << " of all lines, but is "
                       << book;
  return success();
}

LogicalResult CodebookType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> shape, Type element,
                                   CodebookCacheAttr cache) {
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "a codebook has 2 dimensions, entries and values, or "
                          "3 where there are several books, but the type has "
                       << shape.size();
  if (!element.isF16() && !element.isBF16() && !element.isSignedInteger(8) &&
      !isa<Float8E4M3FNType>(element))
    return emitError() << "entries of a codebook must be f16, bf16, si8 or "
                          "f8E4M3FN, but are "
                       << element;
  int64_t books = shape.size() == 3 ? shape.front() : 1;
  int64_t entries = shape[shape.size() - 2], values = shape.back();
  if (values < 2 || values > 16 || !llvm::isPowerOf2_64(values))
    return emitError() << "an entry must have 2, 4, 8 or 16 values, but has "
                       << values;
  if (books < 1 || entries < 2 || entries > kMaxEntries || books > kMaxEntries)
    return emitError() << "a codebook must have 1 to " << kMaxEntries
                       << " books of 2 to " << kMaxEntries
                       << " entries, but has " << books << " of " << entries;
  if (!cache)
    return success();
  return verifyCache(emitError, cache, books, entries,
                     values * *getElementBits(element) / 8);
}

int64_t CodebookType::getEntryBytes() const {
  return getVectorLength() * *getElementBits(getElementType()) / 8;
}

bool CodebookType::hasGlobalEntries() const {
  return std::max(getRegisterEntries(), getSharedEntries()) < getNumEntries();
}

int64_t CodebookType::getSharedBytes() const {
  if (getSharedEntries() == 0)
    return 0;
  CodebookCacheAttr cache = getCache();
  int64_t lines = cache.getShared() * cache.getLineBytes();
  if (cache.areBooksInLines())
    return lines;
  return (getNumBooks() - 1) * cache.getBookBytes() + lines;
}

CodebookType CodebookType::cloneWith(CodebookCacheAttr cache) const {
  return CodebookType::get(getContext(), getShape(), getElementType(), cache);
}
