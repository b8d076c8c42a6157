//===- Pipelines.h - the only ways through the compiler ---------*- C++ -*-===//
//
// Command line, C API and Python all compile with these functions, either
// directly or under the names that `registerPipelines` gives them:
//
//   lowlp-to-thread   block -> thread
//   lowlp-to-nvvm     block -> thread -> llvm and nvvm
//   lowlp-to-ptx      block -> thread -> llvm and nvvm -> PTX
//   lowlp-to-cpu      block -> thread -> llvm for the host
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_PIPELINES_PIPELINES_H
#define LOWLP_PIPELINES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

#include <string>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace lowlp {

/// The options of every pipeline.
struct PipelineOptions : mlir::PassPipelineOptions<PipelineOptions> {
  Option<std::string> arch{
      *this, "arch",
      llvm::cl::desc("the architecture of the GPU, such as sm_90a"),
      llvm::cl::init("sm_90a")};
  Option<unsigned> optLevel{*this, "opt-level",
                            llvm::cl::desc("how far to optimise, 0 to 3"),
                            llvm::cl::init(3)};
};

/// From kernels of the block level to the program of one thread.
void buildToThreadPipeline(mlir::OpPassManager &manager,
                           const PipelineOptions &options);

/// From kernels of the block level to the llvm and nvvm dialects.
void buildToNVVMPipeline(mlir::OpPassManager &manager,
                         const PipelineOptions &options);

/// From kernels of the block level to a gpu.binary that holds PTX.
void buildToPTXPipeline(mlir::OpPassManager &manager,
                        const PipelineOptions &options);

/// From kernels of the block level to host code in the llvm dialect.
void buildToCPUPipeline(mlir::OpPassManager &manager,
                        const PipelineOptions &options);

/// Makes the pipelines known by name. May be called again.
void registerPipelines();

} // namespace lowlp

#endif // LOWLP_PIPELINES_PIPELINES_H
