//===- RandomLayout.h - Layouts for laws by brute force ---------*- C++ -*-===//

#ifndef LOWLP_TEST_UNIT_RANDOMLAYOUT_H
#define LOWLP_TEST_UNIT_RANDOMLAYOUT_H

#include "lowlp/Layout/Layout.h"

#include <ostream>
#include <random>
#include <tuple>
#include <vector>

namespace lowlp {
/// How GoogleTest shows a layout of a failed comparison.
void PrintTo(const Layout &layout, std::ostream *os);
} // namespace lowlp

namespace lowlp::test {

using Random = std::mt19937;

/// A number from `low` to `high`, the same on every platform.
int64_t pick(Random &random, int64_t low, int64_t high);

/// A layout of the given rank (1 to 3 when 0) with at most `maxSize` threads
/// times locals: modes of extent 1 to 5 in random order, up to two replicas.
Layout randomLayout(Random &random, int64_t rank = 0, int64_t maxSize = 400);

/// A layout as a function: its shape, its threads, its locals, and f(t, i) for
/// all t and, fastest, all i. Two layouts are the same function exactly when
/// these are equal.
struct Table {
  std::vector<int64_t> shape;
  int64_t numThreads;
  int64_t numLocals;
  std::vector<std::vector<int64_t>> elements;

  bool operator==(const Table &other) const {
    return shape == other.shape && numThreads == other.numThreads &&
           numLocals == other.numLocals && elements == other.elements;
  }
  bool operator<(const Table &other) const {
    return std::tie(shape, numThreads, numLocals, elements) <
           std::tie(other.shape, other.numThreads, other.numLocals,
                    other.elements);
  }
};
Table tableOf(const Layout &layout);

} // namespace lowlp::test

#endif // LOWLP_TEST_UNIT_RANDOMLAYOUT_H
