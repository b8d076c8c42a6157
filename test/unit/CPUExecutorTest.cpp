//===- CPUExecutorTest.cpp - Launches, memory checks, atomics -------------===//

#include "CPULauncher.h"

#include "lowlp/CPU/HalfFloat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <malloc.h>
#include <set>
#include <unistd.h>

using namespace lowlp::cpu;

namespace {

void addVectors(LowlpThread *thread, void *const *args) {
  int64_t i = globalIndex(thread);
  if (i >= *static_cast<const int64_t *>(args[3]))
    return;
  float x = load(thread, pointerArg<float>(args, 0), i, "load x");
  int16_t y = load(thread, pointerArg<int16_t>(args, 1), i, "load y");
  store(thread, pointerArg<float>(args, 2), i, x + y, "store z");
}

/// `addVectors` of `n` elements by blocks of 64 threads.
struct VectorAdd {
  explicit VectorAdd(int64_t n) : n(n), x(n), y(n), z(n, -1) {
    for (int64_t i = 0; i < n; ++i)
      x[i] = 0.5f * i, y[i] = int16_t(3 * i);
  }
  LaunchReport run(uint64_t seed, int workers) {
    Launcher launcher(addVectors, (n + 63) / 64, 64);
    launcher.pass(x, "x", false).pass(y, "y", false).pass(z, "z", true);
    launcher.passScalar(n);
    launcher.seed = seed;
    launcher.workers = workers;
    return launcher.run();
  }
  int64_t n;
  std::vector<float> x;
  std::vector<int16_t> y;
  std::vector<float> z;
};

TEST(CPUExecutor, addsVectorsOverSeveralBlocks) {
  VectorAdd add(1000);
  LaunchReport report = add.run(/*seed=*/7, /*workers=*/0);
  ASSERT_TRUE(report.ok) << report.error;
  for (int64_t i = 0; i < add.n; ++i)
    ASSERT_EQ(add.z[i], 3.5f * i) << i;
  EXPECT_EQ(report.loads, 2000u);
  EXPECT_EQ(report.stores, 1000u);
  EXPECT_EQ(report.bytesLoaded, 6000u);
  EXPECT_EQ(report.bytesStored, 4000u);
  EXPECT_EQ(report.blocks, 16u);
}

TEST(CPUExecutor, seedsAndWorkersDoNotChangeARaceFreeProgram) {
  VectorAdd first(500);
  ASSERT_TRUE(first.run(0, 1).ok);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    VectorAdd other(500);
    ASSERT_TRUE(other.run(seed, int(seed % 3)).ok);
    ASSERT_EQ(other.z, first.z);
  }
}

TEST(CPUExecutor, coordinatesCountXFirst) {
  std::vector<int64_t> seen(2 * 3 * 4 * 5 * 2, -1);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        int64_t block = lowlpCpuBlockId(thread, 0) +
                        lowlpCpuGridDim(thread, 0) * lowlpCpuBlockId(thread, 1);
        int64_t inBlock =
            lowlpCpuThreadId(thread, 0) +
            lowlpCpuBlockDim(thread, 0) *
                (lowlpCpuThreadId(thread, 1) +
                 lowlpCpuBlockDim(thread, 1) * lowlpCpuThreadId(thread, 2));
        store(thread, pointerArg<int64_t>(args, 0), block * 40 + inBlock,
              block * 1000 + inBlock, "s");
      },
      2, 4);
  launcher.grid[1] = 3;
  launcher.block[1] = 5;
  launcher.block[2] = 2;
  LaunchReport report = launcher.pass(seen, "seen", true).run();
  ASSERT_TRUE(report.ok) << report.error;
  for (int64_t i = 0; i < int64_t(seen.size()); ++i)
    ASSERT_EQ(seen[i], i / 40 * 1000 + i % 40);
}

TEST(CPUExecutor, seedShufflesBlocksAndThreads) {
  std::set<std::vector<int32_t>> orders;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<int32_t> order(65);
    Launcher launcher(
        [](LowlpThread *thread, void *const *args) {
          int32_t *order = pointerArg<int32_t>(args, 0);
          order[++order[0]] = int32_t(globalIndex(thread));
        },
        4, 16);
    launcher.pass(order, "order", true).seed = seed;
    launcher.workers = 1;
    ASSERT_TRUE(launcher.run().ok);
    std::set<int32_t> all(order.begin() + 1, order.end());
    EXPECT_EQ(all.size(), 64u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 8u);
}

/// The report of one block of `numThreads` threads of `kernel` with arguments
/// x: 1024 read-only words, and y: 1024 writable halves.
LaunchReport runOnXY(LowlpKernelFn kernel, int64_t numThreads,
                     uint32_t checks = LowlpCheckAll) {
  std::vector<float> x(1024);
  std::vector<int16_t> y(1024);
  Launcher launcher(kernel, 1, numThreads);
  launcher.sharedBytes = 128;
  launcher.checks = checks;
  return launcher.pass(x, "x", false).pass(y, "y", true).run();
}

TEST(CPUExecutor, reportsReadOutsideTheAllocation) {
  std::vector<float> x(1024);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        if (lowlpCpuBlockId(thread, 1) == 1 && lowlpCpuThreadId(thread, 0) == 3)
          lowlpCpuCheckAccess(thread, pointerArg<float>(args, 0), 4096, 16, 4,
                              0, "lowlp.load_global at fig2.mlir:12:8");
      },
      1, 4);
  launcher.grid[1] = 3;
  LaunchReport report = launcher.pass(x, "x", false).run();
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.error,
            "lowlp.load_global at fig2.mlir:12:8: read of 16 bytes at byte "
            "offset 4096 of argument 'x' (4096 bytes) is outside the "
            "allocation; block (0, 1, 0), thread (3, 0, 0)");
}

TEST(CPUExecutor, reportsAccessThatStraddlesTheEnd) {
  LaunchReport report = runOnXY(
      [](LowlpThread *thread, void *const *args) {
        int16_t *tail = pointerArg<int16_t>(args, 1) + 1000;
        lowlpCpuCheckAccess(thread, tail, 46, 2, 2, 1, "fits");
        lowlpCpuCheckAccess(thread, tail, 46, 4, 2, 1, "store");
      },
      1);
  EXPECT_EQ(report.error, "store: write of 4 bytes at byte offset 2046 of "
                          "argument 'y' (2048 bytes) is outside the "
                          "allocation; block (0, 0, 0), thread (0, 0, 0)");
  EXPECT_EQ(report.stores, 2u);
}

struct RefusedAccess {
  LowlpKernelFn kernel;
  const char *text;
};

TEST(CPUExecutor, reportsOtherRefusedAccesses) {
  const RefusedAccess cases[] = {
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, pointerArg<float>(args, 0), -4, 4, 4, 0, "s");
       },
       "s: read of 4 bytes at byte offset -4 of argument 'x' (4096 bytes) is "
       "outside the allocation"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, pointerArg<float>(args, 0), INT64_MAX, 4, 1, 0,
                             "s");
       },
       "is outside the allocation"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, pointerArg<float>(args, 0), 8, 4, 4, 1, "s");
       },
       "s: write of 4 bytes at byte offset 8 of argument 'x' (4096 bytes), "
       "which is read-only"},
      // Memory from the heap is aligned to 16 bytes.
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, pointerArg<float>(args, 0), 20, 16, 16, 0, "s");
       },
       "s: read of 16 bytes at byte offset 20 of argument 'x' (4096 bytes) is "
       "misaligned: its address is 4 bytes past a multiple of 16"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, nullptr, 16, 4, 4, 0, "s");
       },
       "s: read of 4 bytes through a null pointer"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, args, 0, 8, 8, 1, "s");
       },
       "s: write of 8 bytes through a pointer that lies in no allocation"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuCheckAccess(t, lowlpCpuSharedMemory(t, 64), 64, 2, 2, 1, "s");
       },
       "s: write of 2 bytes at byte offset 128 of shared memory (128 bytes) is "
       "outside the allocation"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuAtomic(t, LowlpAtomicOr, pointerArg<float>(args, 0), 0, 1,
                        "s");
       },
       "which is read-only"},
      {[](LowlpThread *t, void *const *args) {
         lowlpCpuAtomic(t, 99, pointerArg<int16_t>(args, 1), 0, 1, "s");
       },
       "s: there is no atomic operation 99"},
      {[](LowlpThread *t, void *const *) {
         lowlpCpuAssert(t, 1, "fine", "s");
         lowlpCpuAssert(t, 0, "k must be a multiple of 16", "s");
       },
       "s: k must be a multiple of 16; block (0, 0, 0), thread (0, 0, 0)"},
  };
  for (const RefusedAccess &refused : cases) {
    LaunchReport report = runOnXY(refused.kernel, 1);
    EXPECT_FALSE(report.ok);
    EXPECT_NE(report.error.find(refused.text), std::string::npos)
        << report.error << "\nexpected: " << refused.text;
  }
}

TEST(CPUExecutor, checksCanBeSwitchedOff) {
  LowlpKernelFn kernel = [](LowlpThread *thread, void *const *args) {
    lowlpCpuCheckAccess(thread, pointerArg<float>(args, 0), 1 << 20, 4, 4, 0,
                        "s");
    lowlpCpuAssert(thread, 0, "never", "s");
  };
  EXPECT_FALSE(runOnXY(kernel, 1).ok);
  LaunchReport report = runOnXY(kernel, 5, LowlpCheckNothing);
  EXPECT_TRUE(report.ok) << report.error;
  EXPECT_EQ(report.loads, 5u);
}

TEST(CPUExecutor, aliasedAllocationsAllowWhatOneOfThemAllows) {
  std::vector<int32_t> data(8);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        int32_t *read = pointerArg<int32_t>(args, 0);
        store(thread, read, 3, load(thread, read, 2, "l") + 5, "s");
      },
      1, 1);
  LaunchReport report =
      launcher.pass(data, "in", false).pass(data, "out", true).run();
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(data[3], 5);
}

TEST(CPUExecutor, sharedMemoryStartsAsNaN) {
  LaunchReport report = runOnXY(
      [](LowlpThread *thread, void *const *) {
        auto *shared = static_cast<float *>(lowlpCpuSharedMemory(thread, 0));
        lowlpCpuAssert(thread, std::isnan(load(thread, shared, 31, "l")), "NaN",
                       "s");
        lowlpCpuAssert(thread, uintptr_t(shared) % 1024 == 0, "aligned", "s");
      },
      1, LowlpCheckBounds);
  EXPECT_TRUE(report.ok) << report.error;
}

TEST(CPUExecutor, atomicsOfAllThreads) {
  std::vector<uint32_t> words = {UINT32_MAX, 0, 0, 0, 0, 9, 0, 9, 0};
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        uint32_t *words = pointerArg<uint32_t>(args, 0);
        auto i = uint32_t(globalIndex(thread));
        const uint32_t operands[] = {~(1u << i % 16),
                                     1u << i % 16,
                                     i,
                                     77,
                                     i,
                                     i + 2,
                                     i,
                                     uint32_t(-int32_t(i)),
                                     i};
        for (int32_t op = LowlpAtomicAnd; op <= LowlpAtomicMaxS; ++op)
          lowlpCpuAtomic(thread, op, words, 4 * op, operands[op], "a");
      },
      8, 64);
  LaunchReport report = launcher.pass(words, "words", true).run();
  ASSERT_TRUE(report.ok) << report.error;
  // Sum and XOR of 0..511; XOR of a full range of a power of two is 0.
  EXPECT_EQ(words, (std::vector<uint32_t>{0xffff0000, 0xffff, 511 * 256, 77, 0,
                                          2, 511, uint32_t(-511), 511}));
  EXPECT_EQ(report.atomics, 9u * 512);
}

TEST(CPUExecutor, pollingAThreadOfTheSameBlockEnds) {
  std::vector<uint32_t> flag(1);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        uint32_t *flag = pointerArg<uint32_t>(args, 0);
        auto self = uint32_t(lowlpCpuThreadId(thread, 0));
        while (lowlpCpuAtomic(thread, LowlpAtomicOr, flag, 0, 0, "p") != self) {
        }
        lowlpCpuAtomic(thread, LowlpAtomicAdd, flag, 0, 1, "a");
      },
      1, 64);
  ASSERT_TRUE(launcher.pass(flag, "flag", true).run().ok);
  EXPECT_EQ(flag[0], 64u);
}

TEST(CPUExecutor, errorIsTheSameForAnyNumberOfWorkers) {
  LowlpKernelFn kernel = [](LowlpThread *thread, void *const *) {
    lowlpCpuAssert(thread, globalIndex(thread) % 37 != 5, "bad", "s");
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Launcher launcher(kernel, 200, 16);
    launcher.seed = seed;
    launcher.workers = 1;
    std::string error = launcher.run().error;
    EXPECT_NE(error, "");
    launcher.workers = 4;
    EXPECT_EQ(launcher.run().error, error);
  }
}

TEST(CPUExecutor, rejectsInvalidLaunches) {
  LowlpKernelFn nothing = [](LowlpThread *, void *const *) {};
  EXPECT_EQ(Launcher(nullptr, 1, 1).run().error, "launch: the kernel is null");
  EXPECT_EQ(Launcher(nothing, 0, 1).run().error,
            "launch: grid (0, 1, 1) has no blocks, or too many");
  EXPECT_EQ(Launcher(nothing, 1, 1025).run().error,
            "launch: block (1025, 1, 1) must have 1 to 1024 threads");
  Launcher unknown(nothing, 1, 1);
  unknown.checks = 8;
  EXPECT_EQ(unknown.run().error, "launch: there are no checks 8");
  Launcher huge(nothing, 1, 1);
  huge.sharedBytes = INT64_MAX / 2;
  EXPECT_EQ(huge.run().error, "launch: no memory for 4611686018427387903 bytes "
                              "of shared memory");
}

TEST(CPUExecutor, namesTheBytesOfStacksThatAreTooLarge) {
  Launcher deep([](LowlpThread *, void *const *) {}, 1, 1);
  deep.stackBytes = 32 * 1024 * 1024;
  EXPECT_EQ(deep.run().error, "");
  deep.stackBytes = int64_t(1) << 40;
  EXPECT_EQ(deep.run().error,
            "launch: each thread of the kernel takes a stack of 1099511627776 "
            "bytes, but at most 1073741824 are allowed");
}

TEST(CPUExecutor, stopsWhenTheCallerAsks) {
  auto endless = [](LowlpThread *thread, void *const *) {
    for (;;)
      lowlpCpuPoll(thread);
  };
  Launcher launcher(endless, 64, 32);
  int asked = 0;
  launcher.shouldStop = [](void *count) -> int32_t {
    return ++*static_cast<int *>(count) == 2;
  };
  launcher.shouldStopData = &asked;
  EXPECT_EQ(launcher.run().error, "launch: stopped by the caller");
  EXPECT_EQ(asked, 2);
}

TEST(CPUExecutor, launchesFromC) {
  LowlpLaunchConfig config = {};
  config.kernel = [](LowlpThread *thread, void *const *) {
    lowlpCpuAssert(thread, lowlpCpuThreadId(thread, 0) != 2, "no two", "s");
  };
  for (int dim = 0; dim < 3; ++dim)
    config.grid[dim] = config.block[dim] = 1;
  LowlpLaunchCounters counters;
  config.checks = LowlpCheckBounds;
  EXPECT_EQ(lowlpCpuLaunch(&config, &counters, nullptr, 0), 1);
  EXPECT_EQ(counters.blocks, 1u);
  config.block[0] = 3;
  char error[10];
  EXPECT_EQ(lowlpCpuLaunch(&config, nullptr, error, sizeof(error)), 0);
  EXPECT_STREQ(error, "s: no two");
}

TEST(CPUExecutor, symbolTableNamesTheFunctions) {
  int64_t count = 0;
  const LowlpCpuSymbol *symbols = lowlpCpuSymbols(&count);
  ASSERT_EQ(count, 40);
  EXPECT_STREQ(symbols[7].name, "lowlpCpuMma");
  EXPECT_EQ(symbols[7].address, reinterpret_cast<void *>(&lowlpCpuMma));
}

TEST(CPUExecutor, f16OfEveryPattern) {
  for (uint32_t bits = 0; bits < 0x8000; ++bits) {
    int exponent = int(bits >> 10), mantissa = int(bits & 0x3ff);
    float value = f16ToFloat(uint16_t(bits));
    float negative = f16ToFloat(uint16_t(bits | 0x8000));
    ASSERT_TRUE(std::signbit(negative)) << bits;
    if (exponent == 31 && mantissa) {
      ASSERT_TRUE(std::isnan(value) && std::isnan(negative)) << bits;
      continue;
    }
    double expected = exponent == 31 ? double(INFINITY)
                      : exponent == 0
                          ? std::ldexp(mantissa, -24)
                          : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(negative, -expected) << bits;
  }
}

TEST(CPUExecutor, bf16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(bf16ToFloat(0x3fc0), 1.5f);
  EXPECT_EQ(bf16ToFloat(0x8001), -std::ldexp(1.0f, -133));
  EXPECT_EQ(bf16ToFloat(0xff80), -INFINITY);
  EXPECT_TRUE(std::isnan(bf16ToFloat(0x7fc1)));
}

/// The process's resident memory in bytes.
int64_t residentBytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(CPUExecutor, abandonedFibersLeakNothing) {
  LowlpKernelFn kernel = [](LowlpThread *thread, void *const *args) {
    if (lowlpCpuThreadId(thread, 0) != 5)
      lowlpCpuBarrier(thread, "a barrier with a site of some length");
    lowlpCpuCheckAccess(thread, pointerArg<float>(args, 0), -8, 4, 4, 0,
                        "a load whose site does not fit a short string");
  };
  int64_t residentBefore = 0;
  size_t heapBefore = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(runOnXY(kernel, 128).ok);
    // The first launches map the stacks that all others reuse.
    if (i != 100)
      continue;
    residentBefore = residentBytes();
    heapBefore = mallinfo2().uordblks;
  }
  EXPECT_LT(residentBytes() - residentBefore, 1 << 20);
  EXPECT_LT(mallinfo2().uordblks, heapBefore + 4096);
}

TEST(CPUExecutor, runsAThousandBlocksQuickly) {
  std::vector<float> z(128 * 1000);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        float *z = pointerArg<float>(args, 0);
        for (int i = 0; i < 8; ++i) {
          store(thread, z, globalIndex(thread), float(i), "s");
          lowlpCpuBarrier(thread, "b");
        }
      },
      1000, 128);
  auto begin = std::chrono::steady_clock::now();
  LaunchReport report = launcher.pass(z, "z", true).run();
  std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(report.barriers, 8000u);
  std::printf("1000 blocks of 128 threads, 8 barriers each: %.1f ms\n",
              elapsed.count());
  EXPECT_LT(elapsed.count(), 20000);
}

} // namespace
