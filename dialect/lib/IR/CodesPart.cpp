//===- CodesPart.cpp - the codes of a larger tile that are looked up ------===//
#include "CodesPart.h"

#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

using namespace mlir;
using namespace lowlp;

/// The layout of the part of codes held as `codes` whose first `numFixed`
/// dimensions are fixed, if every thread holds it.
static std::optional<Layout> findPart(const Layout &codes, int64_t numFixed) {
  std::vector<int64_t> fixed;
  for (int64_t dim = 0; dim < numFixed; ++dim)
    fixed.push_back(dim);
  for (const Digit &digit : codes.threadDigits())
    if (!digit.isReplica() && codes.modes()[digit.mode].dim < numFixed)
      return std::nullopt;
  return fixed.empty() ? codes : *reduce(codes, fixed);
}

FailureOr<Layout> lowlp::verifyCodesPart(Operation *op, TileType codes,
                                         ArrayRef<int64_t> part) {
  if (static_cast<int64_t>(part.size()) >= codes.getRank())
    return op->emitOpError("a part names fewer than the ")
           << codes.getRank() << " dimensions of the codes, but this one names "
           << part.size();
  for (auto [dim, index] : llvm::enumerate(part))
    if (index < 0 || index >= codes.getShape()[dim])
      return op->emitOpError("index ")
             << dim << " of the part must be at least 0 and less than "
             << codes.getShape()[dim] << ", but is " << index;
  std::optional<Layout> layout =
      findPart(codes.getLayout(), static_cast<int64_t>(part.size()));
  if (!layout)
    return op->emitOpError("each thread must hold all of the first ")
           << part.size() << " dimensions of the codes, which the layout "
           << str(codes.getLayout()) << " spreads over threads";
  return *layout;
}

Layout lowlp::getCodesPartLayout(TileType codes, ArrayRef<int64_t> part) {
  return *findPart(codes.getLayout(), static_cast<int64_t>(part.size()));
}

SmallVector<int64_t> lowlp::getCodesPartLocals(TileType codes,
                                               ArrayRef<int64_t> part) {
  const Layout &layout = codes.getLayout();
  SmallVector<int64_t> locals;
  for (int64_t i = 0; i < layout.numLocals(); ++i) {
    std::vector<int64_t> index = layout.evaluate(0, i);
    if (ArrayRef(index).take_front(part.size()) == part)
      locals.push_back(i);
  }
  return locals;
}
