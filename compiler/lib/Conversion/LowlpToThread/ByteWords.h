//===- ByteWords.h - emits indices of tables in bytes -----------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_BYTEWORDS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_BYTEWORDS_H

#include "LowlpToThread.h"

#include "lowlp/Analysis/ByteIndices.h"

namespace lowlp {

/// The words that hold `indices`, from the registers of each slice, which are
/// vectors of i32. Bits of a byte that are not of its index are zero.
llvm::SmallVector<mlir::Value>
emitByteWords(mlir::OpBuilder &builder, mlir::Location loc,
              const ByteIndices &indices, llvm::ArrayRef<mlir::Value> slices);

/// Byte `byte` of `word` as byte `target` of an address whose lower bytes are
/// those of `lane`, or zero, and whose upper ones are zero. Requires: so are
/// the upper two bytes of `lane`.
mlir::Value emitByteAddress(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value word, int64_t byte, int64_t target,
                            mlir::Value lane);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_BYTEWORDS_H
