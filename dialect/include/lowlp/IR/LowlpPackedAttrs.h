//===- LowlpPackedAttrs.h - what packed weights mean ------------*- C++ -*-===//
//
// The declarations that the attributes of LowlpPackedAttrs.td need. Who reads
// a codec or a plan out of one includes Codec.h or DecodePlan.h.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_IR_LOWLPPACKEDATTRS_H
#define LOWLP_IR_LOWLPPACKEDATTRS_H

#include "lowlp/Decode/Placement.h"

namespace lowlp {
class Codec;
class DecodePlan;
} // namespace lowlp

#endif // LOWLP_IR_LOWLPPACKEDATTRS_H
