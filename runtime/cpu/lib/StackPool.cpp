//===- StackPool.cpp - Stacks for fibers ----------------------------------===//
//
//   | guard | executor's functions | frames of compiled code |
//   low                                                    top
//
// Compiled code tells how large its frames are, and those of the executor are
// small, so nothing runs into the guard but what a mistake of the executor
// makes. The guard is wider than any frame of the executor: none jumps over it.
//
//===----------------------------------------------------------------------===//

#include "StackPool.h"

#include <algorithm>
#include <mutex>

#include <sys/mman.h>

using namespace lowlp::cpu;

namespace {

// Multiples of all page sizes of Linux.
constexpr size_t guardBytes = 64 * 1024;
constexpr size_t executorBytes = 128 * 1024;
constexpr size_t usualBytes = 256 * 1024;

struct IdlePools {
  std::mutex mutex;
  std::vector<std::unique_ptr<StackPool>> pools;
};

IdlePools &idlePools() {
  static IdlePools idle;
  return idle;
}

} // namespace

StackPool::~StackPool() {
  for (void *mapping : mappings)
    munmap(mapping, bytesPerStack + guardBytes);
}

void *StackPool::take() {
  if (!freeTops.empty()) {
    void *top = freeTops.back();
    freeTops.pop_back();
    return top;
  }
  size_t bytes = bytesPerStack + guardBytes;
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return nullptr;
  // Stacks grow downwards.
  if (mprotect(mapping, guardBytes, PROT_NONE) != 0) {
    munmap(mapping, bytes);
    return nullptr;
  }
  mappings.push_back(mapping);
  return static_cast<char *>(mapping) + bytes;
}

void StackPool::trim() {
  size_t bytes = bytesPerStack + guardBytes;
  while (freeTops.size() > maxKept) {
    void *mapping = static_cast<char *>(freeTops.back()) - bytes;
    freeTops.pop_back();
    munmap(mapping, bytes);
    mappings.erase(std::find(mappings.begin(), mappings.end(), mapping));
  }
}

size_t lowlp::cpu::chooseStackBytes(int64_t frameBytes) {
  size_t bytes = size_t(frameBytes) + executorBytes;
  return std::max(usualBytes,
                  (bytes + guardBytes - 1) / guardBytes * guardBytes);
}

std::unique_ptr<StackPool> lowlp::cpu::acquireStackPool(size_t bytesPerStack) {
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  if (bytesPerStack != usualBytes || idle.pools.empty())
    return std::make_unique<StackPool>(bytesPerStack);
  std::unique_ptr<StackPool> pool = std::move(idle.pools.back());
  idle.pools.pop_back();
  return pool;
}

void lowlp::cpu::releaseStackPool(std::unique_ptr<StackPool> pool) {
  if (pool->bytesPerStack != usualBytes)
    return;
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  idle.pools.push_back(std::move(pool));
}
