//===- Lattice.h - Books of vectors that are computed -----------*- C++ -*-===//
//
// QuIP# (arXiv 2402.04396) takes vectors of 8 weights from subsets of the
// lattice E8, whose points follow from their codes:
//
//   e8p   codes of 16 bits. The upper 8 are an index of 256 vectors of absolute
//         values 1/2, 3/2 and 5/2; the lower 8 are signs, of which the first
//         also says whether 1/4 is added or taken off:
//
//           p = parity of the 8 bits;  s = bits with the lowest one flipped if
//           p value[i] = (s has bit P[i] ? -1 : 1) * A[index][i] + (p ? -1/4 :
//           1/4) P = 0 4 1 5 2 6 3 7
//
//         where the last value of A is negative if the sum of the absolute
//         values is odd.
//   e81b  codes of 8 bits, indices of 256 points: the 241 of a square of at
//   most
//         2, and 15 of square 4.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_NUMERIC_LATTICE_H
#define LOWLP_NUMERIC_LATTICE_H

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lowlp {

enum class Lattice { E8P, E81B };

/// e8p, e81b.
std::string_view getName(Lattice lattice);
const std::vector<Lattice> &getLattices();

/// Values of a vector.
inline constexpr int kLatticeVector = 8;
using LatticeVector = std::array<float, kLatticeVector>;

/// Bits of a code: 16 or 8.
int getCodeBits(Lattice lattice);

/// The vector of a code, exactly. Requires: a code of so many bits.
LatticeVector getLatticeVector(Lattice lattice, uint16_t code);

/// The vectors A of e8p, each eight fields of 4 bits: 2 value + 8 of element i
/// is in bits 4 P[i] to 4 P[i] + 3, so that bit j of the signs belongs to field
/// j.
const std::array<uint32_t, 256> &getE8PWords();

} // namespace lowlp

#endif // LOWLP_NUMERIC_LATTICE_H
