//===- Dependencies.cpp - what a kernel touches before it waits -----------===//
//
// A kernel that waits for the launch before it by itself may begin while that
// one runs (PTX ISA, `griddepcontrol`). In front of the wait it may read what
// carries `lowlp.constant`, and nothing else of global memory. No check at run
// time would find the race.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/Analysis/WrittenMemory.h"

using namespace mlir;
using namespace lowlp;

/// The parameter behind a view; null for memory that blocks share.
static BlockArgument getParameter(Value view) {
  Operation *op = view.getDefiningOp();
  if (!isa_and_nonnull<ViewGlobalOp, ViewPackedOp>(op))
    return {};
  return dyn_cast<BlockArgument>(op->getOperand(0));
}

static bool isConstant(KernelOp kernel, Value view) {
  BlockArgument parameter = getParameter(view);
  return parameter && parameter.getOwner() == &kernel.getBody().front() &&
         kernel.getArgAttr(parameter.getArgNumber(),
                           LowlpDialect::kConstantAttrName);
}

/// Reports the first op in `op` that touches other memory than constants.
static LogicalResult verifyEarly(KernelOp kernel, Operation *op) {
  WalkResult result = op->walk([&](Operation *access) {
    if (isMemoryEffectFree(access) || access->getNumRegions() != 0)
      return WalkResult::advance();
    for (Value operand : access->getOperands())
      if (isa<GlobalType, PackedType>(operand.getType()) &&
          !isConstant(kernel, operand)) {
        access->emitOpError("stands before lowlp.wait_for_dependencies, and "
                            "touches memory that carries no ")
            << LowlpDialect::kConstantAttrName;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static bool waits(Operation *op) {
  return op->walk([](WaitForDependenciesOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Everything in front of the wait of `block`, or all of it if none waits.
static LogicalResult verifyBlock(KernelOp kernel, Block &block) {
  for (Operation &op : block) {
    if (isa<WaitForDependenciesOp>(op))
      return success();
    if (auto producer = dyn_cast<ProducerWarpOp>(op)) {
      if (failed(verifyBlock(kernel, producer.getBody().front())))
        return failure();
      continue;
    }
    if (waits(&op))
      return op.emitOpError("must not hold lowlp.wait_for_dependencies, which "
                            "stands in the body of the kernel itself");
    if (failed(verifyEarly(kernel, &op)))
      return failure();
  }
  return success();
}

LogicalResult lowlp::verifyDependencies(Operation *root) {
  WalkResult result = root->walk<WalkOrder::PreOrder>([](KernelOp kernel) {
    for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
      if (kernel.getArgAttr(i, LowlpDialect::kConstantAttrName) &&
          isWritten(kernel, i)) {
        kernel.emitOpError("may write to parameter ")
            << i << ", which carries " << LowlpDialect::kConstantAttrName;
        return WalkResult::interrupt();
      }
    if (waits(kernel) && failed(verifyBlock(kernel, kernel.getBody().front())))
      return WalkResult::interrupt();
    return WalkResult::skip();
  });
  return failure(result.wasInterrupted());
}
