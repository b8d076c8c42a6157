//===- ModeLists.cpp - A layout under construction ------------------------===//
//
// The canonical form, in three steps: digits of extent 1 go; a mode and the
// mode directly inside of it in their dimension become one where they are
// neighbours in their digit list as well; neighbouring replicas become one.
// What is left is determined by the function alone: from the inside, a digit
// ends exactly where the function stops to go on by the same step.
//
//===----------------------------------------------------------------------===//

#include "ModeLists.h"

#include <algorithm>
#include <iterator>

using namespace lowlp;
using namespace lowlp::detail;

ModeLists::ModeLists(const Layout &layout)
    : threads(layout.threadDigits()), locals(layout.localDigits()) {
  dims.resize(layout.rank());
  for (const Mode &mode : layout.modes())
    dims[mode.dim].push_back(addMode(mode.extent));
}

int ModeLists::addMode(int64_t extent) {
  extents.push_back(extent);
  return static_cast<int>(extents.size()) - 1;
}

void ModeLists::splitMode(int mode, int64_t inner) {
  assert(extents[mode] % inner == 0 && "the split must divide the extent");
  extents[mode] /= inner;
  int innerMode = addMode(inner);
  for (std::vector<int> &modes : dims) {
    auto it = std::find(modes.begin(), modes.end(), mode);
    if (it != modes.end())
      modes.insert(std::next(it), innerMode);
  }
  for (std::vector<Digit> *digits : {&threads, &locals}) {
    auto it =
        std::find_if(digits->begin(), digits->end(),
                     [&](const Digit &digit) { return digit.mode == mode; });
    if (it == digits->end())
      continue;
    it->extent = extents[mode];
    digits->insert(std::next(it), Digit{innerMode, inner});
  }
}

int ModeLists::splitDigits(std::vector<Digit> &digits, int64_t inner) {
  int64_t product = 1;
  size_t position = digits.size();
  while (position > 0 && inner % (product * digits[position - 1].extent) == 0)
    product *= digits[--position].extent;
  if (product == inner)
    return static_cast<int>(position);
  // The boundary falls within the digit before `position`.
  if (position == 0 || inner % product != 0)
    return -1;
  Digit &digit = digits[position - 1];
  int64_t innerExtent = inner / product;
  if (digit.extent % innerExtent != 0)
    return -1;
  if (digit.isReplica()) {
    digit.extent /= innerExtent;
    digits.insert(digits.begin() + position, Digit::replica(innerExtent));
  } else {
    splitMode(digit.mode, innerExtent);
  }
  return static_cast<int>(position);
}

int ModeLists::splitThreads(int64_t inner) {
  return splitDigits(threads, inner);
}

int ModeLists::splitLocals(int64_t inner) { return splitDigits(locals, inner); }

int ModeLists::splitDim(int64_t dim, int64_t inner) {
  const std::vector<int> &modes = dims[dim];
  int64_t product = 1;
  size_t position = modes.size();
  while (position > 0 && inner % (product * extents[modes[position - 1]]) == 0)
    product *= extents[modes[--position]];
  if (product == inner)
    return static_cast<int>(position);
  if (position == 0 || inner % product != 0)
    return -1;
  int mode = modes[position - 1];
  int64_t innerExtent = inner / product;
  if (extents[mode] % innerExtent != 0)
    return -1;
  splitMode(mode, innerExtent);
  return static_cast<int>(position);
}

void ModeLists::dropUnits() {
  for (std::vector<int> &modes : dims)
    modes.erase(std::remove_if(modes.begin(), modes.end(),
                               [&](int mode) { return extents[mode] == 1; }),
                modes.end());
  for (std::vector<Digit> *digits : {&threads, &locals})
    digits->erase(
        std::remove_if(digits->begin(), digits->end(),
                       [](const Digit &digit) { return digit.extent == 1; }),
        digits->end());
}

void ModeLists::mergeModes(std::vector<Digit> &digits) {
  // The mode directly inside of each mode in its dimension.
  std::vector<int> inside(extents.size(), Digit::replicaMode);
  for (const std::vector<int> &modes : dims)
    for (size_t i = 0; i + 1 < modes.size(); ++i)
      inside[modes[i]] = modes[i + 1];

  std::vector<Digit> merged;
  for (const Digit &digit : digits) {
    bool joins = !merged.empty() && !digit.isReplica() &&
                 !merged.back().isReplica() &&
                 inside[merged.back().mode] == digit.mode;
    if (!joins) {
      merged.push_back(digit);
      continue;
    }
    // The outer mode keeps its number and takes the inner one's place.
    Digit &outer = merged.back();
    outer.extent *= digit.extent;
    extents[outer.mode] = outer.extent;
    inside[outer.mode] = inside[digit.mode];
    for (std::vector<int> &modes : dims)
      modes.erase(std::remove(modes.begin(), modes.end(), digit.mode),
                  modes.end());
  }
  digits = std::move(merged);
}

void ModeLists::mergeReplicas() {
  std::vector<Digit> merged;
  for (const Digit &digit : threads) {
    if (digit.isReplica() && !merged.empty() && merged.back().isReplica())
      merged.back().extent *= digit.extent;
    else
      merged.push_back(digit);
  }
  threads = std::move(merged);
}

Layout ModeLists::build() && {
  dropUnits();
  mergeModes(threads);
  mergeModes(locals);
  mergeReplicas();

  Layout layout{Layout::Unset()};
  std::vector<int> newNumber(extents.size(), Digit::replicaMode);
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    int64_t stride = 1;
    size_t first = layout.allModes.size();
    layout.allModes.resize(first + dims[dim].size());
    for (size_t i = dims[dim].size(); i-- > 0;) {
      int mode = dims[dim][i];
      newNumber[mode] = static_cast<int>(first + i);
      layout.allModes[first + i] = {static_cast<int64_t>(dim), extents[mode],
                                    stride};
      stride *= extents[mode];
    }
    layout.dimExtents.push_back(stride);
  }
  for (Digit &digit : threads) {
    if (!digit.isReplica())
      digit.mode = newNumber[digit.mode];
    layout.threadCount *= digit.extent;
  }
  for (Digit &digit : locals) {
    digit.mode = newNumber[digit.mode];
    layout.localCount *= digit.extent;
  }
  layout.threads = std::move(threads);
  layout.locals = std::move(locals);
  return layout;
}

int64_t lowlp::detail::checkedProduct(const std::vector<int64_t> &factors) {
  int64_t product = 1;
  for (int64_t factor : factors) {
    assert(factor >= 1 && "factors must be positive");
    if (product > Layout::maxSize / factor)
      return -1;
    product *= factor;
  }
  return product;
}

std::string lowlp::detail::tupleText(const std::vector<int64_t> &numbers) {
  std::string text = "(";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + ")";
}
