//===- CodebookFill.h - filling the caches of codebooks ---------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKFILL_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKFILL_H

#include "Codebooks.h"

namespace lowlp {

/// The shared part of a codebook, which all threads write together.
struct CodebookFill {
  CodebookType codebook;
  EntryPlan plan;
  mlir::Value shared;
  /// Whether books lie side by side in the view, entry by entry.
  bool isInLines = false;
  /// Whether what can be is copied, and arrives later.
  bool isAsync = false;
};

/// Writes entries from global memory, `source` being the first. `isAgain`: a
/// barrier stands before the first store, as others may look entries of the
/// codebook before up.
void fillCodebook(mlir::OpBuilder &builder, mlir::Location loc,
                  const CodebookFill &fill, mlir::Value source,
                  int64_t numThreads, bool isAgain);

/// Writes entries that threads hold as `tile`, its `registers`, when all have
/// looked entries of the codebook before up.
void fillCodebook(mlir::OpBuilder &builder, mlir::Location loc,
                  const CodebookFill &fill, TileType tile,
                  mlir::Value registers);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKFILL_H
