//===- TableBits.h - from the bits of a code to those of an address -*- C++
//-*-===//
//
// Where all extents of a table are powers of two and it is not swizzled, every
// bit of an index along a dimension is one bit of the address. For pairs of
// codes of 2 bits, 32 copies:
//
//   !lowlp.shared<16x32x2xf16>
//
//   bit of the byte address   11 .. 8   7     6 .. 2   1      0
//                             pair  3 .. 0    copy     half   byte of the f16
//
// So the bits of a pair go straight from the registers to their place: shift
// the word that holds them, and mask.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TABLEBITS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TABLEBITS_H

#include "LowlpToThread.h"

namespace lowlp {

/// The bits from `source` on of an index along a dimension of a table are the
/// bits from `target` on of the byte address.
struct BitRun {
  int64_t source, target, width;
};

/// Whether every bit of an index is one of the address: extents are powers of
/// two, elements 1, 2 or 4 bytes, and there is no swizzle.
bool hasTableBits(SharedType table);

/// The runs of bits of an index along `dim`, from the lowest address on.
/// Requires: `hasTableBits(table)`.
llvm::SmallVector<BitRun> getTableBits(SharedType table, int64_t dim);

/// What the index `value`, an i32 of which all bits but those of the runs are
/// ignored, adds to the byte address.
mlir::Value moveToAddress(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value value, llvm::ArrayRef<BitRun> runs);

/// The inverse: the index whose bits a byte address holds.
mlir::Value moveFromAddress(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value address, llvm::ArrayRef<BitRun> runs);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TABLEBITS_H
