//===- CPUReports.h - What a launch must report, under many seeds -*- C++ -*-=//

#ifndef LOWLP_TEST_UNIT_CPUREPORTS_H
#define LOWLP_TEST_UNIT_CPUREPORTS_H

#include "CPULauncher.h"

#include <gtest/gtest.h>

#include <string>

/// A kernel of one block and what must come of it.
struct ReportCase {
  const char *name;
  int64_t numThreads;
  /// Argument 0: "x", 1024 words, x[i] = i; argument 1: "y", 1024 words, zero.
  LowlpKernelFn kernel;
  /// Parts of the report, in this order; none: the program is correct.
  std::vector<std::string> parts;
  /// What `y` begins with, where the program is correct.
  std::vector<int32_t> wanted = {};
};

/// Runs the case under several seeds, and a correct one without checks as well.
inline void expectReport(const ReportCase &test) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    std::vector<int32_t> x(1024), y(1024);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = int32_t(i);
    Launcher launcher(test.kernel, 1, test.numThreads);
    launcher.sharedBytes = 8192;
    launcher.seed = seed;
    launcher.workers = 1;
    if (test.parts.empty() && seed % 4 == 3)
      launcher.checks = seed % 8 == 3 ? LowlpCheckNothing : LowlpCheckBounds;
    launcher.pass(x, "x", true).pass(y, "y", true);
    lowlp::cpu::LaunchReport report = launcher.run();
    EXPECT_EQ(report.ok, test.parts.empty())
        << test.name << ": " << report.error;
    size_t at = 0;
    for (const std::string &part : test.parts) {
      at = report.error.find(part, at);
      ASSERT_NE(at, std::string::npos)
          << test.name << ": '" << part << "' is not in: " << report.error;
    }
    for (size_t i = 0; report.ok && i < test.wanted.size(); ++i)
      ASSERT_EQ(y[i], test.wanted[i]) << test.name << ", y[" << i << "]";
  }
}

inline lowlp::cpu::LaunchReport runBlock(LowlpKernelFn kernel,
                                         int64_t numThreads, uint64_t seed) {
  Launcher launcher(kernel, 1, numThreads);
  launcher.seed = seed;
  return launcher.run();
}

/// Expects that `kernel` fails under several seeds with a text that contains
/// every one of `parts`.
inline void expectError(LowlpKernelFn kernel, int64_t numThreads,
                        std::vector<std::string> parts) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    lowlp::cpu::LaunchReport report = runBlock(kernel, numThreads, seed);
    EXPECT_FALSE(report.ok);
    for (const std::string &part : parts)
      EXPECT_NE(report.error.find(part), std::string::npos)
          << "'" << part << "' is not in: " << report.error;
  }
}

inline int32_t *sharedWords(LowlpThread *thread) {
  return static_cast<int32_t *>(lowlpCpuSharedMemory(thread, 0));
}

#endif // LOWLP_TEST_UNIT_CPUREPORTS_H
