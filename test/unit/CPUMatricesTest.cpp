//===- CPUMatricesTest.cpp - ldmatrix and stmatrix on the CPU -------------===//

#include "CPULauncher.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace lowlp::cpu;

namespace {

const char *const siteFill = "fill at t.mlir:1:1";
const char *const siteMove = "move at t.mlir:2:1";
const char *const siteBarrier = "barrier at t.mlir:3:1";
constexpr int64_t rowBytes = 48; // 16 of a row, and room between rows

/// What a kernel below is asked to do.
struct Task {
  int32_t count;
  int32_t transposed;
};

/// Row r of matrix m lies at (8 m + r) * rowBytes. Element c of it holds
/// 1000 m + 10 r + c.
int64_t addressOfRow(int64_t row) { return row * rowBytes; }
uint16_t valueOf(int m, int row, int column) {
  return uint16_t(1000 * m + 10 * row + column);
}

/// Lane 8 m + r writes row r of matrix m.
void fillRows(LowlpThread *thread, char *shared) {
  int64_t lane = lowlpCpuThreadId(thread, 0);
  for (int column = 0; column < 8; ++column)
    store(thread, reinterpret_cast<uint16_t *>(shared),
          addressOfRow(lane) / 2 + column,
          valueOf(int(lane / 8), int(lane % 8), column), siteFill);
}

/// Loads, and writes what each lane receives to the argument.
void loadKernel(LowlpThread *thread, void *const *args) {
  auto task = *static_cast<const Task *>(args[1]);
  int64_t lane = lowlpCpuThreadId(thread, 0);
  auto *shared = static_cast<char *>(lowlpCpuSharedMemory(thread, 0));
  fillRows(thread, shared);
  lowlpCpuBarrier(thread, siteBarrier);
  uint32_t words[4] = {};
  // Addresses that do not count are out of all bounds.
  int64_t offset = lane < 8 * task.count ? addressOfRow(lane) : 1 << 20;
  lowlpCpuLoadMatrix(thread, shared, offset, task.count, task.transposed, words,
                     siteMove);
  for (int i = 0; i < 4; ++i)
    store(thread, pointerArg<uint32_t>(args, 0), 4 * lane + i, words[i],
          siteFill);
}

/// Stores what the lanes hold, and copies the elements to the argument.
void storeKernel(LowlpThread *thread, void *const *args) {
  auto task = *static_cast<const Task *>(args[1]);
  int64_t lane = lowlpCpuThreadId(thread, 0);
  auto *shared = static_cast<char *>(lowlpCpuSharedMemory(thread, 0));
  uint32_t words[4];
  for (int m = 0; m < 4; ++m) {
    int pair = 2 * int(lane % 4), one = int(lane / 4);
    uint16_t low =
        task.transposed ? valueOf(m, pair, one) : valueOf(m, one, pair);
    uint16_t high =
        task.transposed ? valueOf(m, pair + 1, one) : valueOf(m, one, pair + 1);
    words[m] = uint32_t(high) << 16 | low;
  }
  lowlpCpuStoreMatrix(thread, shared, addressOfRow(lane), task.count,
                      task.transposed, words, siteMove);
  lowlpCpuBarrier(thread, siteBarrier);
  if (lane < 8 * task.count)
    for (int column = 0; column < 8; ++column)
      store(thread, pointerArg<uint16_t>(args, 0), 8 * lane + column,
            load(thread, reinterpret_cast<const uint16_t *>(shared),
                 addressOfRow(lane) / 2 + column, siteFill),
            siteFill);
}

template <typename T>
LaunchReport run(LowlpKernelFn kernel, std::vector<T> &out, Task task,
                 int64_t numThreads = 32) {
  Launcher launcher(kernel, 1, numThreads);
  launcher.sharedBytes = 32 * rowBytes;
  launcher.pass(out, "out", true);
  launcher.passScalar(task);
  return launcher.run();
}

TEST(CPUMatrices, loadsFragments) {
  for (Task task : {Task{1, 0}, {2, 0}, {4, 0}, {1, 1}, {2, 1}, {4, 1}}) {
    std::vector<uint32_t> out(32 * 4);
    LaunchReport report = run(loadKernel, out, task);
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.bytesLoaded, 128u * uint32_t(task.count));
    for (int lane = 0; lane < 32; ++lane)
      for (int m = 0; m < task.count; ++m) {
        // PTX ISA, ldmatrix: fragment layouts with and without .trans.
        int pair = 2 * (lane % 4), one = lane / 4;
        uint32_t low =
            task.transposed ? valueOf(m, pair, one) : valueOf(m, one, pair);
        uint32_t high = task.transposed ? valueOf(m, pair + 1, one)
                                        : valueOf(m, one, pair + 1);
        EXPECT_EQ(out[size_t(4 * lane + m)], high << 16 | low)
            << "lane " << lane << ", matrix " << m;
      }
  }
}

TEST(CPUMatrices, storesFragments) {
  for (Task task : {Task{1, 0}, {2, 0}, {4, 0}, {1, 1}, {2, 1}, {4, 1}}) {
    std::vector<uint16_t> out(32 * 8);
    LaunchReport report = run(storeKernel, out, task);
    ASSERT_TRUE(report.ok) << report.error;
    for (int row = 0; row < 8 * task.count; ++row)
      for (int column = 0; column < 8; ++column)
        EXPECT_EQ(out[size_t(8 * row + column)],
                  valueOf(row / 8, row % 8, column));
  }
}

void expectError(LowlpKernelFn kernel, const char *part,
                 int64_t numThreads = 32) {
  std::vector<uint32_t> out(64 * 4);
  LaunchReport report = run(kernel, out, {4, 0}, numThreads);
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.error.find(part), std::string::npos)
      << "'" << part << "' is not in: " << report.error;
}

/// Loads rows from `base` at `offset`.
void loadRow(LowlpThread *thread, const void *base, int64_t offset) {
  uint32_t words[4];
  lowlpCpuLoadMatrix(thread, base, offset, 4, 0, words, siteMove);
}

TEST(CPUMatrices, reportsRowsThatMayNotBeRead) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        loadRow(thread, lowlpCpuSharedMemory(thread, 0),
                addressOfRow(lowlpCpuThreadId(thread, 0)) + 8);
      },
      "move at t.mlir:2:1");
  expectError(
      [](LowlpThread *thread, void *const *) {
        loadRow(thread, lowlpCpuSharedMemory(thread, 0), 32 * rowBytes - 8);
      },
      "move at t.mlir:2:1");
  expectError(
      [](LowlpThread *thread, void *const *args) {
        loadRow(thread, pointerArg<uint32_t>(args, 0), 0);
      },
      "matrices lie in shared memory, but this row in argument 'out'");
}

TEST(CPUMatrices, reportsReadsOfNothing) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        loadRow(thread, lowlpCpuSharedMemory(thread, 0),
                addressOfRow(lowlpCpuThreadId(thread, 0)));
      },
      "uninitialised read");
}

// The lane that gives a row's address has written all of it, but the others
// that receive its elements have not waited for that.
TEST(CPUMatrices, reportsMissingBarrier) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        auto *shared = static_cast<char *>(lowlpCpuSharedMemory(thread, 0));
        fillRows(thread, shared);
        loadRow(thread, shared, addressOfRow(lowlpCpuThreadId(thread, 0)));
      },
      "race");
}

/// Copies 16 bytes of the argument to each row and loads the rows, with or
/// without waiting in between.
template <bool waits>
void copyThenLoad(LowlpThread *thread, void *const *args) {
  int64_t lane = lowlpCpuThreadId(thread, 0);
  auto *shared = static_cast<char *>(lowlpCpuSharedMemory(thread, 0));
  lowlpCpuCopyAsync(thread, pointerArg<uint32_t>(args, 0), 16 * lane, shared,
                    addressOfRow(lane), 16, siteFill);
  lowlpCpuCopyAsyncCommit(thread);
  if (waits)
    lowlpCpuCopyAsyncWait(thread, 0);
  lowlpCpuBarrier(thread, siteBarrier);
  loadRow(thread, shared, addressOfRow(lane));
}

TEST(CPUMatrices, reportsCopiesThatWereNotWaitedFor) {
  std::vector<uint32_t> out(64 * 4);
  LaunchReport report = run(copyThenLoad<true>, out, {4, 0});
  EXPECT_TRUE(report.ok) << report.error;
  expectError(copyThenLoad<false>,
              "touches bytes of an asynchronous copy that was not waited for");
}

TEST(CPUMatrices, takesWholeWarps) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        auto *shared = static_cast<char *>(lowlpCpuSharedMemory(thread, 0));
        if (lowlpCpuThreadId(thread, 0) >= 32)
          loadRow(thread, shared, 0);
      },
      "ldmatrix takes a warp of 32 lanes, but the last warp of the block has 8",
      40);
}

TEST(CPUMatrices, movesOneTwoOrFour) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        uint32_t words[4];
        lowlpCpuLoadMatrix(thread, lowlpCpuSharedMemory(thread, 0), 0, 3, 0,
                           words, siteMove);
      },
      "matrices move by 1, 2 or 4, not by 3");
}

// Eight rows of 16 bytes, 48 bytes apart, meet every bank once; 128 bytes
// apart, all of them the same four banks.
TEST(CPUMatrices, countsBankConflicts) {
  for (auto [pitch, extraPasses] : {std::pair{48, 0}, {128, 4 * 7}}) {
    Launcher launcher(
        [](LowlpThread *thread, void *const *args) {
          int64_t pitch = *static_cast<const int *>(args[0]);
          uint32_t words[4] = {};
          auto *shared = static_cast<char *>(lowlpCpuSharedMemory(thread, 0));
          lowlpCpuStoreMatrix(thread, shared,
                              pitch * lowlpCpuThreadId(thread, 0), 4, 0, words,
                              siteMove);
        },
        1, 32);
    launcher.sharedBytes = 32 * 128;
    launcher.countsSites = true;
    int argument = pitch;
    launcher.passScalar(argument);
    LaunchReport report = launcher.run();
    ASSERT_TRUE(report.ok) << report.error;
    ASSERT_EQ(report.sites.size(), 1u);
    EXPECT_EQ(report.sites[0].requests, 1u);
    EXPECT_EQ(report.sites[0].extraPasses, uint64_t(extraPasses));
  }
}

} // namespace
