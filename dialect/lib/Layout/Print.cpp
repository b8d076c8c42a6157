//===- Print.cpp - A layout as a product of primitives --------------------===//
//
// A layout is a product of one-mode factors if its modes can be put in one
// order that agrees with the thread list, with the local list, and with every
// dimension. Such an order is a merge of the two lists, so after any part of
// it the state is (i, j): i thread digits and j local digits are placed. A
// step places the next digits of one list as one factor:
//
//   row factor     dimensions ascend:   local(2, 3)         modes of 0, 1
//   column factor  dimensions descend:  column_local(2, 3)  modes of 1, 0
//   a replica      reduce(spatial(1, 1, 4), dims=[2])
//
// and is allowed when the modes outside of its modes are placed. The cheapest
// path from (0, 0) to the end is found backwards. When there is none, each mode
// becomes a dimension of its own, which leaves nothing to disagree with, and
// the text ends in a reshape to the true dimensions.
//
//===----------------------------------------------------------------------===//

#include "ModeLists.h"
#include "lowlp/Layout/LayoutText.h"

#include <limits>

using namespace lowlp;
using namespace lowlp::detail;

namespace {
/// One step of the path: the next `count` digits of a list become a factor.
struct Step {
  bool isThread = false;
  bool isColumn = false;
  size_t count = 0;
};

/// Finds and prints the product with the fewest factors.
class ProductPrinter {
public:
  explicit ProductPrinter(const Layout &layout);

  /// True when the layout is a product of primitives.
  bool isProduct() const { return costAt(0, 0) != unreachable; }
  /// The product. Requires: `isProduct()`.
  std::string text() const;

private:
  // A factor outweighs any number of column factors that a layout can have.
  static constexpr int64_t factorCost = 1 << 16, columnCost = 1;
  static constexpr int64_t unreachable = std::numeric_limits<int64_t>::max();

  int64_t &costAt(size_t i, size_t j) {
    return costs[i * (layout.localDigits().size() + 1) + j];
  }
  int64_t costAt(size_t i, size_t j) const {
    return costs[i * (layout.localDigits().size() + 1) + j];
  }
  Step &stepAt(size_t i, size_t j) {
    return steps[i * (layout.localDigits().size() + 1) + j];
  }
  const Step &stepAt(size_t i, size_t j) const {
    return steps[i * (layout.localDigits().size() + 1) + j];
  }

  const std::vector<Digit> &digits(bool isThread) const {
    return isThread ? layout.threadDigits() : layout.localDigits();
  }
  bool isPlaced(int mode, size_t i, size_t j) const;
  bool canPlace(const Digit &digit, size_t i, size_t j) const;
  void tryStep(size_t i, size_t j, Step step);
  void tryList(size_t i, size_t j, bool isThread);
  std::string factor(const Step &step, size_t begin) const;

  const Layout &layout;
  /// For each mode its position in its digit list, and whether that is the
  /// thread list.
  std::vector<std::pair<size_t, bool>> positions;
  std::vector<int64_t> costs;
  std::vector<Step> steps;
};
} // namespace

ProductPrinter::ProductPrinter(const Layout &layout)
    : layout(layout), positions(layout.modes().size()) {
  for (bool isThread : {true, false})
    for (size_t i = 0; i < digits(isThread).size(); ++i)
      if (!digits(isThread)[i].isReplica())
        positions[digits(isThread)[i].mode] = {i, isThread};

  size_t numThreadDigits = layout.threadDigits().size();
  size_t numLocalDigits = layout.localDigits().size();
  costs.assign((numThreadDigits + 1) * (numLocalDigits + 1), unreachable);
  steps.resize(costs.size());
  costAt(numThreadDigits, numLocalDigits) = 0;
  for (size_t i = numThreadDigits + 1; i-- > 0;)
    for (size_t j = numLocalDigits + 1; j-- > 0;)
      for (bool isThread : {true, false})
        tryList(i, j, isThread);
}

bool ProductPrinter::isPlaced(int mode, size_t i, size_t j) const {
  auto [position, isThread] = positions[mode];
  return position < (isThread ? i : j);
}

bool ProductPrinter::canPlace(const Digit &digit, size_t i, size_t j) const {
  if (digit.isReplica() || digit.mode == 0)
    return true;
  const std::vector<Mode> &modes = layout.modes();
  bool isOutermost = modes[digit.mode - 1].dim != modes[digit.mode].dim;
  return isOutermost || isPlaced(digit.mode - 1, i, j);
}

void ProductPrinter::tryStep(size_t i, size_t j, Step step) {
  size_t nextI = i + (step.isThread ? step.count : 0);
  size_t nextJ = j + (step.isThread ? 0 : step.count);
  int64_t rest = costAt(nextI, nextJ);
  if (rest == unreachable)
    return;
  int64_t cost = rest + factorCost + (step.isColumn ? columnCost : 0);
  if (cost < costAt(i, j)) {
    costAt(i, j) = cost;
    stepAt(i, j) = step;
  }
}

void ProductPrinter::tryList(size_t i, size_t j, bool isThread) {
  const std::vector<Digit> &list = digits(isThread);
  size_t begin = isThread ? i : j;
  bool ascends = true, descends = true;
  for (size_t end = begin; end < list.size(); ++end) {
    if (!canPlace(list[end], i, j))
      return;
    if (list[end].isReplica()) {
      if (end == begin)
        tryStep(i, j, {isThread, false, 1});
      return;
    }
    if (end > begin) {
      int64_t previousDim = layout.modes()[list[end - 1].mode].dim;
      int64_t dim = layout.modes()[list[end].mode].dim;
      ascends &= previousDim < dim;
      descends &= previousDim > dim;
    }
    if (!ascends && !descends)
      return;
    tryStep(i, j, {isThread, !ascends, end - begin + 1});
  }
}

std::string ProductPrinter::factor(const Step &step, size_t begin) const {
  std::vector<int64_t> extents(layout.rank(), 1);
  const Digit &first = digits(step.isThread)[begin];
  if (first.isReplica()) {
    extents.push_back(first.extent);
    return "reduce(spatial" + tupleText(extents) + ", dims=[" +
           std::to_string(layout.rank()) + "])";
  }
  for (size_t k = 0; k < step.count; ++k) {
    const Digit &digit = digits(step.isThread)[begin + k];
    extents[layout.modes()[digit.mode].dim] = digit.extent;
  }
  return std::string(step.isColumn ? "column_" : "") +
         (step.isThread ? "spatial" : "local") + tupleText(extents);
}

std::string ProductPrinter::text() const {
  size_t i = 0, j = 0;
  std::string text;
  while (i < layout.threadDigits().size() || j < layout.localDigits().size()) {
    const Step &step = stepAt(i, j);
    size_t &begin = step.isThread ? i : j;
    text += (text.empty() ? "" : ".") + factor(step, begin);
    begin += step.count;
  }
  if (text.empty())
    return "local" + tupleText(std::vector<int64_t>(layout.rank(), 1));
  return text;
}

std::string lowlp::str(const Layout &layout) {
  ProductPrinter printer(layout);
  if (printer.isProduct())
    return printer.text();
  ModeLists lists(layout);
  std::vector<std::vector<int>> modeDims;
  for (const std::vector<int> &modes : lists.dims)
    for (int mode : modes)
      modeDims.push_back({mode});
  lists.dims = std::move(modeDims);
  Layout spread = std::move(lists).build();
  return ProductPrinter(spread).text() + ".reshape" + tupleText(layout.shape());
}
