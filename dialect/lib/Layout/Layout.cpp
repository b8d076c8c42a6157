//===- Layout.cpp - Which thread holds which element of a tile ------------===//
//
// Construction, evaluation and queries. Evaluation reads the digits of the
// thread index and of the local index from the least significant one and adds
// digit * stride to the dimension of the digit's mode.
//
//===----------------------------------------------------------------------===//

#include "lowlp/Layout/Layout.h"
#include "ModeLists.h"

#include <algorithm>

using namespace lowlp;
using namespace lowlp::detail;

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

Result<Layout> Layout::primitive(PrimitiveKind kind,
                                 const std::vector<int64_t> &shape) {
  if (shape.empty())
    return Error{"the shape is empty; a layout has at least one dimension"};
  for (int64_t extent : shape)
    if (extent < 1)
      return Error{"extents must be at least 1; found " + tupleText(shape)};
  if (checkedProduct(shape) < 0)
    return Error{"a layout holds at most 2**62 elements; found the shape " +
                 tupleText(shape)};

  bool isLocal =
      kind == PrimitiveKind::Local || kind == PrimitiveKind::ColumnLocal;
  bool isColumn = kind == PrimitiveKind::ColumnLocal ||
                  kind == PrimitiveKind::ColumnSpatial;
  ModeLists lists;
  std::vector<Digit> digits;
  for (int64_t extent : shape) {
    int mode = lists.addMode(extent);
    lists.dims.push_back({mode});
    digits.push_back({mode, extent});
  }
  if (isColumn)
    std::reverse(digits.begin(), digits.end());
  (isLocal ? lists.locals : lists.threads) = std::move(digits);
  return std::move(lists).build();
}

Layout Layout::local(const std::vector<int64_t> &shape) {
  return *primitive(PrimitiveKind::Local, shape);
}

Layout Layout::spatial(const std::vector<int64_t> &shape) {
  return *primitive(PrimitiveKind::Spatial, shape);
}

Layout Layout::columnLocal(const std::vector<int64_t> &shape) {
  return *primitive(PrimitiveKind::ColumnLocal, shape);
}

Layout Layout::columnSpatial(const std::vector<int64_t> &shape) {
  return *primitive(PrimitiveKind::ColumnSpatial, shape);
}

/// Checks one list of digits against the modes and marks the modes it names.
/// Returns the message of an error, or nothing.
static std::string checkDigits(const std::vector<Digit> &digits,
                               const std::vector<int64_t> &extents,
                               bool allowReplicas, std::vector<bool> &named) {
  int numModes = static_cast<int>(extents.size());
  for (const Digit &digit : digits) {
    if (digit.extent < 1)
      return "extents must be at least 1; found " +
             std::to_string(digit.extent);
    if (digit.isReplica()) {
      if (!allowReplicas)
        return "a replica must be a digit of the thread index; found one in "
               "the local index";
      continue;
    }
    if (digit.mode < 0 || digit.mode >= numModes)
      return "there is no mode " + std::to_string(digit.mode) + "; there are " +
             std::to_string(numModes);
    if (digit.extent != extents[digit.mode])
      return "mode " + std::to_string(digit.mode) + " has extent " +
             std::to_string(extents[digit.mode]) + "; its digit has " +
             std::to_string(digit.extent);
    if (named[digit.mode])
      return "mode " + std::to_string(digit.mode) +
             " is the digit of two indices; allowed is one";
    named[digit.mode] = true;
  }
  return "";
}

Result<Layout>
Layout::fromModes(const std::vector<std::vector<int64_t>> &modeExtents,
                  const std::vector<Digit> &threads,
                  const std::vector<Digit> &locals) {
  if (modeExtents.empty())
    return Error{"a layout has at least one dimension; found none"};
  ModeLists lists;
  for (const std::vector<int64_t> &extents : modeExtents) {
    lists.dims.emplace_back();
    for (int64_t extent : extents) {
      if (extent < 1)
        return Error{"extents must be at least 1; found " + tupleText(extents)};
      lists.dims.back().push_back(lists.addMode(extent));
    }
  }

  std::vector<bool> named(lists.extents.size(), false);
  std::string message = checkDigits(threads, lists.extents, true, named);
  if (message.empty())
    message = checkDigits(locals, lists.extents, false, named);
  if (!message.empty())
    return Error{message};
  auto unnamed = std::find(named.begin(), named.end(), false);
  if (unnamed != named.end())
    return Error{"mode " + std::to_string(unnamed - named.begin()) +
                 " is a digit of neither the thread nor the local index"};

  std::vector<int64_t> all;
  for (const std::vector<Digit> *digits : {&threads, &locals})
    for (const Digit &digit : *digits)
      all.push_back(digit.extent);
  if (checkedProduct(all) < 0)
    return Error{"threads times locals must be at most 2**62; found the "
                 "extents " +
                 tupleText(all)};
  lists.threads = threads;
  lists.locals = locals;
  return std::move(lists).build();
}

//===----------------------------------------------------------------------===//
// Evaluation and queries
//===----------------------------------------------------------------------===//

int64_t Layout::numElements() const {
  int64_t product = 1;
  for (int64_t extent : dimExtents)
    product *= extent;
  return product;
}

void Layout::evaluateInto(int64_t thread, int64_t local, int64_t *index) const {
  assert(thread >= 0 && thread < threadCount && "no such thread");
  assert(local >= 0 && local < localCount && "no such local index");
  std::fill(index, index + rank(), 0);
  auto addDigits = [&](const std::vector<Digit> &digits, int64_t number) {
    for (size_t i = digits.size(); i-- > 0;) {
      const Digit &digit = digits[i];
      if (!digit.isReplica()) {
        const Mode &mode = allModes[digit.mode];
        index[mode.dim] += number % digit.extent * mode.stride;
      }
      number /= digit.extent;
    }
  };
  addDigits(threads, thread);
  addDigits(locals, local);
}

std::vector<int64_t> Layout::evaluate(int64_t thread, int64_t local) const {
  std::vector<int64_t> index(dimExtents.size());
  evaluateInto(thread, local, index.data());
  return index;
}

Result<std::vector<Owner>>
Layout::threadsHolding(const std::vector<int64_t> &index) const {
  bool inside = index.size() == dimExtents.size();
  for (size_t dim = 0; inside && dim < index.size(); ++dim)
    inside = index[dim] >= 0 && index[dim] < dimExtents[dim];
  if (!inside)
    return Error{"the index " + tupleText(index) + " is not within the shape " +
                 tupleText(dimExtents)};

  auto digitValue = [&](const Digit &digit) {
    const Mode &mode = allModes[digit.mode];
    return index[mode.dim] / mode.stride % mode.extent;
  };
  int64_t local = 0;
  for (const Digit &digit : locals)
    local = local * digit.extent + digitValue(digit);
  // Each replica multiplies the threads found so far; going from the most
  // significant digit keeps them in order.
  std::vector<int64_t> found{0};
  for (const Digit &digit : threads) {
    std::vector<int64_t> next;
    for (int64_t thread : found) {
      int64_t begin = digit.isReplica() ? 0 : digitValue(digit);
      int64_t end = digit.isReplica() ? digit.extent : begin + 1;
      for (int64_t value = begin; value < end; ++value)
        next.push_back(thread * digit.extent + value);
    }
    found = std::move(next);
  }
  std::vector<Owner> owners;
  for (int64_t thread : found)
    owners.push_back({thread, local});
  return owners;
}

bool Layout::hasReplicas() const {
  return std::any_of(threads.begin(), threads.end(),
                     [](const Digit &digit) { return digit.isReplica(); });
}

int64_t Layout::contiguousLocals(int64_t dim) const {
  assert(dim >= 0 && dim < rank() && "no such dimension");
  // In canonical form the run ends with the least significant digit: were the
  // next one its neighbour in the dimension too, they would be one digit.
  if (locals.empty())
    return 1;
  const Mode &mode = allModes[locals.back().mode];
  return mode.dim == dim && mode.stride == 1 ? mode.extent : 1;
}

std::pair<int, int> Layout::modesOf(int64_t dim) const {
  assert(dim >= 0 && dim < rank() && "no such dimension");
  auto isBefore = [](const Mode &mode, int64_t d) { return mode.dim < d; };
  auto begin =
      std::lower_bound(allModes.begin(), allModes.end(), dim, isBefore);
  auto end = std::lower_bound(begin, allModes.end(), dim + 1, isBefore);
  return {static_cast<int>(begin - allModes.begin()),
          static_cast<int>(end - allModes.begin())};
}

std::vector<std::vector<int64_t>> Layout::modeExtents() const {
  std::vector<std::vector<int64_t>> extents(dimExtents.size());
  for (const Mode &mode : allModes)
    extents[mode.dim].push_back(mode.extent);
  return extents;
}

size_t Layout::hash() const {
  // FNV-1a over the numbers; each list begins with its length, so that no two
  // layouts spell the same sequence.
  uint64_t state = 0xcbf29ce484222325u;
  auto add = [&](int64_t number) {
    state = (state ^ static_cast<uint64_t>(number)) * 0x100000001b3u;
    state ^= state >> 29;
  };
  add(rank());
  for (int64_t extent : dimExtents)
    add(extent);
  for (const Mode &mode : allModes) {
    add(mode.dim);
    add(mode.extent);
  }
  for (const std::vector<Digit> *digits : {&threads, &locals}) {
    add(static_cast<int64_t>(digits->size()));
    for (const Digit &digit : *digits) {
      add(digit.mode);
      add(digit.extent);
    }
  }
  return static_cast<size_t>(state);
}
