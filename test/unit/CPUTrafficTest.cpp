//===- CPUTrafficTest.cpp - Sectors and bank conflicts by op --------------===//

#include "CPULauncher.h"

#include <gtest/gtest.h>

using namespace lowlp::cpu;

namespace {

/// The counts of the only site of `kernel`, run on `numBlocks` blocks of
/// `numThreads` threads with 16 KiB of global memory and as much shared memory.
SiteTraffic measure(LowlpKernelFn kernel, int64_t numThreads,
                    int64_t numBlocks = 1) {
  std::vector<int32_t> x(4096);
  Launcher launcher(kernel, numBlocks, numThreads);
  launcher.sharedBytes = 16384;
  launcher.countsSites = true;
  launcher.checks = LowlpCheckBounds;
  LaunchReport report = launcher.pass(x, "x", false).run();
  EXPECT_TRUE(report.ok) << report.error;
  if (report.sites.size() != 1)
    ADD_FAILURE() << report.sites.size() << " sites";
  return report.sites.empty() ? SiteTraffic() : report.sites.front();
}

template <int strideBytes, int bytes>
void readGlobal(LowlpThread *thread, void *const *args) {
  lowlpCpuCheckAccess(thread, pointerArg<char>(args, 0),
                      lowlpCpuThreadId(thread, 0) * strideBytes, bytes, bytes,
                      0, "global");
}

template <int strideBytes, int bytes>
void readShared(LowlpThread *thread, void *const *) {
  lowlpCpuCheckAccess(thread, lowlpCpuSharedMemory(thread, 0),
                      lowlpCpuThreadId(thread, 0) * strideBytes, bytes, bytes,
                      0, "shared");
}

TEST(CPUTraffic, sectorsOfARequest) {
  SiteTraffic traffic = measure(readGlobal<4, 4>, 64, 3);
  EXPECT_EQ(traffic.site, "global");
  EXPECT_EQ(traffic.accesses, 192u);
  EXPECT_EQ(traffic.bytes, 768u);
  EXPECT_EQ(traffic.requests, 6u);
  EXPECT_EQ(traffic.sectors, 24u);
  EXPECT_EQ(measure(readGlobal<1, 1>, 32).sectors, 1u);
  EXPECT_EQ(measure(readGlobal<16, 16>, 32).sectors, 16u);
  EXPECT_EQ(measure(readGlobal<128, 4>, 32).sectors, 32u);
  EXPECT_EQ(measure(readGlobal<0, 4>, 32).sectors, 1u);
  EXPECT_EQ(measure(readGlobal<4, 4>, 32).extraPasses, 0u);
}

TEST(CPUTraffic, passesOfBanks) {
  // Words 1, 2, 32 and 33 apart: 1, 2, 32 and 1 words of a bank.
  EXPECT_EQ(measure(readShared<4, 4>, 32).extraPasses, 0u);
  EXPECT_EQ(measure(readShared<8, 4>, 32).extraPasses, 1u);
  EXPECT_EQ(measure(readShared<128, 4>, 32).extraPasses, 31u);
  EXPECT_EQ(measure(readShared<132, 4>, 32).extraPasses, 0u);
  EXPECT_EQ(measure(readShared<0, 4>, 32).extraPasses, 0u);
  // Lanes that read parts of one word do not conflict.
  EXPECT_EQ(measure(readShared<2, 2>, 32).extraPasses, 0u);
  // Four parts of 8 lanes, which hold 8 rows of 128 bytes, or 8 of 144.
  EXPECT_EQ(measure(readShared<16, 16>, 32).extraPasses, 0u);
  EXPECT_EQ(measure(readShared<128, 16>, 32).extraPasses, 4u * 7);
  EXPECT_EQ(measure(readShared<144, 16>, 32).extraPasses, 0u);
  EXPECT_EQ(measure(readShared<8, 8>, 32).extraPasses, 0u);
  EXPECT_EQ(measure(readShared<256, 8>, 32).extraPasses, 2u * 15);
  EXPECT_EQ(measure(readShared<4, 4>, 32).sectors, 0u);
}

TEST(CPUTraffic, requestsOfLoopsAndBranches) {
  SiteTraffic traffic = measure(
      [](LowlpThread *thread, void *const *args) {
        int64_t i = lowlpCpuThreadId(thread, 0);
        for (int64_t k = 0; k < 4; ++k)
          if (i < 48 && (k < 2 || i % 2))
            load(thread, pointerArg<int32_t>(args, 0), 64 * k + i, "l");
      },
      64);
  // Warp 0: two requests of all lanes, two of 16; warp 1: of 16 and of 8.
  EXPECT_EQ(traffic.requests, 8u);
  EXPECT_EQ(traffic.accesses, 2u * 48 + 2u * 24);
  EXPECT_EQ(traffic.sectors, 4u * 4 + 4u * 2);
}

TEST(CPUTraffic, isOffByDefaultAndNeedsBounds) {
  std::vector<int32_t> x(4096);
  Launcher launcher(readGlobal<4, 4>, 1, 32);
  EXPECT_TRUE(launcher.pass(x, "x", false).run().sites.empty());
  launcher.countsSites = true;
  launcher.checks = LowlpCheckNothing;
  EXPECT_EQ(launcher.run().error,
            "launch: counts by op need the check of bounds");
}

} // namespace
