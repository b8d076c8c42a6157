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

  std::vector<int64_t> locals(result.numLocals());
  for (int64_t thread = 0; thread < result.numThreads(); ++thread) {
    std::map<std::vector<int64_t>, int64_t> held;
    for (int64_t local = 0; local < source.numLocals(); ++local)
      held[source.evaluate(thread, local)] = local;
    for (int64_t local = 0; local < result.numLocals(); ++local) {
      std::vector<int64_t> index = result.evaluate(thread, local);
      index.erase(index.begin(), index.begin() + leading);
      for (int64_t dim = 0; dim < source.rank(); ++dim)
        if (source.shape()[dim] == 1)
          index[dim] = 0;
      auto found = held.find(index);
      if (found == held.end())
        return Error{"thread " + std::to_string(thread) +
                     " does not hold element " + tupleText(index) +
                     " of the source, which it needs for its value " +
                     std::to_string(local) + " of the result"};
      if (thread == 0)
        locals[local] = found->second;
      if (found->second != locals[local])
        return Error{"for value " + std::to_string(local) +
                     " of the result thread " + std::to_string(thread) +
                     " needs its value " + std::to_string(found->second) +
                     " of the source, thread 0 its value " +
                     std::to_string(locals[local]) +
                     ": registers are chosen at compile time"};
    }
  }
  return locals;
}
