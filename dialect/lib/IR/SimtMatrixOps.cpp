//===- SimtMatrixOps.cpp - matrix instructions of a warp ------------------===//
#include "lowlp/IR/Simt.h"

using namespace mlir;
using namespace lowlp::simt;

//===----------------------------------------------------------------------===//
// MmaOp
//===----------------------------------------------------------------------===//

static Type getMultiplicandType(Value operand, std::optional<Type> packed) {
  return packed ? *packed
                : cast<VectorType>(operand.getType()).getElementType();
}

Type MmaOp::getElementTypeOfA() {
  return getMultiplicandType(getA(), getAType());
}
Type MmaOp::getElementTypeOfB() {
  return getMultiplicandType(getB(), getBType());
}

static bool isByteInteger(Type type) {
  return type.isSignedInteger(8) || type.isUnsignedInteger(8);
}
static bool isByteFloat(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}
static bool isBit(Type type) { return type.isUnsignedInteger(1); }

int64_t MmaOp::getK() {
  auto fragment = cast<VectorType>(getA().getType());
  int64_t registers =
      fragment.getNumElements() * fragment.getElementTypeBitWidth() / 32;
  return registers * 64 / getElementTypeOfA().getIntOrFloatBitWidth();
}

/// A vector of floats says what it holds; packed words need to be told.
static LogicalResult verifyMultiplicand(MmaOp op, StringRef name, Value operand,
                                        std::optional<Type> packed) {
  bool isWords =
      cast<VectorType>(operand.getType()).getElementType().isInteger(32);
  if (!isWords && packed)
    return op.emitOpError(name)
           << " is " << operand.getType() << " and needs no 'as'";
  if (!isWords)
    return success();
  if (!packed)
    return op.emitOpError(name) << " is " << operand.getType()
                                << " and needs 'as' with what it holds";
  if (isByteInteger(*packed) || isByteFloat(*packed) || isBit(*packed))
    return success();
  return op.emitOpError(name)
         << " must hold si8, ui8, f8E4M3FN, f8E5M2 or ui1, but holds "
         << *packed;
}

/// Packed registers are those of one K, which is half for bits alone.
static LogicalResult verifyRegisters(MmaOp op) {
  auto count = [](Value words) {
    return cast<VectorType>(words.getType()).getNumElements();
  };
  int64_t a = count(op.getA()), b = count(op.getB());
  bool isHalf = a == 2 && b == 1 && isBit(op.getElementTypeOfA());
  if (!op.getAType() || isHalf || (a == 4 && b == 2))
    return success();
  return op.emitOpError("a and b have 4 and 2 registers, of ui1 also 2 and 1, "
                        "but have ")
         << a << " and " << b;
}

LogicalResult MmaOp::verify() {
  if (failed(verifyMultiplicand(*this, "a", getA(), getAType())) ||
      failed(verifyMultiplicand(*this, "b", getB(), getBType())))
    return failure();
  Type a = getElementTypeOfA(), b = getElementTypeOfB();
  bool areIntegers = isByteInteger(a) && isByteInteger(b);
  bool areFloats = isByteFloat(a) && isByteFloat(b);
  if (a != b && !areIntegers && !areFloats)
    return emitOpError("a and b must have one element type, or both hold 8-bit "
                       "integers, or both 8-bit floats, but hold ")
           << a << " and " << b;
  if (failed(verifyRegisters(*this)))
    return failure();
  Type sum = cast<VectorType>(getC().getType()).getElementType();
  bool areSumsIntegers = areIntegers || isBit(a);
  if (areSumsIntegers != sum.isInteger(32))
    return emitOpError("accumulators of ")
           << a << " are " << (areSumsIntegers ? "i32" : "f32")
           << ", but c holds " << sum;
  return success();
}

//===----------------------------------------------------------------------===//
// LdMatrixOp, StMatrixOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyShared(Operation *op, PtrType type) {
  if (type.getSpace() == MemorySpace::Shared)
    return success();
  return op->emitOpError("moves matrices of shared memory, but the base is ")
         << type;
}

LogicalResult LdMatrixOp::verify() {
  return verifyShared(*this, getBase().getType());
}

LogicalResult StMatrixOp::verify() {
  return verifyShared(*this, getBase().getType());
}
