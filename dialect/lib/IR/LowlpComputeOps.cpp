//===- LowlpComputeOps.cpp - arithmetic on register tiles -----------------===//
#include "AccumulatorType.h"
#include "ComputeType.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

static bool isComputeType(Type type) {
  return type.isF16() || type.isBF16() || type.isF32();
}

LogicalResult lowlp::verifyComputeType(Operation *op, TileType tile) {
  if (isComputeType(tile.getElementType()))
    return success();
  return op->emitOpError("computes in f16, bf16 or f32, but the tile holds ")
         << tile.getElementType() << ": cast it first";
}

LogicalResult lowlp::verifyArithmeticType(Operation *op, TileType tile) {
  if (isComputeType(tile.getElementType()) ||
      isWideInteger(tile.getElementType()))
    return success();
  return op->emitOpError("computes in f16, bf16, f32 or integers of 16 or 32 "
                         "bits, but the tile holds ")
         << tile.getElementType() << ": cast it first";
}

LogicalResult lowlp::verifySignedArithmeticType(Operation *op, TileType tile) {
  Type type = tile.getElementType();
  if (isComputeType(type) || (isWideInteger(type) && type.isSignedInteger()))
    return success();
  return op->emitOpError("computes in f16, bf16, f32, si16 or si32, but the "
                         "tile holds ")
         << type << ": cast it first";
}

LogicalResult SplatOp::verify() {
  if (failed(verifyArithmeticType(*this, getTile().getType())))
    return failure();
  Type element = getTile().getType().getElementType();
  // Scalars are arith's, whose integers have no sign.
  Type expected =
      isWideInteger(element)
          ? IntegerType::get(getContext(), element.getIntOrFloatBitWidth())
          : element;
  if (getValue().getType() != expected)
    return emitOpError("element types must match: value is ")
           << getValue().getType() << ", tile holds " << element;
  return success();
}

LogicalResult AddOp::verify() { return verifyArithmeticType(*this, getType()); }
LogicalResult SubOp::verify() { return verifyArithmeticType(*this, getType()); }
LogicalResult MulOp::verify() { return verifyArithmeticType(*this, getType()); }
LogicalResult DivOp::verify() { return verifyComputeType(*this, getType()); }
LogicalResult RescaleOp::verify() {
  TileType factors = getFactors().getType();
  for (TileType tile : {getType(), factors})
    if (!tile.getElementType().isF32())
      return emitOpError("takes f32, but a tile holds ")
             << tile.getElementType();
  Result<std::vector<int64_t>> locals =
      broadcastLocals(factors.getLayout(), getType().getLayout());
  return locals ? success() : emitOpError(locals.error());
}

LogicalResult FmaOp::verify() { return verifyComputeType(*this, getType()); }
LogicalResult NegOp::verify() {
  return verifySignedArithmeticType(*this, getType());
}

//===----------------------------------------------------------------------===//
// CastOp, ViewOp
//===----------------------------------------------------------------------===//

LogicalResult CastOp::verify() {
  if (!(getSource().getType().getLayout() == getType().getLayout()))
    return emitOpError("layouts must match: source has '")
           << str(getSource().getType().getLayout()) << "', result has '"
           << str(getType().getLayout()) << "'";
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getSource().getType() == getType() ? getSource() : Value();
}

LogicalResult ViewOp::verify() {
  TileType source = getSource().getType(), result = getType();
  if (source.getNumThreads() != result.getNumThreads())
    return emitOpError("threads must match: source is held by ")
           << source.getNumThreads() << ", result by "
           << result.getNumThreads();
  if (source.getBitsPerThread() != result.getBitsPerThread())
    return emitOpError("bits per thread must match: source holds ")
           << source.getBitsPerThread() << ", result holds "
           << result.getBitsPerThread();
  return success();
}

OpFoldResult ViewOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  // view(view(x)) is one view of x.
  if (auto inner = getSource().getDefiningOp<ViewOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

//===----------------------------------------------------------------------===//
// DotOp
//===----------------------------------------------------------------------===//

Type lowlp::getAccumulatorType(Type a, Type b) {
  auto isByte = [](Type type) {
    return type.isSignedInteger(8) || type.isUnsignedInteger(8);
  };
  if (a == b && (a.isF16() || a.isBF16()))
    return Float32Type::get(a.getContext());
  if (isa<Float8E4M3FNType, Float8E5M2Type>(a) &&
      isa<Float8E4M3FNType, Float8E5M2Type>(b))
    return Float32Type::get(a.getContext());
  if ((isByte(a) && isByte(b)) || (a == b && a.isUnsignedInteger(1)))
    return IntegerType::get(a.getContext(), 32, IntegerType::Signed);
  return {};
}

LogicalResult DotOp::verify() {
  TileType a = getA().getType(), b = getB().getType(), c = getC().getType();
  for (TileType tile : {a, b, c})
    if (tile.getRank() != 2)
      return emitOpError("operands have 2 dimensions, but one has ")
             << tile.getRank();
  int64_t m = a.getShape()[0], k = a.getShape()[1], n = b.getShape()[1];
  if (b.getShape()[0] != k)
    return emitOpError("K must match: a is ")
           << m << "x" << k << ", b is " << b.getShape()[0] << "x" << n;
  if (c.getShape()[0] % m != 0 || c.getShape()[1] != n)
    return emitOpError("c must be ")
           << m << "x" << n << ", or a multiple of the rows, but is "
           << c.getShape()[0] << "x" << c.getShape()[1];
  if (int64_t slices = getNumSlices(); k % slices != 0)
    return emitOpError("K = ") << k << " does not divide into the " << slices
                               << " slices that c has rows for";
  Type sum = getAccumulatorType(a.getElementType(), b.getElementType());
  if (!sum)
    return emitOpError("a and b must both hold f16, both bf16, both ui1, 8-bit "
                       "integers or f8E4M3FN and f8E5M2, but hold ")
           << a.getElementType() << " and " << b.getElementType();
  if (c.getElementType() != sum)
    return emitOpError("accumulators are ")
           << sum << ", but c holds " << c.getElementType();
  if (a.getNumThreads() != c.getNumThreads() ||
      b.getNumThreads() != c.getNumThreads())
    return emitOpError("operands must be held by the same threads, but a has ")
           << a.getNumThreads() << ", b " << b.getNumThreads() << " and c "
           << c.getNumThreads();
  return success();
}
