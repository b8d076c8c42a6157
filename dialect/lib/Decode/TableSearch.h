//===- TableSearch.h - Numbers bit by bit from codes ------------*- C++ -*-===//
//
// The last resort: every bit of a number as a function of the code's bits. A
// LOP3 is any function of three bits, and chooses between two by a third. The
// code u becomes u - 2^(b-1), the signed integer.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_DECODE_TABLESEARCH_H
#define LOWLP_LIB_DECODE_TABLESEARCH_H

#include "Endings.h"
#include "Period.h"

namespace lowlp {

class TablePlan {
public:
  /// Requires: `homes.kind` ByTable.
  TablePlan(const Period &period, const Homes &homes);

  int emit(Sequence &sequence, int block, int index, int scale) const;
  const std::vector<RowForm> &getRows() const { return rows; }

private:
  int emitBit(Sequence &sequence, int block, int index, int home,
              int bit) const;
  int emitFunction(Sequence &sequence, const std::vector<int> &inputs,
                   uint32_t table, int numInputs) const;

  const Period &period;
  Homes homes;
  std::vector<RowForm> rows;
};

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_TABLESEARCH_H
