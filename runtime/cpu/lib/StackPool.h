//===- StackPool.h - Stacks for fibers --------------------------*- C++ -*-===//

#ifndef LOWLP_CPU_LIB_STACKPOOL_H
#define LOWLP_CPU_LIB_STACKPOOL_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lowlp {
namespace cpu {

/// Stacks of one size, mapped on first need and reused last in, first out, so
/// that a kernel whose threads never wait runs on one warm stack. Below each
/// stack lies memory without access. Belongs to one host thread at a time.
class StackPool {
public:
  const size_t bytesPerStack;

  /// Requires: `bytesPerStack` comes from `chooseStackBytes`.
  explicit StackPool(size_t bytesPerStack) : bytesPerStack(bytesPerStack) {}
  StackPool(const StackPool &) = delete;
  StackPool &operator=(const StackPool &) = delete;
  ~StackPool();

  /// The upper end of a free stack, or null if the system has no memory for
  /// another one.
  void *take();

  /// Takes back a stack that `take` gave; whatever is on it is forgotten.
  void give(void *top) { freeTops.push_back(top); }

  /// Unmaps free stacks beyond what one block takes. Requires: all are free.
  void trim();

private:
  static constexpr size_t maxKept = 1024;

  std::vector<void *> freeTops;
  std::vector<void *> mappings;
};

/// The size of a stack on which compiled code takes `frameBytes` and the
/// executor's functions, which it calls, what they need.
size_t chooseStackBytes(int64_t frameBytes);

/// A pool kept from an earlier launch, or a new one. Thread-safe.
std::unique_ptr<StackPool> acquireStackPool(size_t bytesPerStack);

/// Keeps `pool` for later launches if its stacks are of the usual size: mapping
/// a thousand stacks costs more than a small launch. The process holds as many
/// pools as workers ever ran at once.
void releaseStackPool(std::unique_ptr<StackPool> pool);

} // namespace cpu
} // namespace lowlp

#endif // LOWLP_CPU_LIB_STACKPOOL_H
