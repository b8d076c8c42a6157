//===- LowlpWgmmaOps.cpp - products of warpgroups -------------------------===//
#include "AccumulatorType.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kRowBits = 256;
static constexpr int64_t kRowsPerGroup = 8;
static constexpr int64_t kMostColumns = 256;

int64_t WgmmaOp::getInstructionK() {
  return kRowBits / *getElementBits(getA().getType().getElementType());
}

int64_t WgmmaOp::getElementsPerWord() {
  return *getElementBits(getB().getType().getElementType()) /
         *getElementBits(getA().getType().getElementType());
}

static Result<WgmmaTile> describe(SharedType shared) {
  return findWgmmaTile(shared.getLayout(),
                       *getElementBits(shared.getElementType()) / 8);
}

WgmmaTile WgmmaOp::getTileOfB() { return *describe(getB().getType()); }

static LogicalResult verifyElements(WgmmaOp op) {
  Type a = op.getA().getType().getElementType();
  Type b = op.getB().getType().getElementType();
  // Shared memory has no elements of one bit, but words of them.
  bool areBits = a.isUnsignedInteger(1) && b.isUnsignedInteger(32);
  Type sum;
  if (areBits || *getElementBits(a) >= 8)
    sum = getAccumulatorType(a, areBits ? a : b);
  if (!sum)
    return op.emitOpError("a and b must both hold f16, both bf16, 8-bit "
                          "integers or f8E4M3FN and f8E5M2, or ui1 and ui32, "
                          "but hold ")
           << a << " and " << b;
  if (Type result = op.getType().getElementType(); result != sum)
    return op.emitOpError("the accumulators are ")
           << sum << ", but the result holds " << result;
  return success();
}

/// Fails unless N is an extent of the instruction.
static LogicalResult verifyColumns(WgmmaOp op, int64_t n) {
  bool isInteger = isa<IntegerType>(op.getType().getElementType());
  if (n < 1 || n > kMostColumns || n % kRowsPerGroup != 0)
    return op.emitOpError("N must be a multiple of 8 up to 256, but is ") << n;
  if (isInteger && n % 16 != 0 && n != 8 && n != 24)
    return op.emitOpError("N must be 8, 24 or a multiple of 16 for integers, "
                          "but is ")
           << n;
  return success();
}

static LogicalResult verifyShapes(WgmmaOp op) {
  ArrayRef<int64_t> a = op.getA().getType().getShape();
  ArrayRef<int64_t> b = op.getB().getType().getShape();
  ArrayRef<int64_t> accumulators = op.getType().getLayout().shape();
  if (a.size() != 2 || accumulators.size() != 2)
    return op.emitOpError("a and the accumulators have 2 dimensions, but have ")
           << a.size() << " and " << accumulators.size();
  if (b.size() < 2)
    return op.emitOpError("b is a shared tile of N rows of K elements, but has "
                          "1 dimension");
  if (op.getOffsets().size() != b.size())
    return op.emitOpError("expected one offset for each of the ")
           << b.size() << " dimensions of the shared tile, found "
           << op.getOffsets().size();
  if (accumulators[0] % a[0] != 0)
    return op.emitOpError("M must match: a has ")
           << a[0] << " rows, the accumulators have " << accumulators[0]
           << ", which is no multiple";
  if (failed(verifyColumns(op, accumulators[1])))
    return failure();
  int64_t numSlices = op.getNumSlices();
  if (a[1] % (numSlices * op.getInstructionK()) != 0)
    return op.emitOpError("K must be a multiple of ")
           << numSlices * op.getInstructionK() << ", but is " << a[1];
  if (numSlices > 1 && (b.size() < 3 || b[b.size() - 3] < numSlices))
    return op.emitOpError("b must have a dimension of ")
           << numSlices << " slices before the last two";
  int64_t columns = op.getSliceK() / op.getElementsPerWord();
  if (accumulators[1] > b[b.size() - 2] || columns > b.back())
    return op.emitOpError("b must have ")
           << accumulators[1] << " rows of " << columns << " elements, but has "
           << b[b.size() - 2] << " of " << b.back();
  return success();
}

/// What is known of where the part begins must suit the instruction.
static LogicalResult verifyOffsets(WgmmaOp op) {
  std::pair<Value, int64_t> demands[] = {
      {op.getOffsets().drop_back().back(), kRowsPerGroup},
      {op.getOffsets().back(), op.getStepOfB()}};
  for (auto [offset, multiple] : demands)
    if (std::optional<int64_t> known =
            getConstantIntValue(OpFoldResult(offset));
        known && *known % multiple != 0)
      return op.emitOpError("the part of b must begin at a multiple of ")
             << kRowsPerGroup << " rows and " << op.getStepOfB()
             << " elements of K, but an offset is " << *known;
  return success();
}

LogicalResult WgmmaOp::verify() {
  if (failed(verifyElements(*this)) || failed(verifyShapes(*this)) ||
      failed(verifyOffsets(*this)))
    return failure();
  if (Value c = getC()) {
    auto pending = dyn_cast<AccumulatorsType>(c.getType());
    Type tile = pending ? pending.getTile() : c.getType();
    if (tile != getType().getTile())
      return emitOpError("c must be ")
             << getType().getTile() << ", in flight or not, but is "
             << c.getType();
  }
  int64_t threads = getA().getType().getNumThreads();
  if (threads != getType().getLayout().numThreads() ||
      threads % (getNumSlices() * kThreadsPerWarpgroup) != 0)
    return emitOpError(
               "a and the accumulators must be held by the same warpgroups of "
               "128 threads, as many for each slice, but are by ")
           << threads << " and " << getType().getLayout().numThreads()
           << " threads";
  Result<WgmmaTile> tile = describe(getB().getType());
  if (!tile)
    return emitOpError("no matrix descriptor describes the layout of b, ")
           << tile.error();
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  auto given = llvm::map_to_vector(getPending().getTypes(), [](Type type) {
    return Type(cast<AccumulatorsType>(type).getTile());
  });
  if (llvm::equal(given, getTiles().getTypes()))
    return success();
  return emitOpError("results must be the tiles of the accumulators");
}
