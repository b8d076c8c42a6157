//===- CodebookPlacement.h - what goes where, and why -----------*- C++ -*-===//
//
// The decision of lowlp-place-codebooks for one codebook, without the IR that
// carries it out.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_CODEBOOKPLACEMENT_H
#define LOWLP_LIB_TRANSFORMS_CODEBOOKPLACEMENT_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// What is known of a codebook and of its lookups.
struct CodebookDemand {
  CodebookType codebook;
  /// Of each entry, most first; empty where nothing is known.
  llvm::ArrayRef<int64_t> frequencies;
  /// The fewest books that the lanes of a phase read together, where these lie
  /// in different banks side by side; else 1.
  int64_t booksPerPhase = 1;
  /// Passes of a phase in hundredths where codes were chosen for entries that
  /// have one copy in shared memory; 0: codes were not chosen.
  int64_t spread = 0;
  /// Whether all codes have 8 bits, so that they are bytes of an address.
  bool hasByteCodes = false;
  /// The shared memory that is free.
  int64_t freeBytes = 0;
};

/// A cache, and why.
struct CodebookChoice {
  /// Null where all entries stay in global memory.
  CodebookCacheAttr cache;
  std::string reason;
};

/// The lanes of a warp that read entries of so many bytes in one phase.
int64_t getLanesPerPhase(int64_t entryBytes);

/// The cache that `placement` stands for; fails with a reason where it cannot
/// be.
Result<CodebookChoice> chooseCache(const CodebookDemand &demand,
                                   CodebookPlacement placement);

/// What is expected of the choice.
CacheEstimateAttr estimateCache(const CodebookDemand &demand,
                                const CodebookChoice &choice);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_CODEBOOKPLACEMENT_H
