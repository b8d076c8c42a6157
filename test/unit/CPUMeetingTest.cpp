//===- CPUMeetingTest.cpp - Barriers, mma, shuffles, divergence -----------===//

#include "CPUReports.h"

#include "lowlp/CPU/HalfFloat.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace lowlp::cpu;

namespace {

const char *const siteA = "lowlp.a at t.mlir:1:1";
const char *const siteB = "lowlp.b at t.mlir:2:1";
const char *const siteC = "lowlp.c at t.mlir:3:1";
constexpr uint32_t all = UINT32_MAX;

uint32_t shuffle(LowlpThread *thread, uint32_t members, const char *site) {
  return lowlpCpuShuffle(thread, LowlpShuffleIdx, 0,
                         uint32_t(lowlpCpuThreadId(thread, 0)), 31, members,
                         nullptr, site);
}

TEST(CPUMeeting, barrierOrdersSharedMemory) {
  std::vector<int32_t> out(4 * 96);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        auto *shared = static_cast<int32_t *>(lowlpCpuSharedMemory(thread, 0));
        int64_t i = lowlpCpuThreadId(thread, 0);
        for (int32_t round = 0; round < 3; ++round) {
          store(thread, shared, i, int32_t(i) + round, "s");
          lowlpCpuBarrier(thread, siteA);
          int32_t reversed = load(thread, shared, 95 - i, "l");
          store(thread, pointerArg<int32_t>(args, 0), globalIndex(thread),
                reversed, "s");
          lowlpCpuBarrier(thread, siteB);
        }
      },
      4, 96);
  launcher.sharedBytes = 96 * 4;
  launcher.pass(out, "out", true);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    launcher.seed = seed;
    LaunchReport report = launcher.run();
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.barriers, 4u * 6);
    for (int i = 0; i < int(out.size()); ++i)
      ASSERT_EQ(out[i], 95 - i % 96 + 2);
  }
}

/// Threads from 32 on leave; the others meet without them, before and after.
void leaveAndMeet(LowlpThread *thread, void *const *args) {
  int64_t i = lowlpCpuThreadId(thread, 0);
  if (i >= 32) {
    lowlpCpuLeaveBarriers(thread);
    return;
  }
  auto *shared = static_cast<int32_t *>(lowlpCpuSharedMemory(thread, 0));
  store(thread, shared, i, int32_t(i), "s");
  lowlpCpuBarrier(thread, siteA);
  int32_t reversed = load(thread, shared, 31 - i, "l");
  lowlpCpuBarrier(thread, siteB);
  store(thread, pointerArg<int32_t>(args, 0), i, reversed, "s");
}

TEST(CPUMeeting, threadsThatHaveLeftAreNotWaitedFor) {
  std::vector<int32_t> out(32);
  Launcher launcher(leaveAndMeet, 1, 64);
  launcher.sharedBytes = 32 * 4;
  launcher.pass(out, "out", true);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    launcher.seed = seed;
    LaunchReport report = launcher.run();
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.barriers, 2u);
    for (int i = 0; i < 32; ++i)
      ASSERT_EQ(out[i], 31 - i);
  }
}

TEST(CPUMeeting, leavingDoesNotExcuseTheOthers) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        if (lowlpCpuThreadId(thread, 0) >= 32)
          lowlpCpuLeaveBarriers(thread);
        else if (lowlpCpuThreadId(thread, 0) != 5)
          lowlpCpuBarrier(thread, siteA);
      },
      64, {"thread (5, 0, 0)", siteA});
}

TEST(CPUMeeting, reportsBarriersThatDiffer) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        lowlpCpuBarrier(thread,
                        lowlpCpuThreadId(thread, 0) < 40 ? siteA : siteB);
      },
      64, {"divergent barrier", "threads wait: thread (", siteA, siteB});
}

TEST(CPUMeeting, reportsBarrierThatAThreadMisses) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        if (lowlpCpuThreadId(thread, 0) != 5)
          lowlpCpuBarrier(thread, siteA);
      },
      64,
      {std::string(siteA) + ": divergent barrier: thread (5, 0, 0) exited "
                            "without coming here; ",
       "; block (0, 0, 0), thread (5, 0, 0)"});
}

TEST(CPUMeeting, reportsDeadlock) {
  // Lane 0 waits for 1, 1 for 2 and 2 for 0: no two of them for each other.
  expectError(
      [](LowlpThread *thread, void *const *) {
        switch (lowlpCpuThreadId(thread, 0)) {
        case 0:
          shuffle(thread, 0b011, siteA);
          break;
        case 1:
          shuffle(thread, 0b110, siteB);
          break;
        case 2:
          shuffle(thread, 0b101, siteC);
          break;
        }
      },
      4,
      {"deadlock: no thread of block (0, 0, 0) can go on; 3 threads wait: "
       "thread (0, 0, 0) at lowlp.a at t.mlir:1:1 (members 0x00000003), "
       "thread (1, 0, 0) at lowlp.b at t.mlir:2:1 (members 0x00000006), "
       "thread (2, 0, 0) at lowlp.c at t.mlir:3:1 (members 0x00000005)"});
}

/// Random operands of the mma of one warp, and the product in double.
struct MmaCase {
  explicit MmaCase(uint32_t seed, bool isBF16) : a(256), b(128), c(128) {
    std::mt19937 random(seed);
    auto draw = [&] {
      // Exponents near 1, so that no sum drowns in another.
      uint32_t bits = random();
      return uint16_t(isBF16 ? (bits & 0x80ff) | (0x3e80 + (bits >> 8 & 0x100))
                             : (bits & 0x83ff) | (0x3000 + (bits & 0x0c00)));
    };
    for (uint16_t &value : a)
      value = draw();
    for (uint16_t &value : b)
      value = draw();
    for (float &value : c)
      value = std::ldexp(float(int32_t(random())), -31);
    auto toFloat = isBF16 ? bf16ToFloat : f16ToFloat;
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n) {
        double sum = c[m * 8 + n];
        for (int k = 0; k < 16; ++k)
          sum += double(toFloat(a[m * 16 + k])) * toFloat(b[k * 8 + n]);
        expected.push_back(float(sum));
      }
  }
  std::vector<uint16_t> a, b; ///< row-major 16x16 and 16x8
  std::vector<float> c, expected;
};

/// D = A B + C on row-major matrices, where the fragments are written down from
/// the figures of the PTX ISA: row and column of each of a lane's values.
template <int32_t kind> void mmaKernel(LowlpThread *thread, void *const *args) {
  auto lane = int(lowlpCpuThreadId(thread, 0) % 32);
  int g = lane >> 2, t = lane % 4;
  const int aRow[] = {g, g, g + 8, g + 8, g, g, g + 8, g + 8};
  const int aCol[] = {2 * t,     2 * t + 1, 2 * t,     2 * t + 1,
                      2 * t + 8, 2 * t + 9, 2 * t + 8, 2 * t + 9};
  const int bRow[] = {2 * t, 2 * t + 1, 2 * t + 8, 2 * t + 9};
  const int cRow[] = {g, g, g + 8, g + 8};
  const int cCol[] = {2 * t, 2 * t + 1, 2 * t, 2 * t + 1};
  uint16_t a[8], b[4];
  float acc[4];
  for (int i = 0; i < 8; ++i)
    a[i] = pointerArg<uint16_t>(args, 0)[aRow[i] * 16 + aCol[i]];
  for (int i = 0; i < 4; ++i)
    b[i] = pointerArg<uint16_t>(args, 1)[bRow[i] * 8 + g];
  for (int i = 0; i < 4; ++i)
    acc[i] = pointerArg<float>(args, 2)[cRow[i] * 8 + cCol[i]];
  lowlpCpuMma(thread, kind, a, b, acc, acc, siteA);
  float *d =
      pointerArg<float>(args, 3) + lowlpCpuThreadId(thread, 0) / 32 * 128;
  for (int i = 0; i < 4; ++i)
    d[cRow[i] * 8 + cCol[i]] = acc[i];
}

void checkMma(LowlpKernelFn kernel, bool isBF16) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    MmaCase data(seed, isBF16);
    std::vector<float> d(256);
    Launcher launcher(kernel, 1, 64);
    launcher.seed = seed;
    launcher.pass(data.a, "a", false).pass(data.b, "b", false);
    launcher.pass(data.c, "c", false).pass(d, "d", true);
    LaunchReport report = launcher.run();
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.mmas, 2u);
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(d[i], data.expected[i % 128]) << "element " << i % 128;
  }
}

TEST(CPUMeeting, mmaOfF16MatchesDouble) {
  checkMma(mmaKernel<LowlpMmaM16N8K16F16>, false);
}

TEST(CPUMeeting, mmaOfBF16MatchesDouble) {
  checkMma(mmaKernel<LowlpMmaM16N8K16BF16>, true);
}

TEST(CPUMeeting, mmaFollowsIEEE) {
  std::vector<float> d(128, 7);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        auto lane = lowlpCpuThreadId(thread, 0);
        // Row 0 of A starts with infinity, row 8 with the least subnormal.
        uint16_t a[8] = {}, b[4] = {};
        a[0] = lane == 0 ? 0x7c00 : 0;
        a[2] = lane == 0 ? 0x0001 : 0;
        // B's row 0 is 1 in column 0, 0 in column 1, and -1 in column 2.
        b[0] = lane == 0 ? 0x3c00 : lane == 8 ? 0xbc00 : 0;
        const float c[4] = {0, 0, 0, 0};
        lowlpCpuMma(thread, LowlpMmaM16N8K16F16, a, b, c,
                    pointerArg<float>(args, 0) + 4 * lane, siteA);
      },
      1, 32);
  LaunchReport report = launcher.pass(d, "d", true).run();
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(d[0], INFINITY);               // row 0, column 0
  EXPECT_TRUE(std::isnan(d[1]));           // row 0, column 1: inf * 0
  EXPECT_EQ(d[4], -INFINITY);              // row 0, column 2, in lane 1
  EXPECT_EQ(d[2], std::ldexp(1.0f, -24));  // row 8, column 0
  EXPECT_EQ(d[6], -std::ldexp(1.0f, -24)); // row 8, column 2
  EXPECT_EQ(d[16], 0);                     // row 1, column 0
}

void mma(LowlpThread *thread, const char *site) {
  uint16_t a[8] = {}, b[4] = {};
  float c[4] = {};
  lowlpCpuMma(thread, LowlpMmaM16N8K16BF16, a, b, c, c, site);
}

TEST(CPUMeeting, reportsMmaWithDivergentLanes) {
  LowlpKernelFn kernel = [](LowlpThread *thread, void *const *) {
    int64_t lane = lowlpCpuThreadId(thread, 0);
    mma(thread, lane < 40 || lane >= 60 ? siteA : siteB);
  };
  expectError(kernel, 64,
              {"divergent collective: in warp 1, ", "came here while lane",
               siteA, siteB});
  expectError(
      [](LowlpThread *thread, void *const *) {
        if (lowlpCpuThreadId(thread, 0) < 31)
          mma(thread, siteA);
        else
          lowlpCpuBarrier(thread, siteB);
      },
      32, {"divergent ", "in warp 0, ", "lane", "31", siteA, siteB});
}

TEST(CPUMeeting, namesTheLanesThatDiverge) {
  // Lane 0 polls for the others, so that it is the last to arrive.
  std::vector<uint32_t> arrived(1);
  Launcher launcher(
      [](LowlpThread *thread, void *const *args) {
        void *arrived = pointerArg<void>(args, 0);
        if (lowlpCpuThreadId(thread, 0) != 0) {
          lowlpCpuAtomic(thread, LowlpAtomicAdd, arrived, 0, 1, "a");
          mma(thread, siteA);
        }
        while (lowlpCpuAtomic(thread, LowlpAtomicAdd, arrived, 0, 0, "a") < 31)
          ;
        mma(thread, siteB);
      },
      1, 32);
  EXPECT_EQ(launcher.pass(arrived, "arrived", true).run().error,
            "lowlp.b at t.mlir:2:1: divergent collective: in warp 0, lane 0 "
            "came here while lanes 1-31 wait at lowlp.a at t.mlir:1:1; block "
            "(0, 0, 0), thread (0, 0, 0)");
}

TEST(CPUMeeting, reportsMmaThatALaneMisses) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        if (lowlpCpuThreadId(thread, 0) != 9)
          mma(thread, siteA);
      },
      32, {"divergent collective: thread (9, 0, 0) exited", siteA});
}

TEST(CPUMeeting, reportsMmaOfAPartialWarp) {
  expectError([](LowlpThread *thread, void *const *) { mma(thread, siteA); },
              16,
              {"mma takes a warp of 32 lanes, but the last warp of the block "
               "has 16"});
  expectError(
      [](LowlpThread *thread, void *const *) {
        lowlpCpuMma(thread, 12, nullptr, nullptr, nullptr, nullptr, siteA);
      },
      32, {"there is no mma of kind 12"});
}

struct ShuffleCase {
  int32_t mode;
  uint32_t operand;
  uint32_t clampAndMask;
  int sources[32];  ///< the lane whose value each lane gets
  uint32_t inRange; ///< the predicates, one bit a lane
};

// From the pseudo-code of shfl.sync in the PTX ISA, by hand. Segments of 8
// lanes have the segment mask 0b11000.
const ShuffleCase shuffleCases[] = {
    {LowlpShuffleUp,
     1,
     0,
     {0,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14,
      15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30},
     0xfffffffe},
    {LowlpShuffleUp,
     3,
     0x1800,
     {0,  1,  2,  0,  1,  2,  3,  4,  8,  9,  10, 8,  9,  10, 11, 12,
      16, 17, 18, 16, 17, 18, 19, 20, 24, 25, 26, 24, 25, 26, 27, 28},
     0xf8f8f8f8},
    {LowlpShuffleDown,
     2,
     0x1f,
     {2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
      18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 30, 31},
     0x3fffffff},
    {LowlpShuffleDown,
     4,
     0x181f,
     {4,  5,  6,  7,  4,  5,  6,  7,  12, 13, 14, 15, 12, 13, 14, 15,
      20, 21, 22, 23, 20, 21, 22, 23, 28, 29, 30, 31, 28, 29, 30, 31},
     0x0f0f0f0f},
    {LowlpShuffleBfly,
     5,
     0x1f,
     {5,  4,  7,  6,  1,  0,  3,  2,  13, 12, 15, 14, 9,  8,  11, 10,
      21, 20, 23, 22, 17, 16, 19, 18, 29, 28, 31, 30, 25, 24, 27, 26},
     0xffffffff},
    {LowlpShuffleBfly,
     8,
     0x180f,
     // Lanes may read lower segments, but not beyond the end of their own.
     {0,  1,  2,  3,  4,  5,  6,  7,  0,  1,  2,  3,  4,  5,  6,  7,
      16, 17, 18, 19, 20, 21, 22, 23, 16, 17, 18, 19, 20, 21, 22, 23},
     0xff00ff00},
    {LowlpShuffleIdx,
     3,
     0x181f,
     {3,  3,  3,  3,  3,  3,  3,  3,  11, 11, 11, 11, 11, 11, 11, 11,
      19, 19, 19, 19, 19, 19, 19, 19, 27, 27, 27, 27, 27, 27, 27, 27},
     0xffffffff},
    {LowlpShuffleIdx,
     20,
     0x0f, // beyond the clamp: every lane keeps its own
     {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
     0},
};

TEST(CPUMeeting, shufflesByTheTable) {
  for (const ShuffleCase &test : shuffleCases) {
    std::vector<ShuffleCase> in = {test};
    std::vector<uint32_t> out(64);
    Launcher launcher(
        [](LowlpThread *thread, void *const *args) {
          const auto *test = pointerArg<ShuffleCase>(args, 0);
          int64_t lane = lowlpCpuThreadId(thread, 0);
          uint32_t *out = pointerArg<uint32_t>(args, 1) + 2 * lane;
          int32_t pred = -1;
          out[0] = lowlpCpuShuffle(thread, test->mode, uint32_t(100 + lane),
                                   test->operand, test->clampAndMask, all,
                                   &pred, siteA);
          out[1] = uint32_t(pred);
        },
        1, 32);
    LaunchReport report =
        launcher.pass(in, "in", false).pass(out, "out", true).run();
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.shuffles, 1u);
    for (int lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(int(out[2 * lane]), 100 + test.sources[lane])
          << "case " << &test - shuffleCases << ", lane " << lane;
      EXPECT_EQ(out[2 * lane + 1], test.inRange >> lane & 1)
          << "case " << &test - shuffleCases << ", lane " << lane;
    }
  }
}

TEST(CPUMeeting, halfAWarpMayShuffleWhileTheOtherWaits) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    LaunchReport report = runBlock(
        [](LowlpThread *thread, void *const *) {
          if (lowlpCpuThreadId(thread, 0) % 32 < 16)
            for (int i = 0; i < 3; ++i)
              shuffle(thread, 0x0000ffff, siteA);
          shuffle(thread, all, siteB);
        },
        64, seed);
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(report.shuffles, 8u);
  }
}

TEST(CPUMeeting, partialWarpShufflesAmongItsLanes) {
  LowlpKernelFn kernel = [](LowlpThread *thread, void *const *) {
    shuffle(thread, all, siteA);
  };
  LaunchReport report = runBlock(kernel, 40, 1);
  EXPECT_TRUE(report.ok) << report.error;
}

TEST(CPUMeeting, reportsWrongShuffles) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        lowlpCpuShuffle(thread, LowlpShuffleIdx, 0, 20, 31, 0x0000ffff, nullptr,
                        siteA);
      },
      16, {": lane ", " reads lane 20, which takes no part in the shuffle"});
  expectError(
      [](LowlpThread *thread, void *const *) { shuffle(thread, 2, siteA); }, 1,
      {"the member mask leaves out its own lane 0"});
  expectError(
      [](LowlpThread *thread, void *const *) {
        lowlpCpuShuffle(thread, 4, 0, 0, 31, all, nullptr, siteA);
      },
      32, {"there is no shuffle of mode 4"});
  // Masks that differ at the same site never meet.
  expectError(
      [](LowlpThread *thread, void *const *) {
        shuffle(thread, lowlpCpuThreadId(thread, 0) == 3 ? 0x0000ffff : all,
                siteA);
      },
      32, {"divergent collective", "(members 0x0000ffff)"});
}

} // namespace
