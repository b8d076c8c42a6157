//===- ScaledColumns.h - columns that take powers of two --------*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_SCALEDCOLUMNS_H
#define LOWLP_LIB_TRANSFORMS_SCALEDCOLUMNS_H

#include "lowlp/Decode/DecodePlan.h"
#include "lowlp/IR/Lowlp.h"

#include <optional>

namespace lowlp {

/// A tile with one number everywhere.
mlir::Value buildSplat(mlir::OpBuilder &builder, mlir::Location loc,
                       TileType type, double number);

/// A tile of f32 or si32 with a value for each 8 rows.
mlir::Value buildRows(mlir::OpBuilder &builder, mlir::Location loc,
                      TileType type, llvm::ArrayRef<float> values);

/// A column of factors by which a tile is multiplied.
struct ColumnOfFactors {
  mlir::OpOperand *factor; // of the product, the column repeated
  mlir::Value column;
  mlir::Value made; // what a thread makes of the column, which it gives others
  MulOp parts;      // that as a product of small numbers, where it is one
  // The powers of two that it takes, 1 where it takes none.
  llvm::SmallVector<float> taken;

  bool takesAll(llvm::ArrayRef<float> powers) const {
    return llvm::ArrayRef<float>(taken) == powers;
  }
};

/// The column of factors by which a tile is multiplied and by nothing else, if
/// f32 holds it times some of these powers of two.
std::optional<ColumnOfFactors> findColumn(mlir::Value tile,
                                          llvm::ArrayRef<float> powers);

/// The column takes its powers of two, in place of the tile that it multiplies:
/// a product a row and not one an element.
void multiplyColumn(const ColumnOfFactors &found);

/// Whether a plan takes nothing but powers of two off `tile`, fragments or
/// weights widened to f32, and a column by which it is multiplied, and by
/// nothing else, can take them.
bool canScaleColumn(mlir::Value tile, llvm::ArrayRef<DecodePlan::Row> rows);

/// Lets that column take them. Requires `canScaleColumn(tile, rows)`.
void scaleColumn(mlir::Value tile, llvm::ArrayRef<DecodePlan::Row> rows);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_SCALEDCOLUMNS_H
