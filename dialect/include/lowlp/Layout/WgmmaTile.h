//===- WgmmaTile.h - Shared tiles that wgmma multiplies by ------*- C++ -*-===//
//
// The operand in shared memory is described to the instruction by a start, two
// strides and a swizzle (PTX ISA, "Asynchronous Warpgroup Level Matrix
// Instructions", "Shared Memory Matrix Layout" and "Matrix Descriptor Format").
// K innermost, a row of 32 bytes is two chunks of 16 bytes, and chunk j of row
// 8 g + r lies, counted from the start, at
//
//   no swizzle        j * leading + g * stride + 16 r
//   S = 32, 64, 128   g * stride + S r + 16 j, of which bits 7 on are xor-ed
//                     into bits 4 on
//
// so that 8 rows of S bytes are one pattern; the next K beyond S bytes lie
// `leading` further, where the next instruction starts.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_WGMMATILE_H
#define LOWLP_LAYOUT_WGMMATILE_H

#include "lowlp/Layout/SharedLayout.h"

namespace lowlp {

/// How the last two dimensions of a shared tile, [N, K], are described to the
/// instruction.
struct WgmmaTile {
  int64_t swizzleBytes; ///< 0, 32, 64 or 128
  /// From the first 16 bytes of K to the next ones; with a swizzle, from the
  /// first S.
  int64_t leadingBytes;
  /// From the first 8 rows to the next.
  int64_t strideBytes;

  /// The multiple of bytes at which the tile begins.
  int64_t alignBytes() const { return swizzleBytes ? 8 * swizzleBytes : 16; }

  bool operator==(const WgmmaTile &other) const {
    return swizzleBytes == other.swizzleBytes &&
           leadingBytes == other.leadingBytes &&
           strideBytes == other.strideBytes;
  }
};

/// Describes `layout`, whose elements have `elementBytes`. Fails where no
/// descriptor can, with the layouts that the shape allows. Requires: at least
/// two dimensions; `elementBytes` is 1 or 2.
Result<WgmmaTile> findWgmmaTile(const SharedLayout &layout,
                                int64_t elementBytes);

} // namespace lowlp

#endif // LOWLP_LAYOUT_WGMMATILE_H
