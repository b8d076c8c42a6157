//===- LowlpControlOps.cpp - promises, output, early end ------------------===//
#include "lowlp/IR/Lowlp.h"

using namespace mlir;
using namespace lowlp;

LogicalResult PrintOp::verify() {
  size_t numPlaces = getFormat().count("{}");
  if (numPlaces == getValues().size())
    return success();
  return emitOpError("the text has ")
         << numPlaces << " places {}, but there are " << getValues().size()
         << " values";
}

LogicalResult ExitOp::verify() {
  if ((*this)->getParentOfType<KernelOp>())
    return success();
  return emitOpError("must lie in a lowlp.kernel");
}
