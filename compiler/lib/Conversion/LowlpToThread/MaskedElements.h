//===- MaskedElements.h - elements that no view holds -----------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_MASKEDELEMENTS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_MASKEDELEMENTS_H

#include "TilePositions.h"

#include <memory>

namespace lowlp {

/// Which elements of a tile come from inside of the views of global memory that
/// they were loaded from, as far as ops between the loads and the tile go
/// element by element, repeat elements along one dimension, or exchange them
/// between threads. The others are zeros that a load put in their place, or
/// were computed of those.
class MaskedElements {
public:
  /// `tile` is a value of the block level, and `layout` says which elements a
  /// thread holds. Both outlive this object.
  MaskedElements(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc,
                 mlir::Value tile, const Layout &layout);

  /// Whether local element `i` comes from inside, as an i1; null: it does.
  mlir::Value isInside(int64_t i);

private:
  void add(LoadGlobalOp load, int64_t repeatedDim);

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Location loc;
  const Layout &layout;
  std::vector<std::unique_ptr<GlobalPositions>> loads;
};

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_MASKEDELEMENTS_H
