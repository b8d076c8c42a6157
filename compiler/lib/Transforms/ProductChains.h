//===- ProductChains.h - products that add up ------------------*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_PRODUCTCHAINS_H
#define LOWLP_LIB_TRANSFORMS_PRODUCTCHAINS_H

#include "CodedProducts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace lowlp {

/// Products that add to the same accumulators, and the loop that carries it, if
/// any.
struct Chain {
  llvm::SmallVector<Product> products;
  /// The accumulators after the last, a tile; null where the chain cannot be
  /// rewritten.
  mlir::Value sum;
  mlir::scf::ForOp loop;
  /// The number of the loop's carried value.
  unsigned carried = 0;
};

/// The product that alone uses the accumulators of another one, with alike
/// weights; null where there is none.
Product getNext(Product product);

/// The chain that begins with a product of coded weights.
Chain getChain(Product first);

/// Lets products take what a plan decodes, and undoes after the chain what the
/// plan does to the weights. `rows` are the plan's, for values in place of
/// stored codes. Requires that `sum` is set, and that its products are
/// `lowlp.dot` where a row has an offset. The result is whether sums of x had
/// to be added.
bool decodeChain(Chain chain, const DecodePlan &plan,
                 llvm::ArrayRef<DecodePlan::Row> rows);

/// What fragments of a plan, widened to f32, stand for: the weights, without
/// what the plan did to them.
mlir::Value undoPlan(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value tile, llvm::ArrayRef<DecodePlan::Row> rows);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_PRODUCTCHAINS_H
