//===- Codebooks.h - codebooks in a thread's program ------------*- C++ -*-===//
//
// A codebook is, in the program of one thread, what its cache needs:
//
//   !simt.ptr<global>   where there are entries in global memory
//   !simt.ptr<shared>   where there are entries in shared memory
//   an entry each       for each book and each of its entries in registers
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKS_H

#include "LowlpToThread.h"

namespace lowlp {

/// What the codebook is in a thread's program.
llvm::SmallVector<mlir::Type> getCodebookParts(CodebookType codebook);

/// The bytes to which a codebook is aligned that begins at `offsets` of the
/// view `source`; at most those of an entry, or 16.
int64_t findEntryAlignBytes(mlir::Value source, mlir::OperandRange offsets,
                            CodebookType codebook);

/// How entries of codebooks of a type are read and held.
struct EntryPlan {
  /// To which entries in global memory are aligned, wherever they come from.
  int64_t alignBytes = 0;
  /// Bytes q are held as q + 128 in shared memory and registers: of si8, where
  /// all that is looked up is cast to f16 or si16, which take them so.
  bool isRaised = false;
};

/// For each type of codebooks below `root`.
using EntryPlans = llvm::DenseMap<mlir::Type, EntryPlan>;
EntryPlans planEntries(mlir::Operation *root);

void populateCodebookPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              const EntryPlans &plans);

/// The pattern of casts of looked-up entries (EntryCasts.cpp), which is one of
/// these.
void populateEntryCastPattern(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns,
                              const EntryPlans &plans);

/// The pattern of lowlp.lookup_vectors (LookupVectors.cpp), which is one of
/// these.
void populateVectorLookupPattern(const mlir::TypeConverter &converter,
                                 mlir::RewritePatternSet &patterns,
                                 const EntryPlans &plans);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_CODEBOOKS_H
