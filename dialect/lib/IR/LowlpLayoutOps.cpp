//===- LowlpLayoutOps.cpp - from one layout to another --------------------===//
#include "lowlp/IR/Lowlp.h"

using namespace mlir;
using namespace lowlp;

LogicalResult ConvertLayoutOp::verify() {
  TileType source = getSource().getType(), result = getType();
  if (source.getElementType() != result.getElementType())
    return emitOpError("element types must match: source holds ")
           << source.getElementType() << ", result holds "
           << result.getElementType();
  if (source.getShape() != result.getShape())
    return emitOpError("shapes must match: source is ")
           << source << ", result is " << result;
  if (source.getNumThreads() != result.getNumThreads())
    return emitOpError("threads must match: source is held by ")
           << source.getNumThreads() << ", result by "
           << result.getNumThreads();
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  return {};
}
