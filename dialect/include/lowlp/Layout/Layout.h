//===- Layout.h - Which thread holds which element of a tile ----*- C++ -*-===//
//
// A layout is a function f(t, i) from a thread t and the index i of a value
// within that thread to the element of a tile (Tilus, section 4, and appendix
// A, definition 1).
//
// Example: operand A of mma.m16n8k8, a tile of 16 x 8 held by 32 threads, four
// elements a thread, is
//
//   local(2, 1).spatial(8, 4).local(1, 2)
//
//               column 0   1   2   3   4   5   6   7        cell = t:i
//       row 0        0:0 0:1 1:0 1:1 2:0 2:1 3:0 3:1
//       row 1        4:0 4:1 5:0 5:1 6:0 6:1 7:0 7:1
//        ...
//       row 8        0:2 0:3 1:2 1:3 2:2 2:3 3:2 3:3
//
// The form in which layouts are held
// ----------------------------------
// The row number above has two digits: its outer digit (0 or 1) comes from i,
// its inner one (0 to 7) from t. Every dimension is such a mixed-radix number;
// its digits are called *modes*, outermost first. The thread index is a list
// of digits too, most significant first, and so is the local index:
//
//   dimension 0: modes m0 (extent 2), m1 (extent 8)      t = (m1, m2)
//   dimension 1: modes m2 (extent 4), m3 (extent 2)      i = (m0, m3)
//
// Every mode is in exactly one of the two lists. The thread list may also hold
// *replicas*: digits of t that do not change the element, so that several
// threads hold the same one. Extents need not be powers of two.
//
// The form is canonical: no mode or replica has extent 1; no two modes are
// neighbours both in their dimension and in their list (they would be one);
// no two replicas are neighbours. Two layouts are the same function exactly
// when their canonical forms are the same, so == is cheap and exact.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_LAYOUT_H
#define LOWLP_LAYOUT_LAYOUT_H

#include "lowlp/Layout/Result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace lowlp {

/// A digit of the index along one dimension.
struct Mode {
  /// The dimension it belongs to.
  int64_t dim;
  /// The number of values it takes.
  int64_t extent;
  /// How far apart, along the dimension, elements are whose digits differ by
  /// one: the product of the extents of the modes inside of it.
  int64_t stride;

  bool operator==(const Mode &other) const {
    return dim == other.dim && extent == other.extent && stride == other.stride;
  }
};

/// A digit of the thread index or of the local index: a mode, or a replica.
struct Digit {
  static constexpr int replicaMode = -1;

  /// The number of the mode in `Layout::modes()`, or `replicaMode`.
  int mode;
  int64_t extent;

  static Digit replica(int64_t extent) { return {replicaMode, extent}; }
  bool isReplica() const { return mode == replicaMode; }
  bool operator==(const Digit &other) const {
    return mode == other.mode && extent == other.extent;
  }
};

/// A place that holds an element: value `local` of thread `thread`.
struct Owner {
  int64_t thread;
  int64_t local;

  bool operator==(const Owner &other) const {
    return thread == other.thread && local == other.local;
  }
};

/// The primitive layouts (Tilus, definitions 2 and 3, and section 4.2).
enum class PrimitiveKind { Local, Spatial, ColumnLocal, ColumnSpatial };

namespace detail {
struct ModeLists;
} // namespace detail

/// A function from (thread, local index) to an element of a tile; immutable.
class Layout {
public:
  /// The largest number of threads times locals. It leaves room for all
  /// products of extents in 64 bits.
  static constexpr int64_t maxSize = int64_t(1) << 62;

  /// The identity of composition, of rank 1: one thread that holds one element.
  Layout() : Layout(local({1})) {}

  //===--------------------------------------------------------------------===//
  // Construction
  //===--------------------------------------------------------------------===//

  /// A primitive layout of the given shape. Fails unless the shape has at least
  /// one dimension, every extent is at least 1 and the product is at most
  /// `maxSize`.
  static Result<Layout> primitive(PrimitiveKind kind,
                                  const std::vector<int64_t> &shape);

  /// One thread that holds the whole tile in row-major order (Tilus, definition
  /// 2). Requires: `shape` is valid as for `primitive`.
  static Layout local(const std::vector<int64_t> &shape);
  /// One element a thread, threads in row-major order (Tilus, definition 3).
  /// Requires: `shape` is valid as for `primitive`.
  static Layout spatial(const std::vector<int64_t> &shape);
  /// As `local`, but the first dimension varies fastest (Tilus, section 4.2).
  static Layout columnLocal(const std::vector<int64_t> &shape);
  /// As `spatial`, but the first dimension varies fastest.
  static Layout columnSpatial(const std::vector<int64_t> &shape);

  /// A layout from its modes; `fromModes(l.modeExtents(), l.threadDigits(),
  /// l.localDigits())` is `l`. The modes need not be in canonical form.
  ///
  /// \param modeExtents for each dimension the extents of its modes, outermost
  ///        first; modes are numbered from 0 through all dimensions. A
  ///        dimension with no modes has extent 1.
  /// \param threads the digits of the thread index, most significant first.
  /// \param locals the digits of the local index, most significant first.
  ///
  /// Fails unless there is a dimension, extents are at least 1, every mode is
  /// named once and with its own extent, replicas are digits of the thread
  /// index, and threads times locals is at most `maxSize`.
  static Result<Layout>
  fromModes(const std::vector<std::vector<int64_t>> &modeExtents,
            const std::vector<Digit> &threads,
            const std::vector<Digit> &locals);

  //===--------------------------------------------------------------------===//
  // What the layout is
  //===--------------------------------------------------------------------===//

  /// The extents of the tile; at least one.
  const std::vector<int64_t> &shape() const { return dimExtents; }
  int64_t rank() const { return static_cast<int64_t>(dimExtents.size()); }
  int64_t numThreads() const { return threadCount; }
  /// The number of elements that each thread holds.
  int64_t numLocals() const { return localCount; }
  /// The number of elements of the tile: fewer than threads times locals when
  /// there are replicas.
  int64_t numElements() const;

  /// f(t, i): the index of the element, one number a dimension. Requires:
  /// 0 <= thread < numThreads() and 0 <= local < numLocals(). Ensures:
  /// f(t, i) = f(t, 0) + f(0, i), since every mode is a digit of one of both.
  std::vector<int64_t> evaluate(int64_t thread, int64_t local) const;
  /// As above, written to `index`, which has room for rank() numbers.
  void evaluateInto(int64_t thread, int64_t local, int64_t *index) const;

  /// Every place that holds the element, in order of threads. Fails unless
  /// `index` has rank() numbers, each within the shape.
  Result<std::vector<Owner>>
  threadsHolding(const std::vector<int64_t> &index) const;

  /// True when some element is held by more than one thread.
  bool hasReplicas() const;

  /// The largest v such that local indices i .. i+v-1, for every i that is a
  /// multiple of v, hold v consecutive elements along `dim`, the first of them
  /// at a multiple of v. A vector access of v elements is then legal as far as
  /// the layout goes. Requires: 0 <= dim < rank(). Ensures: it divides
  /// numLocals() and the extent of the dimension.
  int64_t contiguousLocals(int64_t dim) const;

  //===--------------------------------------------------------------------===//
  // The canonical form
  //===--------------------------------------------------------------------===//

  /// All modes, dimension by dimension, outermost first.
  const std::vector<Mode> &modes() const { return allModes; }
  /// The numbers of the first mode of `dim` and of the one after its last.
  /// Requires: 0 <= dim < rank().
  std::pair<int, int> modesOf(int64_t dim) const;
  /// For each dimension the extents of its modes, outermost first.
  std::vector<std::vector<int64_t>> modeExtents() const;
  /// The digits of the thread index, most significant first.
  const std::vector<Digit> &threadDigits() const { return threads; }
  /// The digits of the local index, most significant first.
  const std::vector<Digit> &localDigits() const { return locals; }

  bool operator==(const Layout &other) const {
    return dimExtents == other.dimExtents && allModes == other.allModes &&
           threads == other.threads && locals == other.locals;
  }
  bool operator!=(const Layout &other) const { return !(*this == other); }

  /// A hash that agrees with ==, the same in every process.
  size_t hash() const;

private:
  friend struct detail::ModeLists;

  struct Unset {};
  explicit Layout(Unset) {}

  std::vector<int64_t> dimExtents;
  std::vector<Mode> allModes;
  std::vector<Digit> threads;
  std::vector<Digit> locals;
  int64_t threadCount = 1;
  int64_t localCount = 1;
};

} // namespace lowlp

template <> struct std::hash<lowlp::Layout> {
  size_t operator()(const lowlp::Layout &layout) const { return layout.hash(); }
};

#endif // LOWLP_LAYOUT_LAYOUT_H
