//===- Homes.h - Where the bits of a number of a compute type are -*- C++
//-*-===//
//
// An integer whose bits lie next to each other in the low bits of a half is
// that integer times the smallest subnormal number, up to and including the
// numbers of the first exponent: u * 2^(t - 24) for bits t .. t + b - 1 of an
// f16, of which the lowest 11 serve. t is called the shift. Floats have one
// home: the sign on top, and the exponent's low bits where the compute type has
// them.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_DECODE_HOMES_H
#define LOWLP_LIB_DECODE_HOMES_H

#include "lowlp/Decode/DecodePlan.h"

namespace lowlp {

class Homes {
public:
  enum class Kind {
    /// Any sum of pieces, each anywhere in the window.
    Linear,
    /// A sign on top and an integer anywhere in the window (e1mY).
    SignedLinear,
    /// One home.
    Fixed,
    /// Not in place: by way of f32 numbers, one to a register.
    ByF32,
    /// Not in place: bit by bit from the code.
    ByTable
  };

  /// Fails where the compute type does not hold the format's values, saying so.
  static Result<Homes> get(const CodeFormat &format, ComputeType compute);

  Kind kind = Kind::Fixed;
  CodeFormat format;
  ComputeType compute;
  /// Low bits of a part in which integers are numbers.
  int window = 0;
  /// The weight of bit 0 of a part is 2^unitExponent.
  int unitExponent = 0;
  /// For ByF32: the numbers are what the codes mean times 2^roundedExponent.
  int roundedExponent = 0;
  /// Bytes are numbers without sign.
  bool isUnsigned = false;
  /// Of integers: shifts count from here.
  int leastShift = 0;

  int getPartBits() const { return 32 / FragmentFamily{compute}.getParts(); }
  /// Whether products and sums by powers of two are at hand.
  bool hasFma() const { return FragmentFamily{compute}.getParts() == 2; }
  /// Shifts that a whole code may have: 0 .. result - 1.
  int getNumShifts() const;
  /// The bit of a part where a bit of the code has to be.
  int getHome(int bit, int shift) const;
  /// A whole code is `value * 2^exponent` at a shift.
  int getExponent(int shift) const;
  /// What is added to the mask of a code at a shift, for it to be the number:
  /// the sign bit of signed bytes whose top bit is used.
  uint32_t getFlip(int shift) const;
  /// The offset that it brings.
  double getOffset(int shift) const;

private:
  Homes(const CodeFormat &format, ComputeType compute)
      : format(format), compute(compute) {}
};

} // namespace lowlp

#endif // LOWLP_LIB_DECODE_HOMES_H
