//===- LowlpWarpOps.cpp - exchange within each warp -----------------------===//
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWarpThreads = 32;

static LogicalResult verifyWarps(Operation *op, TileType tile) {
  if (tile.getNumThreads() % kWarpThreads == 0)
    return success();
  return op->emitOpError("takes whole warps of 32 threads, but the tile is "
                         "held by ")
         << tile.getNumThreads();
}

LogicalResult WarpShuffleOp::verify() {
  if (failed(verifyWarps(*this, getType())))
    return failure();
  const Layout &layout = getType().getLayout();
  for (const Digit &digit : layout.threadDigits())
    if (digit.isReplica())
      return emitOpError("several threads hold one element of '")
             << str(layout) << "', and would not agree on it any more";
  return success();
}

LogicalResult BallotOp::verify() {
  TileType source = getSource().getType();
  if (failed(verifyWarps(*this, source)))
    return failure();
  auto bit = IntegerType::get(getContext(), 1, IntegerType::Unsigned);
  if (source.getElementType() != bit)
    return emitOpError("the condition must hold ui1, but holds ")
           << source.getElementType();
  Layout lanes = *reduce(Layout::spatial({1, kWarpThreads}), {1},
                         /*keepDims=*/true);
  auto word = IntegerType::get(getContext(), 32, IntegerType::Unsigned);
  auto expected = TileType::get(
      getContext(), word,
      Layout::spatial({source.getNumThreads() / kWarpThreads, 1}) * lanes *
          Layout::local({1, source.getNumLocals()}));
  if (getType() != expected)
    return emitOpError("the result must be ")
           << expected << ", but is " << getType();
  return success();
}
