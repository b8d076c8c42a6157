//===- CPUSemaphoreTest.cpp - Order between blocks ------------------------===//

#include "CPULauncher.h"

#include "lowlp/CPU/HalfFloat.h"

#include <gtest/gtest.h>

#include <ctime>

using namespace lowlp::cpu;

namespace {

const char *const siteA = "lowlp.a at t.mlir:1:1";
const char *const siteB = "lowlp.b at t.mlir:2:1";
const char *const siteWait = "lowlp.semaphore_acquire at t.mlir:3:1";
const char *const siteRelease = "lowlp.semaphore_release at t.mlir:4:1";

int64_t blockOf(LowlpThread *t) { return lowlpCpuBlockId(t, 0); }
int64_t threadOf(LowlpThread *t) { return lowlpCpuThreadId(t, 0); }
int32_t *dataOf(void *const *args) { return pointerArg<int32_t>(args, 0); }
int32_t *wordsOf(void *const *args) { return pointerArg<int32_t>(args, 1); }

void await(LowlpThread *t, int32_t *words, int64_t index, int64_t value) {
  lowlpCpuAwait(t, words, 4 * index, uint32_t(value), siteWait);
}
void release(LowlpThread *t, int32_t *words, int64_t index, int64_t value) {
  lowlpCpuRelease(t, LowlpAtomicExch, words, 4 * index, uint32_t(value),
                  siteRelease);
}

/// A launch with the arguments "x", 1024 words, and "locks", 8 words of zero.
LaunchReport run(LowlpKernelFn kernel, int64_t numBlocks, uint64_t seed,
                 std::vector<int32_t> *data = nullptr, int64_t numThreads = 8) {
  std::vector<int32_t> x(1024), words(8);
  Launcher launcher(kernel, numBlocks, numThreads);
  launcher.seed = seed;
  launcher.workers = 1 + int(seed % 3);
  launcher.pass(x, "x", true).pass(words, "locks", true);
  LaunchReport report = launcher.run();
  if (data)
    *data = x;
  return report;
}

void expectReport(LowlpKernelFn kernel, int64_t numBlocks,
                  const std::vector<std::string> &parts) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::string error = run(kernel, numBlocks, seed).error;
    EXPECT_EQ(error.empty(), parts.empty()) << "seed " << seed << ": " << error;
    size_t at = 0;
    for (const std::string &part : parts) {
      at = error.find(part, at);
      ASSERT_NE(at, std::string::npos)
          << "seed " << seed << ": '" << part << "' is not in: " << error;
    }
  }
}

/// Every thread appends its number to what the block before has left.
void appendInTurn(LowlpThread *t, void *const *args) {
  if (threadOf(t) == 0)
    await(t, wordsOf(args), 0, blockOf(t));
  lowlpCpuBarrier(t, "b");
  int64_t i = threadOf(t);
  int32_t before = load(t, dataOf(args), i, siteA);
  store(t, dataOf(args), i, before * 3 + int32_t(blockOf(t)), siteB);
  lowlpCpuBarrier(t, "c");
  if (threadOf(t) == 0)
    release(t, wordsOf(args), 0, blockOf(t) + 1);
}

TEST(CPUSemaphore, blocksTakeTurnsAlsoWhenNotAllFit) {
  for (int64_t numBlocks : {1, 2, 15, 40, 200}) {
    int32_t expected = 0;
    for (int64_t block = 0; block < numBlocks; ++block)
      expected = int32_t(uint32_t(expected) * 3 + uint32_t(block));
    for (uint64_t seed = 0; seed < 12; ++seed) {
      std::vector<int32_t> x;
      LaunchReport report = run(appendInTurn, numBlocks, seed, &x);
      ASSERT_TRUE(report.ok) << report.error;
      for (int i = 0; i < 8; ++i)
        ASSERT_EQ(x[i], expected) << numBlocks << " blocks, seed " << seed;
      EXPECT_EQ(report.blocks, uint64_t(numBlocks));
    }
  }
}

TEST(CPUSemaphore, widestBlocksTakeTurns) {
  LaunchReport report = run(appendInTurn, 40, 3, nullptr, 1024);
  EXPECT_TRUE(report.ok) << report.error;
}

// The last block sums up what all others have left; each counts itself in.
TEST(CPUSemaphore, addsContinueAReleaseSequence) {
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    int64_t numOthers = lowlpCpuGridDim(t, 0) - 1;
    if (blockOf(t) < numOthers) {
      store(t, dataOf(args), globalIndex(t), 1, siteA);
      lowlpCpuBarrier(t, "b");
      if (threadOf(t) == 0)
        lowlpCpuRelease(t, LowlpAtomicAdd, wordsOf(args), 0, 1, siteRelease);
      return;
    }
    if (threadOf(t) == 5)
      await(t, wordsOf(args), 0, numOthers);
    lowlpCpuBarrier(t, "c");
    for (int64_t i = threadOf(t); i < 8 * numOthers; i += 8)
      load(t, dataOf(args), i, siteB);
  };
  expectReport(kernel, 40, {});
}

TEST(CPUSemaphore, releaseBeforeTheBarrier) {
  expectReport(
      [](LowlpThread *t, void *const *args) {
        if (blockOf(t) == 0) {
          store(t, dataOf(args), threadOf(t), 1, siteA);
          if (threadOf(t) == 0)
            release(t, wordsOf(args), 0, 1);
          lowlpCpuBarrier(t, "b");
          return;
        }
        if (threadOf(t) == 0)
          await(t, wordsOf(args), 0, 1);
        lowlpCpuBarrier(t, "c");
        if (threadOf(t) == 3)
          load(t, dataOf(args), 5, siteB);
      },
      2,
      {"race: ", " of 4 bytes at byte offset 20 of argument 'x' (4096 bytes)",
       "by block (", " have no order, as blocks run in any"});
}

TEST(CPUSemaphore, acquireWithoutABarrierBehindIt) {
  expectReport(
      [](LowlpThread *t, void *const *args) {
        if (blockOf(t) == 0) {
          store(t, dataOf(args), threadOf(t), 1, siteA);
          lowlpCpuBarrier(t, "b");
          if (threadOf(t) == 0)
            release(t, wordsOf(args), 0, 1);
          return;
        }
        if (threadOf(t) == 0)
          await(t, wordsOf(args), 0, 1);
        load(t, dataOf(args), threadOf(t), siteB);
      },
      2, {"race: ", "of argument 'x'", "have no order"});
}

TEST(CPUSemaphore, whatFollowsTheReleaseIsNotPublished) {
  expectReport(
      [](LowlpThread *t, void *const *args) {
        if (threadOf(t) != 0)
          return;
        if (blockOf(t) == 0) {
          store(t, dataOf(args), 0, 1, siteA);
          release(t, wordsOf(args), 0, 1);
          store(t, dataOf(args), 1, 1, siteB);
          return;
        }
        await(t, wordsOf(args), 0, 1);
        load(t, dataOf(args), 0, siteA);
        load(t, dataOf(args), 1, siteA);
      },
      2, {"race: ", " at byte offset 4 of argument 'x'", "have no order"});
}

TEST(CPUSemaphore, theReportSaysHowASemaphoreOrders) {
  // Block 1 only reads what was stored after the release when it is there.
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) == 0) {
      release(t, wordsOf(args), 0, 1);
      store(t, dataOf(args), 1, 1, siteA);
      release(t, wordsOf(args), 1, 1);
      return;
    }
    await(t, wordsOf(args), 0, 1);
    // Relaxed, so it orders nothing.
    while (!lowlpCpuAtomic(t, LowlpAtomicOr, wordsOf(args), 4, 0, "f")) {
    }
    load(t, dataOf(args), 1, siteB);
  };
  std::vector<int32_t> x(8), words(8);
  Launcher launcher(kernel, 2, 1);
  launcher.workers = 2;
  launcher.pass(x, "x", true).pass(words, "locks", true);
  EXPECT_EQ(
      launcher.run().error,
      "lowlp.b at t.mlir:2:1: race: read of 4 bytes at byte offset 4 of "
      "argument 'x' (32 bytes) and the write by block (0, 0, 0), thread (0, 0, "
      "0) at lowlp.a at t.mlir:1:1 have no order, as blocks run in any (a "
      "semaphore orders what a block did before the barrier in front of the "
      "release, and what another does after the barrier after the acquire); "
      "block (1, 0, 0), thread (0, 0, 0)");
}

TEST(CPUSemaphore, orderIsTransitive) {
  // Block 0 to 1 by word 0, block 1 to 2 by word 1; `isBroken`: 2 does not
  // wait.
  static bool isBroken;
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) > 0 && !(isBroken && blockOf(t) == 2)) {
      if (threadOf(t) == 1)
        await(t, wordsOf(args), blockOf(t) - 1, 1);
      lowlpCpuBarrier(t, "b");
    }
    if (blockOf(t) == 0)
      store(t, dataOf(args), threadOf(t), 7, siteA);
    if (blockOf(t) == 2)
      store(t, dataOf(args), threadOf(t), 8, siteB);
    lowlpCpuBarrier(t, "c");
    if (threadOf(t) == 0)
      release(t, wordsOf(args), blockOf(t), 1);
  };
  isBroken = false;
  expectReport(kernel, 3, {});
  isBroken = true;
  expectReport(kernel, 3, {"race: ", "have no order"});
}

// Three blocks read, and the one that writes afterwards has waited for two.
TEST(CPUSemaphore, aWriteAfterManyReads) {
  static int64_t numAwaited;
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) < 3) {
      load(t, dataOf(args), 0, siteA);
      release(t, wordsOf(args), blockOf(t), 1);
      return;
    }
    for (int64_t other = 0; other < numAwaited; ++other)
      await(t, wordsOf(args), other, 1);
    store(t, dataOf(args), 0, 1, siteB);
  };
  for (uint64_t seed = 0; seed < 12; ++seed) {
    numAwaited = 3;
    LaunchReport report = run(kernel, 4, seed, nullptr, 1);
    EXPECT_TRUE(report.ok) << report.error;
    numAwaited = 2;
    EXPECT_NE(run(kernel, 4, seed, nullptr, 1).error.find("race: "),
              std::string::npos);
  }
}

TEST(CPUSemaphore, relaxedAtomicsOrderNothing) {
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) == 0) {
      store(t, dataOf(args), 0, 1, siteA);
      lowlpCpuAtomic(t, LowlpAtomicAdd, wordsOf(args), 0, 1, "f");
      return;
    }
    await(t, wordsOf(args), 0, 1);
    load(t, dataOf(args), 0, siteB);
  };
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_NE(run(kernel, 2, seed, nullptr, 1).error.find("race: "),
              std::string::npos);
}

TEST(CPUSemaphore, deadlockSaysWhoWaitsForWhat) {
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (threadOf(t) == 2)
      await(t, wordsOf(args), 1 + blockOf(t), 5 + blockOf(t));
    lowlpCpuBarrier(t, "b");
  };
  for (uint64_t seed = 0; seed < 9; ++seed)
    EXPECT_EQ(run(kernel, 2, seed).error,
              "deadlock: no block can go on; block (0, 0, 0): thread (2, 0, 0) "
              "at lowlp.semaphore_acquire at t.mlir:3:1 waits for 5 at byte "
              "offset 4 of argument 'locks' (32 bytes), which holds 0; block "
              "(1, 0, 0): thread (2, 0, 0) at lowlp.semaphore_acquire at "
              "t.mlir:3:1 waits for 6 at byte offset 8 of argument 'locks' (32 "
              "bytes), which holds 0");
}

TEST(CPUSemaphore, waitingForABlockThatCannotStart) {
  // 40 blocks wait for the last one.
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) == lowlpCpuGridDim(t, 0) - 1)
      release(t, wordsOf(args), 0, 1);
    else
      await(t, wordsOf(args), 0, 1);
  };
  expectReport(kernel, 60,
               {"deadlock: no block can go on; block (",
                "and 15 more blocks; "
                "37 of 60 blocks have not started: a block may only wait for "
                "blocks of lower index"});
  expectReport(kernel, 16, {}); // these all fit
}

TEST(CPUSemaphore, errorsComeBeforeTheWaitsTheyCause) {
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) == 3)
      lowlpCpuAssert(t, 0, "bad", siteA);
    await(t, wordsOf(args), 0, 1);
  };
  expectReport(kernel, 8, {"lowlp.a at t.mlir:1:1: bad; block (3, 0, 0)"});
}

TEST(CPUSemaphore, whoWaitsBurnsNoTime) {
  // Block 0 takes a while on its worker; the other worker has nothing to do.
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    if (blockOf(t) == 0) {
      timespec pause = {0, 300 * 1000 * 1000};
      nanosleep(&pause, nullptr);
      release(t, wordsOf(args), 0, 1);
    }
    await(t, wordsOf(args), 0, 1);
  };
  std::vector<int32_t> x(8), words(8);
  Launcher launcher(kernel, 4, 1);
  launcher.workers = 2;
  launcher.pass(x, "x", true).pass(words, "locks", true);
  clock_t before = clock();
  ASSERT_TRUE(launcher.run().ok);
  EXPECT_LT(double(clock() - before) / CLOCKS_PER_SEC, 0.15);
}

TEST(CPUSemaphore, refusesWordsOutOfBounds) {
  LowlpKernelFn kernel = [](LowlpThread *t, void *const *args) {
    await(t, wordsOf(args), 8, 0);
  };
  expectReport(kernel, 1,
               {"lowlp.semaphore_acquire at t.mlir:3:1: atomic of 4 "
                "bytes at byte offset 32 of argument 'locks' (32 "
                "bytes) is outside the allocation"});
}

TEST(CPUAtomics, floatsAndCompareAndSwap) {
  struct Words {
    float f;
    uint16_t half, bhalf;
    uint32_t halves, bhalves, swapped, olds[3];
  };
  std::vector<Words> words(1);
  words[0] = {0.5f, 0x3c00, 0x3f80, 0x3c003800, 0x3f803f00, 4, {}};
  Launcher launcher(
      [](LowlpThread *t, void *const *args) {
        auto *w = pointerArg<Words>(args, 0);
        lowlpCpuAtomic(t, LowlpAtomicAddF32, w, 0, floatToBits(1.25f), "s");
        w->olds[0] = lowlpCpuAtomicAdd16(t, 0, w, 4, 0x4000, "s");
        w->olds[1] = lowlpCpuAtomicAdd16(t, 1, w, 6, 0x4000, "s");
        lowlpCpuAtomic(t, LowlpAtomicAddF16x2, w, 8, 0x3c003c00, "s");
        lowlpCpuAtomic(t, LowlpAtomicAddBF16x2, w, 12, 0x3f803f80, "s");
        lowlpCpuAtomicCas(t, w, 16, 5, 6, "s");
        w->olds[2] = lowlpCpuAtomicCas(t, w, 16, 4, 7, "s");
      },
      1, 1);
  LaunchReport report = launcher.pass(words, "w", true).run();
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(words[0].f, 1.75f);
  EXPECT_EQ(words[0].half, 0x4200);         // 1 + 2
  EXPECT_EQ(words[0].bhalf, 0x4040);        // 1 + 2
  EXPECT_EQ(words[0].halves, 0x40003e00u);  // 1 + 1, 0.5 + 1
  EXPECT_EQ(words[0].bhalves, 0x40003fc0u); // 1 + 1, 0.5 + 1
  EXPECT_EQ(words[0].swapped, 7u);
  EXPECT_EQ(words[0].olds[0], 0x3c00u);
  EXPECT_EQ(words[0].olds[1], 0x3f80u);
  EXPECT_EQ(words[0].olds[2], 4u);
}

TEST(CPUAtomics, floatsRoundToNearestEven) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float f16 = f16ToFloat(uint16_t(bits)), bf16 = bf16ToFloat(uint16_t(bits));
    if (f16 == f16)
      ASSERT_EQ(floatToF16(f16), bits);
    if (bf16 == bf16)
      ASSERT_EQ(floatToBF16(bf16), bits);
  }
  EXPECT_EQ(floatToF16(65519.0f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.0f), 0x7c00);
  EXPECT_EQ(floatToF16(0x1p-25f), 0x0000);   // a tie, to even
  EXPECT_EQ(floatToF16(0x1.8p-24f), 0x0002); // a tie, to even
  EXPECT_EQ(floatToF16(-0x1.1p-25f), 0x8001);
  EXPECT_EQ(floatToF16(1.0f + 0x1p-11f), 0x3c00); // a tie, to even
  EXPECT_EQ(floatToF16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(floatToBF16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(floatToBF16(1.0f + 0x3p-8f), 0x3f82);
}

} // namespace
