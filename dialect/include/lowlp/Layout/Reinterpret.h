//===- Reinterpret.h - The same bits as another element type ----*- C++ -*-===//
//
// A register tile may be viewed as a tile of another element type when each
// thread holds the same number of bits in both (Tilus, section 6.2). Packed
// weights rest on it: 4 values of 6 bits a thread are loaded as 3 bytes.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_REINTERPRET_H
#define LOWLP_LAYOUT_REINTERPRET_H

#include "lowlp/Layout/Layout.h"

namespace lowlp {

/// True when both layouts have the same number of threads and each thread holds
/// the same number of bits, so that a view from one to the other moves nothing.
/// Requires: `bitsA` and `bitsB`, the bits of an element, are at least 1.
bool sameBitsPerThread(const Layout &a, int64_t bitsA, const Layout &b,
                       int64_t bitsB);

/// The layout through which the registers of a tile of `fromBits` an element
/// are loaded and stored as units of `toBits`: with n units a thread and T
/// threads,
///
///   local(n / n1).spatial(T).local(n1)    where n1 = gcd(n, 128 / toBits)
///
/// so that each thread moves as many consecutive bytes at once as its share and
/// the 16 bytes of the widest access allow (Tilus, section 6.2, with toBits 8).
/// Units whose bits do not divide 128 fill no access; then n1 is 1.
///
/// Fails unless both bit counts are 1 to 128 and `toBits` divides the bits that
/// a thread holds.
Result<Layout> reinterpret(const Layout &layout, int64_t fromBits,
                           int64_t toBits);

} // namespace lowlp

#endif // LOWLP_LAYOUT_REINTERPRET_H
