//===- CPULauncher.h - Short launches of kernels written in C++ -*- C++ -*-===//

#ifndef LOWLP_TEST_UNIT_CPULAUNCHER_H
#define LOWLP_TEST_UNIT_CPULAUNCHER_H

#include "lowlp/CPU/Executor.h"

#include <deque>

/// A configuration that is filled in argument by argument.
struct Launcher : lowlp::cpu::LaunchConfig {
  Launcher(LowlpKernelFn fn, int64_t numBlocks, int64_t numThreads) {
    kernel = fn;
    grid[0] = numBlocks;
    block[0] = numThreads;
  }

  /// Passes the elements of `data` as the next argument.
  template <typename T>
  Launcher &pass(std::vector<T> &data, const char *name, bool isWritable) {
    allocations.push_back(
        {data.data(), int64_t(data.size() * sizeof(T)), name, isWritable});
    pointers.push_back(data.data());
    values.push_back(&pointers.back());
    return *this;
  }

  /// Passes a scalar, which must outlive the launch, as the next argument.
  template <typename T> Launcher &passScalar(T &value) {
    values.push_back(&value);
    return *this;
  }

  /// What `args` points at: the places of the arguments passed so far.
  void *const *argumentPlaces() const { return values.data(); }

  lowlp::cpu::LaunchReport run() {
    args = argumentPlaces();
    return lowlp::cpu::launch(*this);
  }

private:
  std::deque<void *> pointers; ///< a deque, as its elements stay in place
  std::vector<void *> values;
};

/// Inside a kernel: the pointer that is argument `index`.
template <typename T> T *pointerArg(void *const *args, int index) {
  return *static_cast<T *const *>(args[index]);
}

/// A checked load of `base[index]`.
template <typename T>
T load(LowlpThread *thread, const T *base, int64_t index, const char *site) {
  lowlpCpuCheckAccess(thread, base, index * int64_t(sizeof(T)), sizeof(T),
                      sizeof(T), /*isWrite=*/0, site);
  return base[index];
}

/// A checked store to `base[index]`.
template <typename T>
void store(LowlpThread *thread, T *base, int64_t index, T value,
           const char *site) {
  lowlpCpuCheckAccess(thread, base, index * int64_t(sizeof(T)), sizeof(T),
                      sizeof(T), /*isWrite=*/1, site);
  base[index] = value;
}

/// The thread's index among all threads of a one-dimensional launch.
inline int64_t globalIndex(LowlpThread *thread) {
  return lowlpCpuBlockId(thread, 0) * lowlpCpuBlockDim(thread, 0) +
         lowlpCpuThreadId(thread, 0);
}

#endif // LOWLP_TEST_UNIT_CPULAUNCHER_H
