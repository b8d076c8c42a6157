//===- Endings.h - From decoded pieces to what a plan promises --*- C++ -*-===//
#ifndef LOWLP_LIB_DECODE_ENDINGS_H
#define LOWLP_LIB_DECODE_ENDINGS_H

#include "Homes.h"
#include "Sequence.h"

namespace lowlp {

/// A register that holds some of the bits of a slot's codes: 2^shift times what
/// these bits are worth in the code, in units of 2^unitExponent.
struct Group {
  int shift;
  int reg;
};

/// What is the same for all slots of a row.
struct RowForm {
  int shift = 0;
  /// bf16: the numbers are 128 + u * 2^shift.
  bool isMagic = false;
};

/// What bf16 numbers of 128 to 255 have in common.
inline constexpr uint32_t kMagicBits = 0x4300;
inline constexpr int kMagicWindow = 7;

/// The largest power of two that a product may bring: 15 for f16, 127 for bf16.
int getLift(ComputeType compute);

/// What `Accumulators` does to the values of a row.
DecodePlan::Row getRow(const Homes &homes, const RowForm &form);

/// Products that bring pieces at these shifts into the form of the row.
int countFmas(const Homes &homes, DecodeEnding ending, const RowForm &form,
              const std::vector<int> &shifts);

/// Adds the steps that make one register of the groups: for `Accumulators` in
/// the form of the row, for `Weights` with the parameters of registers `scale`
/// and `scale + 1`. In rows with magic all groups hold 128 more.
int finish(Sequence &sequence, const Homes &homes, DecodeEnding ending,
           const RowForm &form, std::vector<Group> groups, int scale);

/// The same for one register that holds whole codes at a home.
int finishWhole(Sequence &sequence, const Homes &homes, DecodeEnding ending,
                const RowForm &form, int shift, int reg, int scale);

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_ENDINGS_H
