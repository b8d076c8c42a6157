//===- Patterns.h - lowerings of gpu and simt to host code ------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_THREADTOCPU_PATTERNS_H
#define LOWLP_LIB_CONVERSION_THREADTOCPU_PATTERNS_H

#include "ExecutorCalls.h"

#include "lowlp/CPU/ABI.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/IR/BuiltinOps.h"

namespace lowlp {

/// A pattern that writes calls of the executor.
template <typename SourceOp>
struct ExecutorPattern : mlir::ConvertOpToLLVMPattern<SourceOp> {
  ExecutorPattern(const mlir::LLVMTypeConverter &converter,
                  ExecutorCalls &calls)
      : mlir::ConvertOpToLLVMPattern<SourceOp>(converter), calls(calls) {}

  ExecutorCalls &calls;
};

/// For an op that is a call with its site alone.
template <typename SourceOp>
struct SiteCallLowering : ExecutorPattern<SourceOp> {
  SiteCallLowering(const mlir::LLVMTypeConverter &converter,
                   ExecutorCalls &calls, mlir::StringRef function)
      : ExecutorPattern<SourceOp>(converter, calls), function(function) {}

  mlir::LogicalResult
  matchAndRewrite(SourceOp op, typename SourceOp::Adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    this->calls.call(rewriter, op, function, /*resultType=*/{},
                     this->calls.getSite(rewriter, op));
    rewriter.eraseOp(op);
    return mlir::success();
  }

  mlir::StringRef function;
};

/// For what means nothing on the CPU.
template <typename SourceOp>
struct DroppedLowering : mlir::ConvertOpToLLVMPattern<SourceOp> {
  using mlir::ConvertOpToLLVMPattern<SourceOp>::ConvertOpToLLVMPattern;

  mlir::LogicalResult
  matchAndRewrite(SourceOp op, typename SourceOp::Adaptor,
                  mlir::ConversionPatternRewriter &rewriter) const override {
    rewriter.eraseOp(op);
    return mlir::success();
  }
};

/// Adds the lowerings of kernels, their ends, and the indices of a thread.
void populateKernelToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                 mlir::RewritePatternSet &patterns,
                                 ExecutorCalls &calls);

/// Adds the lowerings of `simt.atomic_rmw`, `atomic_cas`, `acquire` and
/// `release`.
void populateAtomicsToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                  mlir::RewritePatternSet &patterns,
                                  ExecutorCalls &calls);

/// Adds the lowerings of `simt.shared_memory`, `offset`, `load`, `store` and
/// `assert`.
void populateMemoryToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                 mlir::RewritePatternSet &patterns,
                                 ExecutorCalls &calls);

/// Adds the lowerings of asynchronous copies, mbarriers, fences of proxies,
/// bulk copies and tensor copies.
void populateAsyncToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                mlir::RewritePatternSet &patterns,
                                ExecutorCalls &calls);

/// Makes the divisions of a kernel of the thread level ones that no CPU traps
/// at: a division by 0 is reported.
void guardDivisions(mlir::Operation *kernel);

/// Lets the executor end the threads of the module's functions in every loop.
void insertPolls(mlir::ModuleOp module);

/// Whether more than barriers of the block may order accesses of the kernel:
/// mbarriers, fences of proxies, barriers of warpgroups.
bool needsThreadOrder(mlir::Operation *kernel);

/// Adds the lowerings of `simt.mma`, `ldmatrix` and `stmatrix`.
void populateMatricesToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                   mlir::RewritePatternSet &patterns,
                                   ExecutorCalls &calls);

/// The instruction that multiplies elements of these types.
LowlpMmaKind getMmaKind(mlir::Type a, mlir::Type b, int64_t k);

/// Adds the lowerings of `simt.wgmma`, `wgmma_fence`, `wgmma_commit` and
/// `wgmma_wait`.
void populateWgmmaToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                mlir::RewritePatternSet &patterns,
                                ExecutorCalls &calls);

/// Adds the lowerings of `gpu.barrier` and `gpu.shuffle`.
void populateCollectivesToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                      mlir::RewritePatternSet &patterns,
                                      ExecutorCalls &calls);

/// Adds the lowering of `gpu.printf`.
void populatePrintToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                                mlir::RewritePatternSet &patterns,
                                ExecutorCalls &calls);

/// Adds the lowering of `simt.ballot`.
void populateWarpToCPUPatterns(const mlir::LLVMTypeConverter &converter,
                               mlir::RewritePatternSet &patterns,
                               ExecutorCalls &calls);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_THREADTOCPU_PATTERNS_H
