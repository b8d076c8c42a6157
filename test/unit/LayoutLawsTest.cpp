//===- LayoutLawsTest.cpp - Laws by brute force ---------------------------===//
//
// Every law is checked on seeded random layouts, extents 1 to 5 and replicas
// included, against the definition by f(t, i).
//
//===----------------------------------------------------------------------===//

#include "RandomLayout.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Layout/Reinterpret.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

using namespace lowlp;
using namespace lowlp::test;

static constexpr int numSamples = 3000;

TEST(LayoutLaws, ComposeIsItsDefinition) {
  Random random(1);
  for (int sample = 0; sample < numSamples; ++sample) {
    int64_t rank = pick(random, 1, 3);
    Layout f = randomLayout(random, rank, 30),
           g = randomLayout(random, rank, 30);
    Layout h = f * g;
    ASSERT_EQ(h.numThreads(), f.numThreads() * g.numThreads());
    ASSERT_EQ(h.numLocals(), f.numLocals() * g.numLocals());
    for (int64_t t = 0; t < h.numThreads(); ++t)
      for (int64_t i = 0; i < h.numLocals(); ++i) {
        std::vector<int64_t> expected =
            f.evaluate(t / g.numThreads(), i / g.numLocals());
        std::vector<int64_t> inner =
            g.evaluate(t % g.numThreads(), i % g.numLocals());
        for (int64_t dim = 0; dim < rank; ++dim)
          expected[dim] = expected[dim] * g.shape()[dim] + inner[dim];
        ASSERT_EQ(h.evaluate(t, i), expected) << str(f) << " * " << str(g);
      }
  }
}

TEST(LayoutLaws, ComposeIsAssociativeWithIdentity) {
  Random random(2);
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout f = randomLayout(random), g = randomLayout(random),
           h = randomLayout(random);
    ASSERT_EQ(f * (g * h), (f * g) * h);
    ASSERT_EQ(f * Layout(), f);
    ASSERT_EQ(Layout() * f, f);
  }
}

TEST(LayoutLaws, DivisionUndoesComposition) {
  Random random(3);
  for (int sample = 0; sample < numSamples; ++sample) {
    int64_t rank = pick(random, 1, 3);
    Layout f = randomLayout(random, rank), g = randomLayout(random, rank);
    Result<Layout> right = divideRight(f * g, g);
    ASSERT_TRUE(right) << right.error();
    ASSERT_EQ(*right, f);
    Result<Layout> left = divideLeft(f * g, f);
    ASSERT_TRUE(left) << left.error();
    ASSERT_EQ(*left, g);
  }
}

TEST(LayoutLaws, QuotientsOfRandomPairsComposeBack) {
  Random random(4);
  int numQuotients = 0;
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout f = randomLayout(random, 1), g = randomLayout(random, 1, 6);
    if (Result<Layout> h = divideRight(f, g)) {
      ASSERT_EQ(*h * g, f);
      ++numQuotients;
    }
    if (Result<Layout> h = divideLeft(f, g)) {
      ASSERT_EQ(g * *h, f);
      ++numQuotients;
    }
  }
  EXPECT_GT(numQuotients, 100);
}

/// The canonical form of a layout from which digits were split at random, in
/// all ways that do not change the function.
static Layout rebuilt(const Layout &layout, Random &random) {
  std::vector<std::vector<int64_t>> extents(layout.rank());
  std::vector<std::vector<Digit>> pieces(layout.modes().size());
  int number = 0;
  for (size_t m = 0; m < layout.modes().size(); ++m) {
    int64_t rest = layout.modes()[m].extent;
    while (rest > 0) {
      int64_t piece = pick(random, 1, rest);
      if (rest % piece != 0)
        continue;
      extents[layout.modes()[m].dim].push_back(piece);
      pieces[m].push_back({number++, piece});
      rest = rest == piece && pick(random, 0, 1) ? 0 : rest / piece;
      if (rest == 1)
        break;
    }
  }
  auto expand = [&](const std::vector<Digit> &digits) {
    std::vector<Digit> expanded;
    for (const Digit &digit : digits) {
      if (digit.isReplica()) {
        expanded.push_back(digit);
        expanded.push_back(Digit::replica(1));
        continue;
      }
      expanded.insert(expanded.end(), pieces[digit.mode].begin(),
                      pieces[digit.mode].end());
    }
    return expanded;
  };
  return *Layout::fromModes(extents, expand(layout.threadDigits()),
                            expand(layout.localDigits()));
}

TEST(LayoutLaws, EqualExactlyWhenEqualAsFunctions) {
  // Small layouts, so that equal functions come up often in different ways.
  Random random(5);
  std::map<Table, Layout> seen;
  int numRepeated = 0;
  for (int sample = 0; sample < 4 * numSamples; ++sample) {
    Layout layout =
        sample % 2 ? randomLayout(random, pick(random, 1, 2), 12)
                   : randomLayout(random, 1, 6) * randomLayout(random, 2, 4);
    auto [it, isNew] = seen.try_emplace(tableOf(layout), layout);
    numRepeated += !isNew;
    ASSERT_EQ(it->second, layout) << "one function, two forms: " << str(layout);
    ASSERT_EQ(it->second.hash(), layout.hash());
    ASSERT_EQ(rebuilt(layout, random), layout);
  }
  EXPECT_GT(numRepeated, 1000);
  // And the other way: as many forms as functions.
  std::map<std::string, int> texts;
  for (const auto &[table, layout] : seen)
    ASSERT_EQ(texts[str(layout)]++, 0) << str(layout);
}

TEST(LayoutLaws, TextRoundTrip) {
  Random random(6);
  int numReshapes = 0;
  for (int sample = 0; sample < 2 * numSamples; ++sample) {
    Layout layout = randomLayout(random, 0, 100000);
    std::string text = str(layout);
    Result<Layout> parsed = parseLayout(text);
    ASSERT_TRUE(parsed) << parsed.error();
    ASSERT_EQ(*parsed, layout) << text;
    numReshapes += text.find("reshape") != std::string::npos;
  }
  EXPECT_GT(numReshapes, 100);
}

TEST(LayoutLaws, DamagedTextIsRefusedOrAnotherLayout) {
  Random random(14);
  const std::string letters = "localspti_reduhm(),.=[]0123456789- ";
  int numParsed = 0;
  for (int sample = 0; sample < 2 * numSamples; ++sample) {
    std::string text = str(randomLayout(random));
    for (int64_t count = pick(random, 1, 3); count > 0; --count) {
      size_t position = pick(random, 0, text.size() - 1);
      char letter = letters[pick(random, 0, letters.size() - 1)];
      switch (pick(random, 0, 2)) {
      case 0:
        text[position] = letter;
        break;
      case 1:
        text.insert(position, 1, letter);
        break;
      default:
        text.resize(position + 1);
      }
    }
    Result<Layout> parsed = parseLayout(text);
    if (!parsed) {
      ASSERT_FALSE(parsed.error().empty());
      continue;
    }
    ++numParsed;
    ASSERT_EQ(*parseLayout(str(*parsed)), *parsed) << text;
  }
  EXPECT_GT(numParsed, 100);
}

TEST(LayoutLaws, ModesRoundTrip) {
  Random random(7);
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout layout = randomLayout(random);
    ASSERT_EQ(*Layout::fromModes(layout.modeExtents(), layout.threadDigits(),
                                 layout.localDigits()),
              layout);
  }
}

/// Row-major number of an element in a tile.
static int64_t linearize(const std::vector<int64_t> &index,
                         const std::vector<int64_t> &shape) {
  int64_t number = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    number = number * shape[dim] + index[dim];
  return number;
}

TEST(LayoutLaws, ReshapeKeepsRowMajorOrder) {
  Random random(8);
  int numReshaped = 0;
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout layout = randomLayout(random);
    // Flattening splits nothing and so always works; its inverse exists.
    Layout flat = *reshape(layout, {layout.numElements()});
    Result<Layout> unflattened = reshape(flat, layout.shape());
    ASSERT_TRUE(unflattened) << unflattened.error();
    ASSERT_EQ(*unflattened, layout);
    // A random factorisation of the number of elements.
    std::vector<int64_t> shape;
    int64_t rest = layout.numElements();
    for (int k = 0; k < 2; ++k) {
      int64_t factor = pick(random, 1, rest);
      factor = std::gcd(factor, rest);
      shape.push_back(factor);
      rest /= factor;
    }
    shape.push_back(rest);
    Result<Layout> reshaped = reshape(layout, shape);
    if (!reshaped)
      continue;
    ++numReshaped;
    ASSERT_EQ(reshaped->shape(), shape);
    for (int64_t t = 0; t < layout.numThreads(); ++t)
      for (int64_t i = 0; i < layout.numLocals(); ++i)
        ASSERT_EQ(linearize(reshaped->evaluate(t, i), shape),
                  linearize(layout.evaluate(t, i), layout.shape()));
  }
  EXPECT_GT(numReshaped, 1000);
}

TEST(LayoutLaws, PermuteMovesCoordinates) {
  Random random(9);
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout layout = randomLayout(random, 3);
    std::vector<int64_t> dims{0, 1, 2};
    for (int k = 2; k > 0; --k)
      std::swap(dims[k], dims[pick(random, 0, k)]);
    Layout permuted = *permute(layout, dims);
    for (int64_t t = 0; t < layout.numThreads(); ++t)
      for (int64_t i = 0; i < layout.numLocals(); ++i)
        for (int k = 0; k < 3; ++k)
          ASSERT_EQ(permuted.evaluate(t, i)[k], layout.evaluate(t, i)[dims[k]]);
  }
}

TEST(LayoutLaws, ReduceKeepsTheDistinctElementsOfEachThread) {
  Random random(10);
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout layout = randomLayout(random, 3);
    int64_t dim = pick(random, 0, 2);
    Layout reduced = *reduce(layout, {dim}, /*keepDims=*/true);
    Layout dropped = *reduce(layout, {dim});
    ASSERT_EQ(*squeeze(reduced, {dim}), dropped);
    ASSERT_EQ(reduced.numThreads(), layout.numThreads());
    for (int64_t t = 0; t < layout.numThreads(); ++t) {
      // Definition: the elements of the thread, in the order in which they
      // first appear, with the coordinate gone.
      std::vector<std::vector<int64_t>> expected;
      for (int64_t i = 0; i < layout.numLocals(); ++i) {
        std::vector<int64_t> index = layout.evaluate(t, i);
        index[dim] = 0;
        if (std::find(expected.begin(), expected.end(), index) ==
            expected.end())
          expected.push_back(index);
      }
      std::vector<std::vector<int64_t>> found;
      for (int64_t i = 0; i < reduced.numLocals(); ++i)
        found.push_back(reduced.evaluate(t, i));
      ASSERT_EQ(found, expected) << str(layout) << " over " << dim;
    }
  }
}

TEST(LayoutLaws, ThreadsHoldingIsTheInverse) {
  Random random(11);
  for (int sample = 0; sample < 500; ++sample) {
    Layout layout = randomLayout(random);
    std::map<std::vector<int64_t>, std::vector<Owner>> owners;
    for (int64_t t = 0; t < layout.numThreads(); ++t)
      for (int64_t i = 0; i < layout.numLocals(); ++i)
        owners[layout.evaluate(t, i)].push_back({t, i});
    // Every element is held by somebody.
    ASSERT_EQ(static_cast<int64_t>(owners.size()), layout.numElements());
    for (const auto &[index, expected] : owners)
      ASSERT_EQ(*layout.threadsHolding(index), expected);
    ASSERT_EQ(layout.hasReplicas(), owners.begin()->second.size() > 1);
  }
}

/// True when aligned groups of `v` locals hold consecutive elements along
/// `dim`, the first at a multiple of `v`.
static bool isContiguous(const Layout &layout, int64_t dim, int64_t v) {
  if (layout.numLocals() % v != 0)
    return false;
  for (int64_t t = 0; t < layout.numThreads(); ++t)
    for (int64_t i = 0; i < layout.numLocals(); ++i) {
      std::vector<int64_t> expected = layout.evaluate(t, i / v * v);
      if (expected[dim] % v != 0)
        return false;
      expected[dim] += i % v;
      if (layout.evaluate(t, i) != expected)
        return false;
    }
  return true;
}

TEST(LayoutLaws, ContiguousLocalsIsTheLargest) {
  Random random(12);
  for (int sample = 0; sample < 500; ++sample) {
    Layout layout = randomLayout(random, 2);
    for (int64_t dim = 0; dim < 2; ++dim) {
      int64_t largest = 1;
      for (int64_t v = 1; v <= layout.numLocals(); ++v)
        if (isContiguous(layout, dim, v))
          largest = v;
      ASSERT_EQ(layout.contiguousLocals(dim), largest) << str(layout);
    }
  }
}

TEST(LayoutLaws, ReinterpretKeepsThreadsAndBits) {
  Random random(13);
  for (int sample = 0; sample < numSamples; ++sample) {
    Layout layout = randomLayout(random);
    int64_t fromBits = pick(random, 1, 16), toBits = pick(random, 1, 32);
    Result<Layout> view = reinterpret(layout, fromBits, toBits);
    ASSERT_EQ(bool(view), layout.numLocals() * fromBits % toBits == 0);
    if (view) {
      ASSERT_EQ(view->rank(), 1);
      ASSERT_TRUE(sameBitsPerThread(layout, fromBits, *view, toBits));
      ASSERT_FALSE(view->hasReplicas());
    }
  }
}
