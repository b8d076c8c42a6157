//===- CodebookEntry.h - an entry of a codebook in registers ----*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKENTRY_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKENTRY_H

#include "LowlpToThread.h"

namespace lowlp {

/// An entry as a thread holds it: a vector of f16 or bf16; of bytes, an i16 or
/// a vector of 32-bit words, low bytes first.
mlir::Type getEntryType(CodebookType codebook);

/// Loads an entry `offset` bytes past `base`, in pieces of `alignBytes`, to
/// which it is aligned.
mlir::Value loadEntry(mlir::OpBuilder &builder, mlir::Location loc,
                      CodebookType codebook, mlir::Value base,
                      mlir::Value offset, int64_t alignBytes);

/// The entry with 128 added to each of its bytes.
mlir::Value raiseEntry(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value entry);

/// The entry whose values are those from local element `i` on of a tile that
/// has whole entries in each thread, its `registers`.
mlir::Value extractEntry(mlir::OpBuilder &builder, mlir::Location loc,
                         CodebookType codebook, mlir::Value registers,
                         int64_t i);

/// The registers of a tile that has the values of the entries one after the
/// other.
mlir::Value joinEntries(mlir::OpBuilder &builder, mlir::Location loc,
                        TileType tile, llvm::ArrayRef<mlir::Value> entries);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKENTRY_H
