//===- TensorMaps.h - which tensor maps a kernel needs ----------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TENSORMAPS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TENSORMAPS_H

#include "LowlpToThread.h"

namespace lowlp {

/// The tensor maps of kernels. A kernel receives them after all its other
/// arguments.
struct TensorMapPlan {
  /// For each lowlp.copy_tensor which of its kernel's maps it takes.
  llvm::DenseMap<mlir::Operation *, unsigned> number;
  /// For each kernel that needs any what the runtime makes, as dictionaries:
  ///
  ///   parameter      the number of the pointer
  ///   element_bytes  1, 2 or 4
  ///   extents        an affine map from the integer parameters, in elements
  ///   strides        likewise, in bytes; all but the last dimension's
  ///   box            array<i64>
  ///   swizzle        0, 32, 64 or 128 bytes
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Attribute>> maps;
};

/// Finds the maps of all kernels below `root`; fails with a diagnostic at a
/// copy for which the runtime cannot make one.
mlir::FailureOr<TensorMapPlan> planTensorMaps(mlir::Operation *root);

/// What a tensor copy takes of its map, with an extent for each dimension.
struct TensorBox {
  /// Of the box, and of all that is copied.
  llvm::SmallVector<int64_t> box, shape;
  /// Where whole rows are copied that have too many elements for a box: the map
  /// has a dimension more, and the last one has so many elements. Else 0.
  int64_t rowPart = 0;
};
TensorBox getTensorBox(CopyTensorOp copy);

void populateBulkCopyPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              const TensorMapPlan &plan);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TENSORMAPS_H
