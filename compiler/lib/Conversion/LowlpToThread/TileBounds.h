//===- TileBounds.h - whether a tile lies inside for certain ----*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEBOUNDS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEBOUNDS_H

#include "mlir/IR/ValueRange.h"

namespace lowlp {

/// The largest offset along dimension `dim` at which a tile of extents `tile`
/// lies inside of one of extents `shape`, along whose last dimensions it lies;
/// negative where there is none.
int64_t getLargestOffset(llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<int64_t> tile, size_t dim);

/// Whether there are offsets at which the tile lies inside.
bool mayBeInside(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> tile);

/// Whether the tile lies inside at these offsets in every run, as far as the
/// ops that compute them tell.
bool isInside(mlir::ValueRange offsets, llvm::ArrayRef<int64_t> shape,
              llvm::ArrayRef<int64_t> tile);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEBOUNDS_H
