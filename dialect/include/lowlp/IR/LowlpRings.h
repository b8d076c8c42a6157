//===- LowlpRings.h - what lowlp-choose-rings hands over --------*- C++ -*-===//
#ifndef LOWLP_IR_LOWLPRINGS_H
#define LOWLP_IR_LOWLPRINGS_H

#include "lowlp/IR/Lowlp.h"

#include "lowlp/IR/LowlpRingsEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "lowlp/IR/LowlpRings.h.inc"

#endif // LOWLP_IR_LOWLPRINGS_H
