//===- ExecutorCalls.h - calls of the CPU executor --------------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTOCPU_EXECUTORCALLS_H
#define LOWLP_LIB_CONVERSION_THREADTOCPU_EXECUTORCALLS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace lowlp {

/// Writes calls of the functions of `lowlp/CPU/ABI.h` in place of an op at the
/// rewriter's insertion point. The op lies in a kernel that is an llvm.func
/// already. One object serves one run of the pass.
class ExecutorCalls {
public:
  explicit ExecutorCalls(mlir::MLIRContext *context);

  /// A call of `name` with the operands given, the first of which is the
  /// thread: it is added here. Its result, or null if `resultType` is.
  mlir::Value call(mlir::ConversionPatternRewriter &rewriter,
                   mlir::Operation *op, llvm::StringRef name,
                   mlir::Type resultType, llvm::ArrayRef<mlir::Value> operands);

  /// The address of the string that names `op` in reports. Each op has a string
  /// of its own: its address identifies the op.
  mlir::Value getSite(mlir::ConversionPatternRewriter &rewriter,
                      mlir::Operation *op);

  /// The address of `text`, with a NUL after it.
  mlir::Value getText(mlir::ConversionPatternRewriter &rewriter,
                      mlir::Location loc, llvm::StringRef text);

  /// Bytes to which scratch memory is aligned. Vectors of more have more by
  /// default, so loads and stores of them there must say it.
  static constexpr unsigned scratchAlignment = 16;

  /// The address of scratch memory of 16 bytes, aligned to as many, on the
  /// thread's stack. Scratch of the same `index` is one place for the whole
  /// kernel.
  mlir::Value getScratch(mlir::ConversionPatternRewriter &rewriter,
                         mlir::Operation *op, unsigned index);

  /// The same for the most accumulators that a thread has in a product of a
  /// warpgroup, 512 bytes.
  mlir::Value getAccumulatorsScratch(mlir::ConversionPatternRewriter &rewriter,
                                     mlir::Operation *op);

  mlir::Value getI32(mlir::ConversionPatternRewriter &rewriter,
                     mlir::Location loc, int32_t value);
  mlir::Value getI64(mlir::ConversionPatternRewriter &rewriter,
                     mlir::Location loc, int64_t value);

private:
  mlir::Value getPlace(mlir::ConversionPatternRewriter &rewriter,
                       mlir::Operation *op, unsigned index, int32_t bytes);

  mlir::Type pointerType;
  unsigned numTexts = 0;
  /// By name, as the module's many strings make it slow to search.
  llvm::StringMap<mlir::LLVM::LLVMFuncOp> callees;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, mlir::Value> scratch;
};

/// How reports name `op`: "lowlp.dot at fig2.mlir:12:8". See
/// `lowlp-convert-thread-to-cpu`.
std::string describeSite(mlir::Operation *op);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTOCPU_EXECUTORCALLS_H
