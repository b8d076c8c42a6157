//===- RegisterShares.h - a producer's registers for the others -*- C++ -*-===//
//
// A block that has an SM to itself has all of its registers. Where the producer
// is a warpgroup, it gives most of its share to the other threads (PTX ISA,
// "setmaxnreg").
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_TARGET_REGISTERSHARES_H
#define LOWLP_TARGET_REGISTERSHARES_H

#include <cstdint>

namespace lowlp {

/// How many registers a thread has.
struct RegisterShares {
  /// At the launch, all threads alike.
  int64_t launch;
  /// From then on.
  int64_t producer, worker;
};

/// The shares of a block with `numWorkers` threads beside the warpgroup of the
/// producer.
RegisterShares getRegisterShares(int64_t numWorkers);

} // namespace lowlp

#endif // LOWLP_TARGET_REGISTERSHARES_H
