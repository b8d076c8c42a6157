//===- Reinterpret.cpp - The same bits as another element type ------------===//

#include "lowlp/Layout/Reinterpret.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include <numeric>

using namespace lowlp;

/// The bits of the widest access of a thread to memory (16 bytes).
static constexpr int64_t accessBits = 128;

bool lowlp::sameBitsPerThread(const Layout &a, int64_t bitsA, const Layout &b,
                              int64_t bitsB) {
  assert(bitsA >= 1 && bitsB >= 1 && "an element has at least one bit");
  // Locals in lowest terms, so that the products cannot overflow.
  int64_t common = std::gcd(bitsA, bitsB);
  int64_t unitsA = bitsA / common, unitsB = bitsB / common;
  return a.numThreads() == b.numThreads() && a.numLocals() % unitsB == 0 &&
         b.numLocals() % unitsA == 0 &&
         a.numLocals() / unitsB == b.numLocals() / unitsA;
}

Result<Layout> lowlp::reinterpret(const Layout &layout, int64_t fromBits,
                                  int64_t toBits) {
  for (int64_t bits : {fromBits, toBits})
    if (bits < 1 || bits > accessBits)
      return Error{"an element has 1 to 128 bits; found " +
                   std::to_string(bits)};
  if (layout.numLocals() > Layout::maxSize / fromBits)
    return Error{"a thread holds at most 2**62 bits; found " + str(layout)};
  int64_t bitsPerThread = layout.numLocals() * fromBits;
  if (bitsPerThread % toBits != 0)
    return Error{"a thread of " + str(layout) + " holds " +
                 std::to_string(bitsPerThread) + " bits (" +
                 std::to_string(layout.numLocals()) + " elements of " +
                 std::to_string(fromBits) + "), which is no multiple of the " +
                 std::to_string(toBits) + " bits of the new element"};
  int64_t units = bitsPerThread / toBits;
  int64_t unitsPerAccess =
      accessBits % toBits == 0 ? std::gcd(units, accessBits / toBits) : 1;
  Result<Layout> outer = compose(Layout::local({units / unitsPerAccess}),
                                 Layout::spatial({layout.numThreads()}));
  if (!outer)
    return outer;
  return compose(*outer, Layout::local({unitsPerAccess}));
}
