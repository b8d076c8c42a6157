//===- Broadcast.cpp - A tile repeated within registers -------------------===//
//
// Which register every thread reads for each of its elements of the result:
//
//   source local(2, 1).reduce(spatial(8, 4), dims=[1], keep_dims=True)   16x1
//   result local(2, 1).spatial(8, 4).local(1, 2)                         16x8
//   locals 0 0 1 1
//
// Thread 5 holds rows 1 and 9 of both, and of the result two columns each.
//
// As f(t, i) = f(t, 0) + f(0, i), thread 0 tells the register of each value,
// and one value tells whether another thread has the same.
//
//===----------------------------------------------------------------------===//

#include "ModeLists.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include <map>

using namespace lowlp;
using namespace lowlp::detail;

static Error explainShapes(const Layout &source, const Layout &result) {
  return Error{"a tile of shape " + tupleText(source.shape()) +
               " does not broadcast to " + tupleText(result.shape()) +
               ": from the last dimension on, extents must match or be 1"};
}

/// The index in a tile of `shape` of an element of a tile that repeats it along
/// dimensions of extent 1 and along leading ones.
static std::vector<int64_t> withoutRepeats(std::vector<int64_t> index,
                                           const std::vector<int64_t> &shape) {
  index.erase(index.begin(),
              index.end() - static_cast<ptrdiff_t>(shape.size()));
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] == 1)
      index[dim] = 0;
  return index;
}

/// The local index of each element that a thread holds.
static std::map<std::vector<int64_t>, int64_t> heldBy(int64_t thread,
                                                      const Layout &layout) {
  std::map<std::vector<int64_t>, int64_t> held;
  for (int64_t local = 0; local < layout.numLocals(); ++local)
    held[layout.evaluate(thread, local)] = local;
  return held;
}

static Error explainMissing(int64_t thread, int64_t local,
                            const std::vector<int64_t> &index) {
  return Error{"thread " + std::to_string(thread) + " does not hold element " +
               tupleText(index) +
               " of the source, which it needs for its value " +
               std::to_string(local) + " of the result"};
}

Result<std::vector<int64_t>> lowlp::broadcastLocals(const Layout &source,
                                                    const Layout &result) {
  if (source.numThreads() != result.numThreads())
    return Error{"threads must match: the source is held by " +
                 std::to_string(source.numThreads()) + ", the result by " +
                 std::to_string(result.numThreads())};
  int64_t leading = result.rank() - source.rank();
  if (leading < 0)
    return explainShapes(source, result);
  for (int64_t dim = 0; dim < source.rank(); ++dim)
    if (source.shape()[dim] != 1 &&
        source.shape()[dim] != result.shape()[dim + leading])
      return explainShapes(source, result);

  std::vector<int64_t> locals;
  std::map<std::vector<int64_t>, int64_t> held = heldBy(/*thread=*/0, source);
  for (int64_t local = 0; local < result.numLocals(); ++local) {
    std::vector<int64_t> index =
        withoutRepeats(result.evaluate(/*thread=*/0, local), source.shape());
    auto found = held.find(index);
    if (found == held.end())
      return explainMissing(/*thread=*/0, local, index);
    locals.push_back(found->second);
  }
  for (int64_t thread = 1; thread < result.numThreads(); ++thread) {
    std::vector<int64_t> index =
        withoutRepeats(result.evaluate(thread, /*local=*/0), source.shape());
    if (index == source.evaluate(thread, locals[0]))
      continue;
    held = heldBy(thread, source);
    auto found = held.find(index);
    if (found == held.end())
      return explainMissing(thread, /*local=*/0, index);
    return Error{"for value 0 of the result thread " + std::to_string(thread) +
                 " needs its value " + std::to_string(found->second) +
                 " of the source, thread 0 its value " +
                 std::to_string(locals[0]) +
                 ": registers are chosen at compile time"};
  }
  return locals;
}
