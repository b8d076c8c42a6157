//===- Patterns.h - lowerings of simt to llvm and nvvm ----------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTONVVM_PATTERNS_H
#define LOWLP_LIB_CONVERSION_THREADTONVVM_PATTERNS_H

namespace mlir {
class LLVMTypeConverter;
class Operation;
class RewritePatternSet;
} // namespace mlir

namespace lowlp {

struct TargetInfo;

/// Adds the conversions of `!simt.ptr`, `!simt.tensor_map` and
/// `!simt.accumulators`.
void addSimtTypeConversions(mlir::LLVMTypeConverter &converter);

/// Adds the lowerings of `simt.atomic_rmw`, `atomic_cas`, `acquire` and
/// `release`.
void populateSimtAtomicsToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                       mlir::RewritePatternSet &patterns);

/// Adds the lowerings of `simt.shared_memory`, `offset`, `load`, `store`,
/// `copy_async` with commit and wait, and `assert`.
void populateSimtMemoryToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                      mlir::RewritePatternSet &patterns);

/// Adds the lowerings of the mbarriers, fences of proxies, bulk copies and
/// tensor copies of `simt`.
void populateSimtAsyncToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                     mlir::RewritePatternSet &patterns);

/// An instruction on words that only computes, as PTX: LLVM may merge and drop
/// it, and sees no other in its place.
mlir::Value createInstruction(mlir::OpBuilder &builder, mlir::Location loc,
                              const llvm::Twine &code,
                              llvm::StringRef constraints,
                              mlir::ValueRange operands);

/// Adds the lowerings of `simt.lop3`, `simt.prmt` and other instructions on
/// words.
void populateSimtBitsToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                    mlir::RewritePatternSet &patterns,
                                    const TargetInfo &target);

/// Moves what puts operands A of `simt.mma`, of 16-bit floats, together out of
/// loops that leave it alone, so that their registers are moved together
/// before. Requires: loops are not lowered yet.
void hoistOperandsOfProducts(mlir::Operation *root);

/// Adds the lowering of `simt.mma`. The target must outlive the patterns.
void populateSimtMmaToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                   mlir::RewritePatternSet &patterns,
                                   const TargetInfo &target);

/// Adds the lowerings of `simt.ldmatrix` and `simt.stmatrix`.
void populateSimtMatrixMovesToNVVMPatterns(
    const mlir::LLVMTypeConverter &converter,
    mlir::RewritePatternSet &patterns);

/// Adds the lowerings of `simt.wgmma`, `wgmma_fence`, `wgmma_commit` and
/// `wgmma_wait`.
void populateSimtWgmmaToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                     mlir::RewritePatternSet &patterns);

/// Adds the lowering of `simt.ballot`.
void populateSimtWarpToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                    mlir::RewritePatternSet &patterns);

/// Adds the lowerings of the functions of `math` that are instructions.
/// Requires: the patterns of `populateThreadToLLVMPatterns` are there for the
/// rest.
void populateMathToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                mlir::RewritePatternSet &patterns);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTONVVM_PATTERNS_H
