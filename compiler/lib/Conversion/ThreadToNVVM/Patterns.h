//===- Patterns.h - lowerings of simt to llvm and nvvm ----------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTONVVM_PATTERNS_H
#define LOWLP_LIB_CONVERSION_THREADTONVVM_PATTERNS_H

namespace mlir {
class LLVMTypeConverter;
class RewritePatternSet;
} // namespace mlir

namespace lowlp {

/// Adds the conversion of `!simt.ptr`.
void addSimtTypeConversions(mlir::LLVMTypeConverter &converter);

/// Adds the lowerings of `simt.shared_memory`, `load`, `store`, `atomic_rmw`,
/// `copy_async` with commit and wait, and `assert`.
void populateSimtMemoryToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
                                      mlir::RewritePatternSet &patterns);

/// Adds the lowering of `simt.mma`.
void populateSimtMmaToNVVMPatterns(const mlir::LLVMTypeConverter &converter,
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
