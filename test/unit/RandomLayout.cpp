//===- RandomLayout.cpp - Layouts for laws by brute force -----------------===//

#include "RandomLayout.h"
#include "lowlp/Layout/LayoutText.h"

#include <algorithm>

using namespace lowlp;
using namespace lowlp::test;

void lowlp::PrintTo(const Layout &layout, std::ostream *os) {
  *os << str(layout);
}

int64_t lowlp::test::pick(Random &random, int64_t low, int64_t high) {
  // The standard distributions differ between libraries; this does not.
  return low + static_cast<int64_t>(random() % (high - low + 1));
}

/// Fisher-Yates, because std::shuffle differs between libraries too.
static void shuffle(std::vector<Digit> &digits, Random &random) {
  for (size_t i = digits.size(); i > 1; --i)
    std::swap(digits[i - 1], digits[pick(random, 0, i - 1)]);
}

Layout lowlp::test::randomLayout(Random &random, int64_t rank,
                                 int64_t maxSize) {
  if (rank == 0)
    rank = pick(random, 1, 3);
  std::vector<std::vector<int64_t>> modeExtents(rank);
  std::vector<Digit> threads, locals;
  int64_t size = 1;
  int numModes = 0;
  for (std::vector<int64_t> &extents : modeExtents) {
    for (int64_t count = pick(random, 0, 3); count > 0; --count) {
      int64_t extent = pick(random, 1, 5);
      if (size * extent > maxSize)
        continue;
      size *= extent;
      extents.push_back(extent);
      (pick(random, 0, 1) ? threads : locals).push_back({numModes++, extent});
    }
  }
  for (int64_t count = std::max<int64_t>(0, pick(random, -2, 2)); count > 0;
       --count) {
    int64_t extent = pick(random, 2, 3);
    if (size * extent > maxSize)
      continue;
    size *= extent;
    threads.push_back(Digit::replica(extent));
  }
  shuffle(threads, random);
  shuffle(locals, random);
  return *Layout::fromModes(modeExtents, threads, locals);
}

Table lowlp::test::tableOf(const Layout &layout) {
  Table table{layout.shape(), layout.numThreads(), layout.numLocals(), {}};
  for (int64_t t = 0; t < layout.numThreads(); ++t)
    for (int64_t i = 0; i < layout.numLocals(); ++i)
      table.elements.push_back(layout.evaluate(t, i));
  return table;
}
