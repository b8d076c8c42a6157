//===- Mma.cpp - The arithmetic of warp-level matrix products -------------===//
//
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", and
// those for k32 and k256: lane l has group g = l / 4 and place t = l % 4. Each
// register of 32 bits holds E elements, and K is 8 E, or 4 E with the first two
// registers of A and the first of B (k128). Element j of a lane's register r,
// and its value c[i], are
//
//   a: row g + (r & 1 ? 8 : 0),  column E (t + (r & 2 ? 4 : 0)) + j
//   b: row E (t + (r & 1 ? 4 : 0)) + j,  column g
//   c: row g + (i & 2 ? 8 : 0),  column 2 t + (i & 1)      (d likewise)
//
// A product of two floats has at most 22 significant bits and is exact in
// double. Sums start with c and take k in ascending order. 32 elements of one
// bit count as one whose product is a population count.
//
//===----------------------------------------------------------------------===//

#include "Mma.h"

#include "lowlp/CPU/ABI.h"
#include "lowlp/CPU/ByteFloat.h"

using namespace lowlp::cpu;

namespace {

constexpr int numLanes = 32;
constexpr int numRows = 16, numColumns = 8;

//===----------------------------------------------------------------------===//
// Element types: how many bits, and the value of a code in the low bits
//===----------------------------------------------------------------------===//

struct F16 {
  using Sum = double;
  static constexpr int bits = 16;
  static double decode(uint32_t code) { return f16ToFloat(uint16_t(code)); }
};
struct BF16 {
  using Sum = double;
  static constexpr int bits = 16;
  static double decode(uint32_t code) { return bf16ToFloat(uint16_t(code)); }
};
struct E4M3 {
  using Sum = double;
  static constexpr int bits = 8;
  static double decode(uint32_t code) { return e4m3ToFloat(uint8_t(code)); }
};
struct E5M2 {
  using Sum = double;
  static constexpr int bits = 8;
  static double decode(uint32_t code) { return e5m2ToFloat(uint8_t(code)); }
};
// Sums of integers wrap around, as unsigned numbers do.
struct S8 {
  using Sum = uint32_t;
  static constexpr int bits = 8;
  static uint32_t decode(uint32_t code) { return uint32_t(int8_t(code)); }
};
struct U8 {
  using Sum = uint32_t;
  static constexpr int bits = 8;
  static uint32_t decode(uint32_t code) { return code & 0xffu; }
};
/// 32 elements of one bit.
struct Bits {
  uint32_t word;
  using Sum = uint32_t;
  static constexpr int bits = 32;
  static Bits decode(uint32_t code) { return {code}; }
};

inline double multiply(double a, double b) { return a * b; }
inline uint32_t multiply(uint32_t a, uint32_t b) { return a * b; }
inline uint32_t multiply(Bits a, Bits b) {
  return uint32_t(__builtin_popcount(a.word & b.word));
}

//===----------------------------------------------------------------------===//
// One instruction
//===----------------------------------------------------------------------===//

/// Element `index` of the fragment at `base`, which need not be aligned.
template <typename T> T fragmentElement(const void *base, int index) {
  T value;
  std::memcpy(&value, static_cast<const char *>(base) + index * sizeof(T),
              sizeof(T));
  return value;
}

/// The product of elements of types A and B, with values of type C, of so many
/// registers along K.
template <typename A, typename B, typename C, int registersK = 2>
class Product {
public:
  void run(const MmaOperands *lanes) {
    for (int lane = 0; lane < numLanes; ++lane)
      gather(lane, lanes[lane]);
    for (int row = 0; row < numRows; ++row)
      for (int k = 0; k < depth; ++k)
        for (int column = 0; column < numColumns; ++column)
          c[row][column] += multiply(a[row][k], b[k][column]);
    for (int lane = 0; lane < numLanes; ++lane)
      scatter(lane, lanes[lane]);
  }

private:
  static_assert(A::bits == B::bits);
  static constexpr int perRegister = 32 / A::bits;
  static constexpr int depth = 4 * registersK * perRegister;

  void gather(int lane, const MmaOperands &operands) {
    int group = lane / 4, place = lane % 4;
    for (int r = 0; r < 2 * registersK; ++r) {
      uint32_t word = fragmentElement<uint32_t>(operands.a, r);
      int first = perRegister * (place + (r & 2 ? 4 : 0));
      for (int j = 0; j < perRegister; ++j)
        a[group + (r & 1 ? 8 : 0)][first + j] = A::decode(word >> j * A::bits);
    }
    for (int r = 0; r < registersK; ++r) {
      uint32_t word = fragmentElement<uint32_t>(operands.b, r);
      int first = perRegister * (place + (r & 1 ? 4 : 0));
      for (int j = 0; j < perRegister; ++j)
        b[first + j][group] = B::decode(word >> j * B::bits);
    }
    for (int i = 0; i < 4; ++i)
      c[group + (i & 2 ? 8 : 0)][2 * place + (i & 1)] =
          typename A::Sum(fragmentElement<C>(operands.c, i));
  }

  void scatter(int lane, const MmaOperands &operands) const {
    int group = lane / 4, place = lane % 4;
    C d[4];
    for (int i = 0; i < 4; ++i)
      d[i] = C(c[group + (i & 2 ? 8 : 0)][2 * place + (i & 1)]);
    std::memcpy(operands.d, d, sizeof(d));
  }

  decltype(A::decode(0)) a[numRows][depth];
  decltype(B::decode(0)) b[depth][numColumns];
  typename A::Sum c[numRows][numColumns];
};

template <typename A, typename B, typename C, int registersK = 2>
void multiplyAs(const MmaOperands *lanes) {
  Product<A, B, C, registersK>().run(lanes);
}

/// By `LowlpMmaKind`.
constexpr void (*products[])(const MmaOperands *) = {
    multiplyAs<F16, F16, float>,      multiplyAs<BF16, BF16, float>,
    multiplyAs<S8, S8, uint32_t>,     multiplyAs<S8, U8, uint32_t>,
    multiplyAs<U8, S8, uint32_t>,     multiplyAs<U8, U8, uint32_t>,
    multiplyAs<E4M3, E4M3, float>,    multiplyAs<E4M3, E5M2, float>,
    multiplyAs<E5M2, E4M3, float>,    multiplyAs<E5M2, E5M2, float>,
    multiplyAs<Bits, Bits, uint32_t>, multiplyAs<Bits, Bits, uint32_t, 1>};

} // namespace

bool lowlp::cpu::isMmaKind(int32_t kind) {
  return kind >= 0 && size_t(kind) < sizeof(products) / sizeof(products[0]);
}

void lowlp::cpu::multiplyMatrices(int32_t kind, const MmaOperands *lanes) {
  products[kind](lanes);
}
