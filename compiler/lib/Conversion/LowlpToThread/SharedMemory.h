//===- SharedMemory.h - where shared tiles lie ------------------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_SHAREDMEMORY_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_SHAREDMEMORY_H

#include "LowlpToThread.h"
#include "MatrixAccess.h"

namespace lowlp {

/// The bytes of an mbarrier (PTX ISA, "Size and alignment of the mbarrier
/// object").
inline constexpr int64_t kMbarrierBytes = 8;

/// Where mbarrier `index`, an index value, lies after the first, as an i64.
mlir::Value getMbarrierOffset(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value index);

/// Where shared tiles and mbarriers lie in the dynamic shared memory of their
/// kernel.
struct SharedMemoryPlan {
  /// For each lowlp.alloc_shared and lowlp.alloc_mbarriers the byte at which it
  /// begins.
  llvm::DenseMap<mlir::Operation *, int64_t> offsetBytes;
  /// For each kernel that has such ops how much it needs.
  llvm::DenseMap<mlir::Operation *, int64_t> kernelBytes;
};

/// Places every shared tile and mbarrier below `root`; fails with a diagnostic
/// at the first one that does not fit.
mlir::FailureOr<SharedMemoryPlan> planSharedMemory(mlir::Operation *root);

/// How many elements of `tile` one access of `shared` may move.
int64_t findSharedWidth(SharedType shared, mlir::OperandRange offsets,
                        TileType tile);

/// Finds the widest legal access for every access of shared memory below
/// `root`.
void planSharedAccessWidths(mlir::Operation *root, AccessWidths &widths);

/// Finds the widest legal chunk for every copy below `root`.
void planCopyWidths(mlir::Operation *root, AccessWidths &widths);

void populateCopyPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns,
                          const AccessWidths &widths);
void populateMbarrierPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              const SharedMemoryPlan &plan);
void populateSharedPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const AccessWidths &widths,
                            const MatrixAccesses &matrices,
                            const SharedMemoryPlan &plan);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_SHAREDMEMORY_H
