//===- ModeLists.h - A layout under construction ----------------*- C++ -*-===//
//
// Every operation of the algebra works on the same four lists: it takes a
// layout apart into them, splits, moves or drops digits, and builds a layout,
// which brings the lists into canonical form.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LIB_LAYOUT_MODELISTS_H
#define LOWLP_LIB_LAYOUT_MODELISTS_H

#include "lowlp/Layout/Layout.h"

#include <string>

namespace lowlp::detail {

/// The lists that make a layout, in any form. Modes have arbitrary numbers.
struct ModeLists {
  /// The extent of each mode, by its number.
  std::vector<int64_t> extents;
  /// For each dimension its modes, outermost first.
  std::vector<std::vector<int>> dims;
  /// The digits of the thread index and of the local index, most significant
  /// first. Their extents agree with `extents`.
  std::vector<Digit> threads;
  std::vector<Digit> locals;

  ModeLists() = default;
  explicit ModeLists(const Layout &layout);

  /// Adds a mode and returns its number; it is in no list yet.
  int addMode(int64_t extent);

  /// Splits a mode into an outer one, which keeps its number, and an inner one
  /// of extent `inner`, in its dimension and in its digit list. Requires:
  /// `inner` divides the extent.
  void splitMode(int mode, int64_t inner);

  /// Makes a boundary in the thread digits, such that those after it have the
  /// product `inner`, and returns its position; splits a digit if need be.
  /// Returns -1 when there can be no such boundary.
  int splitThreads(int64_t inner);
  /// As `splitThreads`, for the local digits.
  int splitLocals(int64_t inner);
  /// As `splitThreads`, for the modes of a dimension.
  int splitDim(int64_t dim, int64_t inner);

  /// The layout, in canonical form. Requires: every mode of `dims` is in one
  /// digit list, once; replicas are in `threads`; extents are at least 1 and
  /// threads times locals is at most `Layout::maxSize`.
  Layout build() &&;

private:
  int splitDigits(std::vector<Digit> &digits, int64_t inner);
  void dropUnits();
  void mergeModes(std::vector<Digit> &digits);
  void mergeReplicas();
};

/// The product of the factors, or -1 when it is above `Layout::maxSize`.
/// Requires: every factor is at least 1.
int64_t checkedProduct(const std::vector<int64_t> &factors);

/// The numbers as "(2, 3)".
std::string tupleText(const std::vector<int64_t> &numbers);

} // namespace lowlp::detail

#endif // LOWLP_LIB_LAYOUT_MODELISTS_H
