//===- Mbarrier.h - Barriers in shared memory that count bytes --*- C++ -*-===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
// A phase is complete when no arrival is missing and no byte; then the next one
// begins. The object lies beside the shared memory, which holds nothing of it.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_LIB_MBARRIER_H
#define LOWLP_CPU_LIB_MBARRIER_H

#include "Knowledge.h"
#include "PendingCopies.h"
#include "ThreadOrder.h"

#include <string>
#include <vector>

namespace lowlp {
namespace cpu {

struct Mbarrier {
  /// PTX ISA, "Contents of the mbarrier object": of arrivals and of bytes.
  static constexpr int64_t maxCount = (1 << 20) - 1;
  static constexpr int64_t bytes = 8;

  int32_t number; ///< among those of the block
  int64_t byteOffset;
  int32_t arrivals;     ///< of each phase
  int32_t missing;      ///< arrivals of the current phase
  int64_t missingBytes; ///< announced ones that have not come
  uint32_t phase = 0;   ///< the current one
  int32_t initThread;
  uint32_t initTime;
  bool isFenced = false; ///< bulk copies may use it
  Sight released;        ///< by the arrivals of the current phase
  Sight completed;       ///< by the phase before
  Knowledge releasedOfOthers, completedOfOthers; ///< likewise, of other blocks
  std::vector<int32_t> waiting; ///< threads that wait for the current phase
  std::vector<PendingCopies::Number> copies; ///< whose bytes it counts

  /// "the mbarrier at byte offset 64"
  std::string describe() const;
  /// "phase 3 lacks 1 of 2 arrivals and 512 bytes"
  std::string describeMissing() const;
};

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_MBARRIER_H
