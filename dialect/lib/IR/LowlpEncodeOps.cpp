//===- LowlpEncodeOps.cpp - codes that a kernel writes --------------------===//
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include <numeric>

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kWordCodes = 32;
static constexpr int64_t kMaxPlanes = 8;

/// The tile of so many planes of the codes. Requires: a thread holds words of
/// 32 codes along the last of at least two dimensions.
static TileType getPlanesType(TileType codes, int64_t planes) {
  int64_t rank = codes.getLayout().rank();
  std::vector<int64_t> word(rank, 1), copies(rank, 1), order(rank);
  word.back() = kWordCodes;
  copies[rank - 2] = planes;
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 1], order[rank - 2]);
  Layout words = *divideRight(codes.getLayout(), Layout::local(word));
  auto element =
      IntegerType::get(codes.getContext(), 32, IntegerType::Unsigned);
  return TileType::get(codes.getContext(), element,
                       *permute(words, order) * Layout::local(copies));
}

LogicalResult EncodeOp::verify() {
  TileType codes = getCodes().getType();
  auto type = dyn_cast<IntegerType>(codes.getElementType());
  if (!type || type.getWidth() != 8)
    return emitOpError("codes must be si8 or ui8, but are ")
           << codes.getElementType() << ": cast them first";
  ArrayRef<int64_t> shape = codes.getShape();
  int64_t last = codes.getLayout().rank() - 1;
  if (last < 1 || shape.back() != kWordCodes)
    return emitOpError("codes must have at least 2 dimensions, of which the "
                       "last is 32, but are ")
           << codes;
  if (codes.getLayout().contiguousLocals(last) != kWordCodes)
    return emitOpError("a thread must hold the 32 codes of a word side by "
                       "side, but the tile is ")
           << codes;
  TileType planes = getPlanes().getType();
  bool sameRank = planes.getLayout().rank() == last + 1;
  int64_t count = sameRank ? planes.getShape()[last - 1] : 0;
  if (count < 1 || count > kMaxPlanes)
    return emitOpError("the result must have as many dimensions as the codes, "
                       "the last but one 1 to 8 planes, but is ")
           << planes;
  TileType expected = getPlanesType(codes, count);
  if (planes != expected)
    return emitOpError("the result must be ")
           << expected << ", but is " << planes;
  return success();
}
