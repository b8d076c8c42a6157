//===- TensorCopy.cpp - Boxes of tensors as rows and chunks ---------------===//
//
// A tensor copy is one bulk copy for each row of the box, or for each 16 bytes
// of it where they are swizzled (PTX ISA, "Swizzling modes"):
//
//   chunk j of row i   lies at row i, chunk j xor (i * swizzle / 128) mod
//                      (swizzle / 16)
//
// Each brings its own bytes to the mbarrier. Elements outside of the tensor are
// bytes without a source.
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include <algorithm>

using namespace lowlp::cpu;

constexpr int64_t bytesPerChunk = 16;

namespace {

/// A run of the box on its way.
struct Run {
  int64_t sourceOffset, sourceBytes, leadingBytes;
};

} // namespace

/// The place of chunk `chunk` of row `row`, in bytes from the begin of the box.
static int64_t placeOf(const LowlpTensorCopy &copy, int64_t row, int64_t chunk,
                       int64_t rowBytes) {
  if (copy.swizzleBytes)
    chunk ^= row * copy.swizzleBytes / 128 % (copy.swizzleBytes / 16);
  return row * rowBytes + chunk * bytesPerChunk;
}

/// What is wrong with the copy, or null: what cuTensorMapEncodeTiled and the
/// instruction demand. The PTX ISA does not say that boxes begin at 16 bytes of
/// a row; an H200 ends a kernel whose box does not as an illegal instruction.
static const char *explainInvalid(const LowlpTensorCopy &copy) {
  if (uintptr_t(copy.source) % 16)
    return "the tensor does not begin at a multiple of 16 bytes";
  for (int64_t dim = 0; dim + 1 < copy.rank; ++dim)
    if (copy.strideBytes[dim] % 16 || copy.strideBytes[dim] < 0 ||
        copy.strideBytes[dim] >= int64_t(1) << 40)
      return "a stride of the tensor is not a multiple of 16 bytes below 2^40";
  for (int64_t dim = 0; dim < copy.rank; ++dim)
    if (copy.extents[dim] < 1 || copy.extents[dim] > int64_t(1) << 32)
      return "an extent of the tensor is not 1 to 2^32";
  if (copy.offsets[copy.rank - 1] * copy.elementBytes % bytesPerChunk)
    return "the box does not begin at a multiple of 16 bytes of a row of the "
           "tensor";
  int64_t alignment = copy.swizzleBytes ? 8 * copy.swizzleBytes : 128;
  if ((uintptr_t(copy.destination) + uintptr_t(copy.destinationOffset)) %
      uintptr_t(alignment))
    return copy.swizzleBytes
               ? "the box does not begin at a multiple of 8 of its rows in "
                 "shared memory"
               : "the box does not begin at a multiple of 128 bytes of shared "
                 "memory";
  return nullptr;
}

/// The run from byte `first` of row `row` on, of `bytes` bytes.
static Run findRun(const LowlpTensorCopy &copy, int64_t row, int64_t first,
                   int64_t bytes) {
  int64_t rest = row, offset = 0;
  bool isInside = true;
  for (int64_t dim = copy.rank - 2; dim >= 0; --dim) {
    int64_t index = copy.offsets[dim] + rest % copy.box[dim];
    rest /= copy.box[dim];
    isInside &= index >= 0 && index < copy.extents[dim];
    offset += index * copy.strideBytes[dim];
  }
  int64_t last = copy.rank - 1;
  int64_t from = copy.offsets[last] * copy.elementBytes + first;
  int64_t begin = std::max<int64_t>(from, 0);
  int64_t end = std::min(from + bytes, copy.extents[last] * copy.elementBytes);
  if (!isInside || end <= begin)
    return {0, 0, 0};
  return {offset + begin, end - begin, begin - from};
}

void lowlpCpuCopyTensor(LowlpThread *thread, const LowlpTensorCopy *copy,
                        const char *site) {
  Block &block = *thread->block;
  Mbarrier &barrier =
      block.findMbarrier(*thread, copy->barrier, copy->barrierOffset, site);
  if (const char *wrong = explainInvalid(*copy)) {
    block.setError(*thread, site, wrong);
    block.abandon();
  }
  ++block.counters.loads;
  ++block.counters.stores;
  int64_t rowBytes = copy->box[copy->rank - 1] * copy->elementBytes;
  int64_t runBytes = copy->swizzleBytes ? bytesPerChunk : rowBytes;
  int64_t numRows = 1;
  for (int64_t dim = 0; dim + 1 < copy->rank; ++dim)
    numRows *= copy->box[dim];
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t first = 0; first < rowBytes; first += runBytes) {
      Run run = findRun(*copy, row, first, runBytes);
      int64_t place = placeOf(*copy, row, first / bytesPerChunk, rowBytes);
      block.copyBulk(*thread,
                     {thread->index,
                      site,
                      {copy->source, run.sourceOffset, run.sourceBytes,
                       copy->elementBytes, PlainRead},
                      {copy->destination, copy->destinationOffset + place,
                       runBytes, bytesPerChunk, PlainWrite},
                      nullptr,
                      nullptr,
                      run.leadingBytes},
                     barrier);
    }
}
