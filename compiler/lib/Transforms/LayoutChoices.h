//===- LayoutChoices.h - layouts for tiles that have no own ----*- C++ -*-===//
//
// A tile is free where nobody named its layout: its op has the attribute
// `lowlp.free_layout`, or makes it of free tiles alone, with the interface
// `LayoutTransferInterface`. A conversion with the attribute is none: source
// and result are one tile here. So are the four places of a value that a loop
// carries.
//
// Ops that have their layouts, such as products, say how they need their
// operands. From there layouts spread in rounds, the first to come staying:
//
//   back      to the operands of which a tile is made, as long as there are any
//   forward   to what is made of it
//
// and a tile that neither reaches keeps the layout it has, but for what is
// reduced: warps that would share a sum lie along its other dimensions instead.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_TRANSFORMS_LAYOUTCHOICES_H
#define LOWLP_LIB_TRANSFORMS_LAYOUTCHOICES_H

#include "lowlp/IR/Lowlp.h"

#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace lowlp {

class LayoutChoices {
public:
  explicit LayoutChoices(KernelOp kernel);

  /// Whether `op` is a conversion whose result has a layout that nobody named.
  static bool isFreeConversion(mlir::Operation *op);
  /// The tile behind such conversions.
  static mlir::Value getSource(mlir::Value tile);

  /// Whether `op` makes its tile of nothing, as `lowlp.splat` does.
  static bool costsNothing(mlir::Operation *op);

  /// The layout of a tile; of what a free conversion gives, that of its source.
  Layout getLayout(mlir::Value tile) const;
  /// The layout in which an op is to find its operand, a tile.
  Layout getNeeded(mlir::OpOperand &operand) const;
  /// The tiles that get another layout than they have: results of ops, and what
  /// loops carry, as arguments of their bodies.
  llvm::SmallVector<std::pair<mlir::Value, Layout>> getChanged() const;
  /// Why a tile is not held as an op wants it.
  std::string explain(mlir::OpOperand &operand) const;

private:
  struct Wish {
    mlir::Value node;
    Layout layout;
  };

  /// What stands for a tile: its source, and of a value that a loop carries the
  /// argument of its body.
  static mlir::Value getNode(mlir::Value tile);
  bool isFree(mlir::Value node) const { return free.contains(node); }
  void findFree(KernelOp kernel);
  /// The layouts of the operands of `op`, which has the interface, for a layout
  /// of the result; nothing if it cannot have it.
  std::optional<llvm::SmallVector<Layout>>
  findOperandLayouts(mlir::Operation *op, const Layout &layout) const;
  void wishOfUsers(KernelOp kernel);
  void keepWithinWarps(ReduceOp reduction);
  void settle(const Wish &wish);
  bool canHold(const Wish &wish);
  void passBack(const Wish &wish);
  void passForward(mlir::Value value, const Layout &layout);
  void offer(mlir::Value tile, const Layout &layout);

  llvm::DenseSet<mlir::Value> free;
  /// Loads that go through stages of shared memory.
  llvm::DenseSet<mlir::Operation *> staged;
  std::deque<Wish> backward, forward;
  /// What is better for a tile that neither reaches.
  std::deque<Wish> idle;
  llvm::DenseMap<mlir::Value, Layout> chosen;
  /// By node, why it is not held as somebody wished.
  llvm::DenseMap<mlir::Value, std::string> refusals;
};

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_LAYOUTCHOICES_H
