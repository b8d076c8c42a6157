//===- SharedLayout.h - Where elements lie in shared memory -----*- C++ -*-===//
//
// A layout of shared memory maps an address, counted in elements, to the index
// of an element: a layout of one thread, whose local index is the address. It
// may be swizzled (Tilus, appendix B), so that threads which read a column meet
// different banks:
//
//   local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)
//
//   3 stages of 16 x 256 elements; a row is 32 chunks of 8 elements, and chunk
//   j of row i lies where chunk j xor i would lie without the swizzle:
//
//            chunk 0  1  2  3 ...        cell = place of the chunk in its row
//     row 0        0  1  2  3
//     row 1        1  0  3  2
//     row 2        2  3  0  1
//
// In general, with (i, j) the index within the factor and dim = 1,
//
//   swizzle(i, j) = (i, j xor ((i >> log_step) mod E))
//
// where E, a power of two, is the factor's extent along dim. The paper leaves
// the modulus out; its own `swizzle(local(16, 4), dim=1, log_step=1)` needs it.
// The map is its own inverse.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_SHAREDLAYOUT_H
#define LOWLP_LAYOUT_SHAREDLAYOUT_H

#include "lowlp/Layout/Layout.h"

#include <optional>
#include <string>
#include <string_view>

namespace lowlp {

/// One digit of an index changed by another one. A digit of the index along a
/// dimension is `index / unit % extent`.
struct Swizzle {
  /// The dimension that changes, and its digit; `extent` is a power of two.
  int64_t dim, unit, extent;
  /// The dimension that decides, and its digit.
  int64_t byDim, byUnit, byExtent;
  /// How many low bits of the deciding digit do not count.
  int64_t logStep;

  /// Swizzles an index in place. Its own inverse.
  void apply(std::vector<int64_t> &index) const;

  bool operator==(const Swizzle &other) const;
};

/// A function from an address to an element of a tile; immutable.
class SharedLayout {
public:
  /// A tile of one element.
  SharedLayout() = default;

  /// Without a swizzle. Fails unless `layout` has one thread.
  static Result<SharedLayout> plain(const Layout &layout);

  /// `outer.swizzle(factor, dim, log_step).inner`. Fails unless all layouts
  /// have one thread, the factor has two dimensions, `dim` is one of them, the
  /// factor's extent along it is a power of two, `logStep` is 0 to 62, and the
  /// product is a layout. Requires: `inner` is a product of local and
  /// column_local ones, which is what the notation can say.
  static Result<SharedLayout> swizzled(const Layout &outer,
                                       const Layout &factor, int64_t dim,
                                       int64_t logStep, const Layout &inner);

  /// The map from addresses to elements, leaving out the swizzle.
  const Layout &layout() const { return unswizzled; }
  /// The swizzle of the elements; none where it would change nothing.
  const std::optional<Swizzle> &swizzle() const { return change; }

  const std::vector<int64_t> &shape() const { return unswizzled.shape(); }
  int64_t rank() const { return unswizzled.rank(); }
  int64_t numElements() const { return unswizzled.numLocals(); }

  /// The index of the element at `address`. Requires: 0 <= address <
  /// numElements().
  std::vector<int64_t> evaluate(int64_t address) const;

  /// The inverse: the address of an element. Fails unless `index` has rank()
  /// numbers, each within the shape.
  Result<int64_t> addressOf(std::vector<int64_t> index) const;

  /// The largest v that is known to be such that the addresses from any
  /// multiple of v on hold v consecutive elements along `dim`, the first of
  /// them at a multiple of v. Requires: 0 <= dim < rank(). Ensures: it divides
  /// the extent of the dimension.
  int64_t contiguousAddresses(int64_t dim) const;

  /// Whether both have the same layout and swizzle the same digits.
  bool operator==(const SharedLayout &other) const {
    return unswizzled == other.unswizzled && change == other.change;
  }
  bool operator!=(const SharedLayout &other) const { return !(*this == other); }
  size_t hash() const;

  /// The layout as text. Ensures: `parseSharedLayout(l.str())` is `l`.
  std::string str() const;

private:
  Layout unswizzled;
  std::optional<Swizzle> change;
  /// The text of a swizzled layout.
  std::string text;
};

/// Reads a layout of shared memory:
///
///   shared  ::= layout
///             | [layout '.'] 'swizzle' '(' layout ',' 'dim' '=' int
///                   [',' 'log_step' '=' int] ')' { '.' local }
///   local   ::= ('local' | 'column_local') '(' ints ')'
///
/// Fails as `parseLayout` does, and where `plain` and `swizzled` fail.
Result<SharedLayout> parseSharedLayout(std::string_view text);

} // namespace lowlp

#endif // LOWLP_LAYOUT_SHAREDLAYOUT_H
