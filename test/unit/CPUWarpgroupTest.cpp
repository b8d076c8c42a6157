//===- CPUWarpgroupTest.cpp - Barriers of warpgroups ----------------------===//

#include "CPUReports.h"

using namespace lowlp::cpu;

namespace {

const char *const siteA = "lowlp.a at t.mlir:1:1";
const char *const siteB = "lowlp.b at t.mlir:2:1";

/// Each warpgroup turns its 128 numbers around; or, `across`, the block's.
template <bool across> void turnAround(LowlpThread *thread, void *const *args) {
  int64_t i = lowlpCpuThreadId(thread, 0), group = i / 128 * 128;
  int32_t *shared = sharedWords(thread);
  lowlpCpuTrackOrder(thread);
  store(thread, shared, i, int32_t(i), "s");
  lowlpCpuWarpgroupBarrier(thread, siteA);
  int64_t other = across ? 255 - i : group + 127 - (i - group);
  store(thread, pointerArg<int32_t>(args, 0), i,
        load(thread, shared, other, "l"), "s");
}

TEST(CPUWarpgroup, warpgroupsDoNotWaitForEachOther) {
  std::vector<int32_t> out(256);
  Launcher launcher(turnAround<false>, 1, 256);
  launcher.sharedBytes = 256 * 4;
  launcher.pass(out, "out", true);
  launcher.checks = LowlpCheckRaces;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    launcher.seed = seed;
    LaunchReport report = launcher.run();
    ASSERT_TRUE(report.ok) << report.error;
    for (int i = 0; i < 256; ++i)
      ASSERT_EQ(out[i], i / 128 * 128 + 127 - i % 128);
  }
  launcher.kernel = turnAround<true>;
  LaunchReport report = launcher.run();
  ASSERT_FALSE(report.ok);
  EXPECT_NE(report.error.find("no barrier between them"), std::string::npos)
      << report.error;
}

TEST(CPUWarpgroup, reportsAWarpThatItsWarpgroupWaitsFor) {
  expectError(
      [](LowlpThread *thread, void *const *) {
        if (lowlpCpuThreadId(thread, 0) / 32 == 1)
          lowlpCpuBarrier(thread, siteB);
        else
          lowlpCpuWarpgroupBarrier(thread, siteA);
      },
      128, {"the four warps of a warpgroup come here together", siteA, siteB});
  expectError(
      [](LowlpThread *thread, void *const *) {
        if (lowlpCpuThreadId(thread, 0) / 32 != 1)
          lowlpCpuWarpgroupBarrier(thread, siteA);
      },
      128, {"exited without coming here", siteA});
  expectError([](LowlpThread *thread,
                 void *const *) { lowlpCpuWarpgroupBarrier(thread, siteA); },
              64, {"warpgroups of 128 threads", siteA});
}

} // namespace
