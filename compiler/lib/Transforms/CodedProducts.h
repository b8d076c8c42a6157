//===- CodedProducts.h - products of decoded weights ------------*- C++ -*-===//
//
// What a program multiplies by: codes of the packed format, cast to the type of
// the activations and perhaps scaled.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_CODEDPRODUCTS_H
#define LOWLP_LIB_TRANSFORMS_CODEDPRODUCTS_H

#include "lowlp/Decode/DecodePlan.h"
#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// A `lowlp.dot` or a `lowlp.wgmma`.
class Product {
public:
  Product() = default;
  /// Null for any other op.
  explicit Product(mlir::Operation *op)
      : op(llvm::isa_and_nonnull<DotOp, WgmmaOp>(op) ? op : nullptr) {}

  explicit operator bool() const { return op; }
  mlir::Operation *operator->() const { return op; }
  bool operator==(Product other) const { return op == other.op; }
  DotOp asDot() const { return llvm::dyn_cast<DotOp>(op); }

  mlir::OpOperand &getA() const;
  TileType getTypeOfA() const;
  /// What the product is added to; null for nothing.
  mlir::Value getAddend() const;
  void setAddend(mlir::Value value) const;
  /// The accumulators as a tile, or as those in flight.
  mlir::Value getSum() const { return op->getResult(0); }

private:
  mlir::Operation *op = nullptr;
};

/// What operand a of a product is made of:
///
///   codes, cast(codes)
///   cast(cast(codes) * 2^exponent)
///   cast(codes) * scales, (cast(codes) - zeros) * scales
///
/// with scales and zeros one number for each row, repeated along it.
struct CodedWeights {
  UnpackOp codes;
  int exponent = 0;
  /// The type of the numbers that are multiplied; null without a power.
  mlir::Type wide = {};
  /// Tiles of one column; null without.
  mlir::Value scales = {}, zeros = {};
};

/// Without codes if the operand, or a tile that may be one, is anything else.
CodedWeights getWeights(Product product);
CodedWeights getWeights(mlir::Value a);

/// Whether two products take weights alike, so that one plan's rows hold for
/// both.
bool areAlike(Product first, Product second);

/// By how much a type's values are above those of the stored codes.
double getShift(const CodedWeights &weights);

/// Whether the casts of the program round no weight, as no plan does.
bool areExact(const CodedWeights &weights, mlir::Type operand);

/// Whether a type of floats or integers holds a number.
bool isHeld(mlir::Type type, double number);

/// The number that a tile holds everywhere, if it is known.
std::optional<double> getSplat(mlir::Value tile);

/// The op that alone uses a value, if it is of that kind; null otherwise.
template <typename Op> Op getOnlyUser(mlir::Value value) {
  return value.hasOneUse() ? llvm::dyn_cast<Op>(*value.user_begin()) : Op();
}

/// The column of numbers that a tile repeats along its rows; null if it does
/// not.
mlir::Value getRepeatedColumn(mlir::Value tile);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_CODEDPRODUCTS_H
