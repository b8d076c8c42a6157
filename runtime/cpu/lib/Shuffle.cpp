//===- Shuffle.cpp - Which lane a shuffle reads ---------------------------===//
//
// PTX ISA, "Data Movement and Conversion Instructions: shfl.sync": the segment
// mask splits the warp; a lane reads within its segment, up to the clamp.
//
//===----------------------------------------------------------------------===//

#include "Shuffle.h"

#include "lowlp/CPU/ABI.h"

using namespace lowlp::cpu;

ShuffleSource lowlp::cpu::shuffleSource(int32_t mode, int lane,
                                        uint32_t laneOrDelta,
                                        uint32_t clampAndMask) {
  int operand = int(laneOrDelta & 31);
  int clamp = int(clampAndMask & 31);
  int segment = int(clampAndMask >> 8 & 31);
  int firstLane = lane & segment;
  int limit = firstLane | (clamp & ~segment);

  int source = lane;
  bool inRange = false;
  switch (mode) {
  case LowlpShuffleUp:
    source = lane - operand;
    inRange = source >= limit;
    break;
  case LowlpShuffleDown:
    source = lane + operand;
    inRange = source <= limit;
    break;
  case LowlpShuffleBfly:
    source = lane ^ operand;
    inRange = source <= limit;
    break;
  case LowlpShuffleIdx:
    source = firstLane | (operand & ~segment);
    inRange = source <= limit;
    break;
  }
  return {inRange ? source : lane, inRange};
}
