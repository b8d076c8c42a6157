//===- Polls.cpp - loops that a launch can be stopped in ------------------===//
//
// Where a block of code goes back to one that dominates it, a loop begins
// again, and the executor is asked whether it should.
//
//===----------------------------------------------------------------------===//
#include "Patterns.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"

using namespace mlir;
using namespace lowlp;

static constexpr llvm::StringLiteral kPoll = "lowlpCpuPoll";

static LLVM::LLVMFuncOp declarePoll(ModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  MLIRContext *context = module.getContext();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context),
                                          LLVM::LLVMPointerType::get(context));
  return LLVM::LLVMFuncOp::create(builder, module.getLoc(), kPoll, type);
}

void lowlp::insertPolls(ModuleOp module) {
  SmallVector<Operation *> branches;
  DominanceInfo dominance;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    for (Block &block : function.getBody())
      if (llvm::any_of(block.getSuccessors(), [&](Block *next) {
            return dominance.dominates(next, &block);
          }))
        branches.push_back(block.getTerminator());
  if (branches.empty())
    return;
  LLVM::LLVMFuncOp poll = declarePoll(module);
  for (Operation *branch : branches) {
    OpBuilder builder(branch);
    Value thread = branch->getParentOfType<LLVM::LLVMFuncOp>().getArgument(0);
    LLVM::CallOp::create(builder, branch->getLoc(), poll, thread);
  }
}
