//===- Mma.cpp - The arithmetic of warp-level matrix products -------------===//
//
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": lane l
// has group g = l / 4 and place t = l % 4. Its values are
//
//   a[i]: row g + (i & 2 ? 8 : 0),  column 2 t + (i & 1) + (i & 4 ? 8 : 0)
//   b[i]: row 2 t + (i & 1) + (i & 2 ? 8 : 0),  column g
//   c[i]: row g + (i & 2 ? 8 : 0),  column 2 t + (i & 1)      (d likewise)
//
// A product of two f16 or two bf16 has at most 22 significant bits and is exact
// in double. Sums start with c and take k in ascending order.
//
//===----------------------------------------------------------------------===//

#include "Mma.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/CPU/HalfFloat.h"

using namespace lowlp::cpu;

namespace {

constexpr int numLanes = 32;

struct Tiles {
  double a[16][16];
  double b[16][8];
  double c[16][8];
};

/// Element `index` of the fragment at `base`, which need not be aligned.
template <typename T> T fragmentElement(const void *base, int index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(base) + index * sizeof(T),
              sizeof(T));
  return value;
}

template <float (*toFloat)(uint16_t)>
void gather(const MmaOperands *lanes, Tiles &tiles) {
  for (int lane = 0; lane < numLanes; ++lane) {
    const MmaOperands &operands = lanes[lane];
    int group = lane / 4, column = lane % 4 * 2;
    for (int i = 0; i < 8; ++i)
      tiles.a[group + (i & 2 ? 8 : 0)][column + (i & 1) + (i & 4 ? 8 : 0)] =
          toFloat(fragmentElement<uint16_t>(operands.a, i));
    for (int i = 0; i < 4; ++i)
      tiles.b[column + (i & 1) + (i & 2 ? 8 : 0)][group] =
          toFloat(fragmentElement<uint16_t>(operands.b, i));
    for (int i = 0; i < 4; ++i)
      tiles.c[group + (i & 2 ? 8 : 0)][column + (i & 1)] =
          fragmentElement<float>(operands.c, i);
  }
}

/// Adds A * B to C in place.
void accumulate(Tiles &tiles) {
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column)
        tiles.c[row][column] += tiles.a[row][k] * tiles.b[k][column];
}

void scatter(const MmaOperands *lanes, const Tiles &tiles) {
  for (int lane = 0; lane < numLanes; ++lane) {
    int group = lane / 4, column = lane % 4 * 2;
    float d[4];
    for (int i = 0; i < 4; ++i)
      d[i] = float(tiles.c[group + (i & 2 ? 8 : 0)][column + (i & 1)]);
    std::memcpy(lanes[lane].d, d, sizeof(d));
  }
}

} // namespace

void lowlp::cpu::multiplyM16N8K16(int32_t kind, const MmaOperands *lanes) {
  Tiles tiles;
  if (kind == LowlpMmaM16N8K16F16)
    gather<f16ToFloat>(lanes, tiles);
  else
    gather<bf16ToFloat>(lanes, tiles);
  accumulate(tiles);
  scatter(lanes, tiles);
}
