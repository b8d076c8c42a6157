//===- TilePositions.h - where the elements of a tile lie -------*- C++ -*-===//
//
// Element (t, i) of a tile that lies along the last dimensions of a tensor has
// the index
//
//   offset + part of t + part of i      along each dimension,
//
// where the part of i is a number and the part of t is made of the digits of
// the thread index. The kind of memory says where that index lies:
//
//   global    sum over dimensions of index * stride
//   shared    the address that the shared layout gives the index
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEPOSITIONS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEPOSITIONS_H

#include "LowlpToThread.h"

#include <map>

namespace lowlp {

/// A dimension of a tensor along which indices that a thread holds take the
/// place of the tile's own.
struct GatheredDim {
  /// Of the tensor; -1 if there is none.
  int64_t dim = -1;
  /// For each local element its index, to which the offset is added.
  llvm::SmallVector<mlir::Value> indices;
};

/// Where the elements of one access lie, and which of them exist.
class TilePositions {
public:
  virtual ~TilePositions() = default;

  /// The position of local element `i`, counted in elements, as an i64.
  virtual mlir::Value getElementPosition(int64_t i) = 0;
  /// Whether local element `i` lies inside of the tensor, as an i1.
  mlir::Value isInside(int64_t i);
  /// Whether all of the `count` neighbours from `i` on do.
  mlir::Value areInside(int64_t i, int64_t count);
  /// Whether this thread is the first of those that hold its elements; null
  /// when every element is held once.
  mlir::Value isFirstOwner() { return isFirst; }

  /// What the CPU target says of an element outside where none was promised.
  llvm::StringRef outside = kOutside;

protected:
  TilePositions(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc,
                mlir::ValueRange offsets, const Layout &layout,
                GatheredDim gathered);

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  template <typename Op> mlir::Value make(mlir::Value a, mlir::Value b) {
    return Op::create(rewriter, loc, a, b);
  }
  /// Adds to `starts` what the digits of the thread index contribute.
  void addThreadIndex();
  /// What local element `i` adds to `starts[dim]`.
  int64_t getPart(const std::vector<int64_t> &element, int64_t dim) const {
    return dim < firstTileDim || dim == gathered.dim
               ? 0
               : element[dim - firstTileDim];
  }

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Location loc;
  const Layout &layout;
  GatheredDim gathered;
  int64_t firstTileDim;
  /// For each dimension of the tensor: extent, and the index of this thread's
  /// element 0.
  llvm::SmallVector<mlir::Value> extents, starts;

private:
  mlir::Value isFirst;
  /// Tests made already, by dimension and number added to the start.
  std::map<std::pair<int64_t, int64_t>, mlir::Value> tests;
};

/// Of a tile in a view of global memory.
class GlobalPositions : public TilePositions {
public:
  GlobalPositions(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc,
                  ViewGlobalOp view, mlir::ValueRange offsets,
                  const Layout &layout, GatheredDim gathered = {});

  mlir::Value getElementPosition(int64_t i) override;
  /// Of the view, counted in elements.
  llvm::ArrayRef<mlir::Value> getExtents() const { return extents; }
  llvm::ArrayRef<mlir::Value> getStrides() const { return strides; }

private:
  /// A value of the view's, as it is now, after the conversion of its op.
  mlir::Value materialize(mlir::OpFoldResult value);

  llvm::SmallVector<mlir::Value> strides;
  mlir::Value basePosition;
};

/// Of a tile in a shared tile.
class SharedPositions : public TilePositions {
public:
  SharedPositions(mlir::ConversionPatternRewriter &rewriter, mlir::Location loc,
                  const SharedLayout &sharedLayout, mlir::ValueRange offsets,
                  const Layout &layout, GatheredDim gathered = {});

  mlir::Value getElementPosition(int64_t i) override;

private:
  /// The digit `value / unit % extent` of an index; the outermost one of a
  /// dimension needs no remainder.
  mlir::Value getDigit(mlir::Value value, int64_t unit, int64_t extent,
                       bool isOutermost);
  void applySwizzle(llvm::MutableArrayRef<mlir::Value> index);
  bool isChanged(int64_t dim) const;

  const SharedLayout &sharedLayout;
};

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_TILEPOSITIONS_H
