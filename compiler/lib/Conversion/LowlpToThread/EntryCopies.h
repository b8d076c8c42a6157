//===- EntryCopies.h - storing entries in shared memory ---------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_ENTRYCOPIES_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_ENTRYCOPIES_H

#include "LowlpToThread.h"

namespace lowlp {

/// Writes the copies that a cache in shared memory has of entries.
class EntryCopies {
protected:
  EntryCopies(mlir::OpBuilder &builder, mlir::Location loc,
              CodebookType codebook, mlir::Value shared)
      : builder(builder), loc(loc), codebook(codebook), shared(shared) {}

  static constexpr int64_t kWideBytes = 16;

  /// An entry that a thread has, and where its line begins.
  struct Taken {
    mlir::Value entry, line;
  };

  /// Whether the copies of each entry have all banks.
  bool fillsBanks() const;

  /// Where the line of an entry of a book begins; `book` is null where there is
  /// one.
  mlir::Value getLine(mlir::Value entry, mlir::Value book);

  /// Writes all copies of an entry, which is that of this number in its book.
  void store(mlir::Value thread, mlir::Value number, Taken taken);

  /// The same of copies that have all banks.
  void storeCopies(mlir::Value thread, Taken taken);

  mlir::Value getThread();
  mlir::Value i32(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value scale(mlir::Value a, int64_t factor);
  mlir::Value quotient(mlir::Value a, int64_t divisor);
  mlir::Value remainder(mlir::Value a, int64_t divisor);
  mlir::Value toOffset(mlir::Value bytes);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  CodebookType codebook;
  mlir::Value shared;

private:
  /// Whether whole copies of an entry, whose words they are, make 16 bytes.
  bool canRepeat() const;

  /// Whether the copies of an entry are whole places of 16 bytes.
  bool canStoreWide() const;

  /// Writes copies to `places` of 16 bytes, of which lanes begin at different
  /// ones, as their `number` says.
  void storeWide(Taken taken, mlir::Value number, int64_t places);

  /// 16 bytes of copies of an entry.
  mlir::Value repeat(mlir::Value entry);
};

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_ENTRYCOPIES_H
