//===- RegisterGrid.h - operands of matrix instructions ---------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_REGISTERGRID_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_REGISTERGRID_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// A tile as a grid of what the 32 lanes of a warp hold in one register of a
/// matrix instruction's fragment: 32 bits a lane, or two accumulators.
struct RegisterGrid {
  /// A place in the grid: row and column.
  using Place = std::vector<int64_t>;
  /// One for each warp.
  using PlaceInWarp = llvm::function_ref<Place(int64_t)>;

  /// How messages call the tile.
  llvm::StringRef name;
  /// Maps (warp, register) to a place.
  Layout outer;
  /// The extents of one register.
  int64_t rows, columns;

  /// The index at which every warp w holds the register at place(w), or
  /// nothing.
  std::optional<int64_t> find(PlaceInWarp place) const;

  /// "rows 0 to 7 and columns 0 to 15 of a"
  std::string describe(const Place &place) const;
};

/// The tile of `layout` as a grid of registers of layout `unit`; nothing if it
/// is not made of whole ones, as many as make a `fragment`.
std::optional<RegisterGrid> divideIntoRegisters(llvm::StringRef name,
                                                const Layout &layout,
                                                const Layout &unit,
                                                const Layout &fragment);

/// `registers` of `size` elements each, out of the vector `tile`.
mlir::Value gatherRegisters(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value tile, llvm::ArrayRef<int64_t> registers,
                            int64_t size);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_REGISTERGRID_H
