//===- StackPool.cpp - Stacks for fibers ----------------------------------===//

#include "StackPool.h"

#include <algorithm>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

using namespace lowlp::cpu;

namespace {

size_t pageBytes() {
  static const size_t bytes = size_t(sysconf(_SC_PAGESIZE));
  return bytes;
}

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
    munmap(mapping, bytesPerStack + pageBytes());
}

void *StackPool::take() {
  if (!freeTops.empty()) {
    void *top = freeTops.back();
    freeTops.pop_back();
    return top;
  }
  size_t bytes = bytesPerStack + pageBytes();
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return nullptr;
  // Stacks grow downwards, so the guard is the lowest page.
  if (mprotect(mapping, pageBytes(), PROT_NONE) != 0) {
    munmap(mapping, bytes);
    return nullptr;
  }
  mappings.push_back(mapping);
  return static_cast<char *>(mapping) + bytes;
}

void StackPool::trim() {
  size_t bytes = bytesPerStack + pageBytes();
  while (freeTops.size() > maxKept) {
    void *mapping = static_cast<char *>(freeTops.back()) - bytes;
    freeTops.pop_back();
    munmap(mapping, bytes);
    mappings.erase(std::find(mappings.begin(), mappings.end(), mapping));
  }
}

std::unique_ptr<StackPool> lowlp::cpu::acquireStackPool() {
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  if (idle.pools.empty())
    return std::make_unique<StackPool>();
  std::unique_ptr<StackPool> pool = std::move(idle.pools.back());
  idle.pools.pop_back();
  return pool;
}

void lowlp::cpu::releaseStackPool(std::unique_ptr<StackPool> pool) {
  IdlePools &idle = idlePools();
  std::lock_guard<std::mutex> lock(idle.mutex);
  idle.pools.push_back(std::move(pool));
}
