//===- SimtWgmmaOps.cpp - matrix instructions of a warpgroup --------------===//
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp::simt;

static bool isByteInteger(Type type) {
  return type.isSignedInteger(8) || type.isUnsignedInteger(8);
}
static bool isByteFloat(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

static bool isBit(Type type) { return type.isUnsignedInteger(1); }

LogicalResult WgmmaFenceOp::verify() {
  for (Type type : getValues().getTypes()) {
    auto vector = cast<VectorType>(type);
    bool isFloat = vector.getElementType().isF16() ||
                   vector.getElementType().isBF16() ||
                   vector.getElementType().isF32();
    bool isWord = vector.getElementType().isInteger(32);
    if ((isFloat || isWord) && getSizeInBytes(type) % 4 == 0)
      continue;
    return emitOpError("takes whole registers of f16, bf16, f32 or i32, but a "
                       "value is ")
           << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// WgmmaOp
//===----------------------------------------------------------------------===//

Type WgmmaOp::getElementTypeOfA() {
  return getAType() ? *getAType()
                    : cast<VectorType>(getA().getType()).getElementType();
}
Type WgmmaOp::getElementTypeOfB() {
  return getBType() ? *getBType() : getElementTypeOfA();
}
int64_t WgmmaOp::getK() {
  return 256 / getElementTypeOfA().getIntOrFloatBitWidth();
}

/// What packed registers and shared memory hold is told, and only there.
static LogicalResult verifyElements(WgmmaOp op) {
  bool isPacked =
      cast<VectorType>(op.getA().getType()).getElementType().isInteger(32);
  if (isPacked != op.getAType().has_value() ||
      isPacked != op.getBType().has_value())
    return op.emitOpError("a is ")
           << op.getA().getType() << ", so a and b "
           << (isPacked ? "need 'as' with what they hold" : "need no 'as'");
  Type a = op.getElementTypeOfA(), b = op.getElementTypeOfB();
  bool areIntegers =
      (isByteInteger(a) && isByteInteger(b)) || (isBit(a) && isBit(b));
  if (isPacked && !areIntegers && !(isByteFloat(a) && isByteFloat(b)))
    return op.emitOpError("a and b must both hold 8-bit integers, both 8-bit "
                          "floats, or both ui1, but hold ")
           << a << " and " << b;
  Type sum = op.getD().getType().getVector().getElementType();
  if (areIntegers != sum.isInteger(32))
    return op.emitOpError("accumulators of ")
           << a << " are " << (areIntegers ? "i32" : "f32")
           << ", but the result holds " << sum;
  return success();
}

LogicalResult WgmmaOp::verify() {
  if (getBase().getType().getSpace() != MemorySpace::Shared)
    return emitOpError("b lies in shared memory, but the base is ")
           << getBase().getType();
  VectorType accumulators = getD().getType().getVector();
  if (accumulators.getRank() != 1 || accumulators.getNumElements() % 4 != 0 ||
      accumulators.getNumElements() > 128 ||
      (!accumulators.getElementType().isF32() &&
       !accumulators.getElementType().isInteger(32)))
    return emitOpError(
               "the result must be 4 to 128 accumulators of f32 or i32, a "
               "multiple of 4, but is ")
           << accumulators;
  if (failed(verifyElements(*this)))
    return failure();
  if (accumulators.getElementType().isInteger(32) && getN() % 16 != 0 &&
      getN() != 8 && getN() != 24)
    return emitOpError("N of integers must be 8, 24 or a multiple of 16, but "
                       "is ")
           << getN();
  if (Value c = getC()) {
    auto pending = dyn_cast<AccumulatorsType>(c.getType());
    Type vector = pending ? Type(pending.getVector()) : c.getType();
    if (vector != accumulators)
      return emitOpError("c must be ")
             << accumulators << ", in flight or not, but is " << c.getType();
  }
  if (int64_t swizzle = getSwizzle();
      swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitOpError("swizzle must be 0, 32, 64 or 128 bytes, but is ")
           << swizzle;
  // Fields of 14 bits that count 16 bytes.
  for (int64_t offset : {getLeading(), getStride()})
    if (offset < 0 || offset % 16 != 0 || offset >= 1 << 18)
      return emitOpError("leading and stride must be multiples of 16 bytes "
                         "below 2^18, but one is ")
             << offset;
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  auto given = llvm::map_to_vector(getPending().getTypes(), [](Type type) {
    return Type(cast<AccumulatorsType>(type).getVector());
  });
  if (llvm::equal(given, getAccumulators().getTypes()))
    return success();
  return emitOpError("results must be the vectors of the operands");
}
