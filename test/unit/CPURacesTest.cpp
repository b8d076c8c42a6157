//===- CPURacesTest.cpp - Races and reads of what nothing wrote -----------===//

#include "CPULauncher.h"

#include <gtest/gtest.h>

#include <random>

using namespace lowlp::cpu;

namespace {

const char *const siteA = "lowlp.a at t.mlir:1:1";
const char *const siteB = "lowlp.b at t.mlir:2:1";

int32_t *shared(LowlpThread *thread) {
  return static_cast<int32_t *>(lowlpCpuSharedMemory(thread, 0));
}

struct Case {
  const char *name;
  int64_t numBlocks;
  LowlpKernelFn kernel; ///< argument 0: "x", 1024 words, writable
  /// Parts of the report, in this order; none: the program is correct.
  std::vector<std::string> parts;
  bool initialised = true;
};

/// Runs `test` under several seeds, with one worker and with two.
void expectReport(const Case &test) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    std::vector<int32_t> x(1024);
    Launcher launcher(test.kernel, test.numBlocks, 64);
    launcher.sharedBytes = 1024;
    launcher.seed = seed;
    launcher.workers = 1 + int(seed % 2);
    launcher.pass(x, "x", true);
    launcher.allocations.back().initialised = test.initialised;
    LaunchReport report = launcher.run();
    EXPECT_EQ(report.ok, test.parts.empty()) << test.name << report.error;
    size_t at = 0;
    for (const std::string &part : test.parts) {
      at = report.error.find(part, at);
      ASSERT_NE(at, std::string::npos)
          << test.name << ": '" << part << "' is not in: " << report.error;
    }
  }
}

TEST(CPURaces, withinABlock) {
  const Case cases[] = {
      {"store and load with a barrier between",
       1,
       [](LowlpThread *t, void *const *) {
         int64_t i = lowlpCpuThreadId(t, 0);
         store(t, shared(t), i, 1, siteA);
         lowlpCpuBarrier(t, "b");
         load(t, shared(t), 63 - i, siteB);
       },
       {}},
      {"read by all, a barrier, then changed by one",
       1,
       [](LowlpThread *t, void *const *args) {
         int32_t *x = pointerArg<int32_t>(args, 0);
         load(t, x, 0, siteA);
         lowlpCpuBarrier(t, "b");
         if (lowlpCpuThreadId(t, 0) == 9)
           store(t, x, 0, load(t, x, 0, siteA) + 1, siteB);
       },
       {}},
      {"store and load without",
       1,
       [](LowlpThread *t, void *const *) {
         int64_t i = lowlpCpuThreadId(t, 0);
         store(t, shared(t), i, 1, siteA);
         lowlpCpuBarrier(t, "b");
         store(t, shared(t), i, 1, siteA);
         load(t, shared(t), 63 - i, siteB);
       },
       {"race: ", " of 4 bytes at byte offset ",
        " of shared memory (1024 bytes) and the ", " by thread (",
        " have no barrier between them; block (0, 0, 0), thread ("}},
      {"a collective of the warp is no barrier",
       1,
       [](LowlpThread *t, void *const *) {
         int64_t i = lowlpCpuThreadId(t, 0);
         store(t, shared(t), i, 1, siteA);
         lowlpCpuShuffle(t, LowlpShuffleIdx, 0, 0, 31, UINT32_MAX, nullptr,
                         "s");
         load(t, shared(t), i ^ 1, siteB);
       },
       {"lowlp.b at t.mlir:2:1: race: read of 4 bytes at byte offset ",
        " and the write by thread (",
        ") at lowlp.a at t.mlir:1:1 have no barrier between them"}},
      {"the same value twice",
       1,
       [](LowlpThread *t, void *const *) { store(t, shared(t), 3, 7, siteA); },
       {"race: write of 4 bytes at byte offset 12 of shared memory",
        "and the write by thread ("}},
      {"neighbouring bytes",
       1,
       [](LowlpThread *t, void *const *) {
         auto *bytes = reinterpret_cast<int8_t *>(shared(t));
         int64_t i = lowlpCpuThreadId(t, 0);
         store(t, bytes, i, int8_t(1), siteA);
         load(t, bytes, i, siteA);
       },
       {}},
      {"a wide access over a narrow one",
       1,
       [](LowlpThread *t, void *const *args) {
         auto *bytes = reinterpret_cast<int8_t *>(pointerArg<int32_t>(args, 0));
         int64_t i = lowlpCpuThreadId(t, 0);
         if (i == 40)
           lowlpCpuCheckAccess(t, bytes, 16, 16, 16, 0, siteA);
         if (i == 7)
           store(t, bytes, 21, int8_t(0), siteB);
       },
       {" at byte offset ", "of argument 'x' (4096 bytes)"}},
      {"atomics among themselves",
       1,
       [](LowlpThread *t, void *const *args) {
         lowlpCpuAtomic(t, LowlpAtomicAdd, pointerArg<int32_t>(args, 0), 4, 1,
                        siteA);
       },
       {}},
      {"an atomic and a plain read",
       1,
       [](LowlpThread *t, void *const *args) {
         int32_t *x = pointerArg<int32_t>(args, 0);
         lowlpCpuAtomic(t, LowlpAtomicAdd, x, 4, 1, siteA);
         if (lowlpCpuThreadId(t, 0) == 9)
           load(t, x, 1, siteB);
       },
       {"race: ", " of 4 bytes at byte offset 4 of argument 'x'",
        "have no barrier between them"}},
  };
  for (const Case &test : cases)
    expectReport(test);
}

TEST(CPURaces, betweenBlocks) {
  const Case cases[] = {
      {"tiles of their own",
       4,
       [](LowlpThread *t, void *const *args) {
         store(t, pointerArg<int32_t>(args, 0), globalIndex(t), 1, siteA);
       },
       {}},
      {"the same tile",
       2,
       [](LowlpThread *t, void *const *args) {
         store(t, pointerArg<int32_t>(args, 0), lowlpCpuThreadId(t, 0), 1,
               siteA);
       },
       {"lowlp.a at t.mlir:1:1: race: write of 4 bytes at byte offset ",
        " of argument 'x' (4096 bytes) and the write by block (", "thread (",
        ") at lowlp.a at t.mlir:1:1 have no order, as blocks run in any; "
        "block ("}},
      {"a barrier orders no other block",
       2,
       [](LowlpThread *t, void *const *args) {
         int32_t *x = pointerArg<int32_t>(args, 0);
         if (globalIndex(t) == 0)
           store(t, x, 5, 1, siteA);
         lowlpCpuBarrier(t, "b");
         if (globalIndex(t) == 64)
           load(t, x, 5, siteB);
       },
       {" at byte offset 20 of argument 'x' (4096 bytes) and the ",
        " by block ("}},
      {"reads of all",
       4,
       [](LowlpThread *t, void *const *args) {
         load(t, pointerArg<int32_t>(args, 0), 5, siteA);
       },
       {}},
      {"atomics of all",
       4,
       [](LowlpThread *t, void *const *args) {
         lowlpCpuAtomic(t, LowlpAtomicOr, pointerArg<int32_t>(args, 0), 0,
                        uint32_t(globalIndex(t)), siteA);
       },
       {}},
      {"an atomic and a plain write",
       2,
       [](LowlpThread *t, void *const *args) {
         int32_t *x = pointerArg<int32_t>(args, 0);
         if (globalIndex(t) == 1)
           lowlpCpuAtomic(t, LowlpAtomicOr, x, 0, 1, siteA);
         if (globalIndex(t) == 65)
           store(t, x, 0, 1, siteB);
       },
       {"race: ", "the ", "have no order"}},
      {"shared memory of each block",
       4,
       [](LowlpThread *t, void *const *) {
         store(t, shared(t), lowlpCpuThreadId(t, 0), 1, siteA);
       },
       {}},
  };
  for (const Case &test : cases)
    expectReport(test);
}

TEST(CPURaces, uninitialisedReads) {
  const LowlpKernelFn readSum = [](LowlpThread *t, void *const *args) {
    int32_t *x = pointerArg<int32_t>(args, 0);
    store(t, x, globalIndex(t), 2 * load(t, x, globalIndex(t), siteA), siteB);
  };
  const Case cases[] = {
      {"shared memory that the thread wrote",
       2,
       [](LowlpThread *t, void *const *) {
         store(t, shared(t), lowlpCpuThreadId(t, 0), 1, siteA);
         load(t, shared(t), lowlpCpuThreadId(t, 0), siteB);
       },
       {}},
      {"shared memory that another block wrote",
       2,
       [](LowlpThread *t, void *const *) {
         int64_t i = lowlpCpuThreadId(t, 0);
         if (lowlpCpuBlockId(t, 0) == 0)
           store(t, shared(t), i, 1, siteA);
         load(t, shared(t), i, siteB);
       },
       {"lowlp.b at t.mlir:2:1: uninitialised read: read of 4 bytes at byte "
        "offset ",
        " of shared memory (1024 bytes) uses bytes that nothing has written; "
        "block (1, 0, 0), thread ("}},
      {"an allocation with values", 1, readSum, {}},
      {"one without",
       1,
       readSum,
       {"uninitialised read", "argument 'x'"},
       false},
      {"half of what is read",
       1,
       [](LowlpThread *t, void *const *args) {
         int32_t *x = pointerArg<int32_t>(args, 0);
         if (globalIndex(t))
           return;
         store(t, x, 4, 1, siteA);
         lowlpCpuCheckAccess(t, x, 16, 8, 8, 0, siteB);
       },
       {"read of 8 bytes at byte offset 16 of argument 'x' (4096 bytes), from "
        "byte offset 20 on, uses bytes"},
       false},
      {"fields set by atomics",
       2,
       [](LowlpThread *t, void *const *args) {
         int32_t *x = pointerArg<int32_t>(args, 0);
         uint32_t bit = 1u << lowlpCpuThreadId(t, 0) % 32;
         lowlpCpuAtomic(t, LowlpAtomicAnd, x, 0, ~bit, siteA);
         lowlpCpuAtomic(t, LowlpAtomicOr, x, 0, bit, siteB);
       },
       {},
       false},
      {"a sum by atomics that starts nowhere",
       2,
       [](LowlpThread *t, void *const *args) {
         lowlpCpuAtomic(t, LowlpAtomicAdd, pointerArg<int32_t>(args, 0), 0, 1,
                        siteA);
       },
       {"uninitialised read: atomic of 4 bytes"},
       false},
  };
  for (const Case &test : cases)
    expectReport(test);
}

TEST(CPURaces, aliasesShareTheirHistory) {
  std::vector<int32_t> x(64);
  Launcher launcher(
      [](LowlpThread *t, void *const *args) {
        if (lowlpCpuThreadId(t, 0) == 0)
          store(t, pointerArg<int32_t>(args, 1), 3, 1, siteA);
        else
          load(t, pointerArg<int32_t>(args, 0), 3, siteB);
      },
      1, 2);
  launcher.pass(x, "in", false).pass(x, "out", true);
  EXPECT_NE(launcher.run().error.find("race: "), std::string::npos);
}

TEST(CPURaces, theFirstBlockComesBackAfterAnother) {
  // Block 0 reads, then block 1, then block 0 writes; the flag orders nothing,
  // but makes it happen so. Each block has a worker.
  std::vector<int32_t> x(16);
  Launcher launcher(
      [](LowlpThread *t, void *const *args) {
        int32_t *x = pointerArg<int32_t>(args, 0);
        auto turn = uint32_t(lowlpCpuBlockId(t, 0));
        auto readFlag = [&] {
          return lowlpCpuAtomic(t, LowlpAtomicOr, x, 0, 0, "f");
        };
        while (readFlag() != turn) {
        }
        load(t, x, 8, siteA);
        lowlpCpuAtomic(t, LowlpAtomicAdd, x, 0, 1, "f");
        while (turn == 0 && readFlag() != 2) {
        }
        if (turn == 0)
          store(t, x, 8, 1, siteB);
      },
      2, 1);
  launcher.workers = 2;
  LaunchReport report = launcher.pass(x, "x", true).run();
  EXPECT_EQ(report.error,
            "lowlp.b at t.mlir:2:1: race: write of 4 bytes at byte offset 32 "
            "of argument 'x' (64 bytes) and the read by block (1, 0, 0), "
            "thread (0, 0, 0) at lowlp.a at t.mlir:1:1 have no order, as "
            "blocks run in any; block (0, 0, 0), thread (0, 0, 0)");
}

TEST(CPURaces, eachCheckIsSwitchedByItself) {
  std::vector<int32_t> x(64);
  Launcher launcher(
      [](LowlpThread *t, void *const *args) {
        int32_t *x = pointerArg<int32_t>(args, 0);
        store(t, x, 0, load(t, x, 0, siteA), siteB);
      },
      1, 2);
  launcher.pass(x, "x", true).allocations.back().initialised = false;
  launcher.checks = LowlpCheckBounds;
  EXPECT_TRUE(launcher.run().ok);
  launcher.checks = LowlpCheckRaces;
  EXPECT_NE(launcher.run().error.find("race: "), std::string::npos);
  launcher.checks = LowlpCheckUninitialised;
  EXPECT_NE(launcher.run().error.find("uninitialised"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Random programs, against a comparison of all pairs of accesses
//===----------------------------------------------------------------------===//

struct RandomAccess {
  int block, thread, epoch;
  int kind; ///< 0: read, 1: write, 2: atomic
  int byteOffset, bytes;
};

using Program = std::vector<RandomAccess>;

bool races(const RandomAccess &a, const RandomAccess &b) {
  if (a.block == b.block && (a.thread == b.thread || a.epoch != b.epoch))
    return false;
  bool overlap = a.byteOffset < b.byteOffset + b.bytes &&
                 b.byteOffset < a.byteOffset + a.bytes;
  return overlap && (a.kind == 1 || a.kind != b.kind);
}

bool hasRace(const Program &program) {
  for (const RandomAccess &a : program)
    for (const RandomAccess &b : program)
      if (races(a, b))
        return true;
  return false;
}

constexpr int numEpochs = 3;
constexpr int yieldOffset = 60; ///< beyond what the programs touch

void runProgram(LowlpThread *thread, void *const *args) {
  auto *x = pointerArg<int32_t>(args, 0);
  const auto &program = *static_cast<const Program *>(args[1]);
  for (int epoch = 0; epoch < numEpochs; ++epoch) {
    if (epoch)
      lowlpCpuBarrier(thread, "b");
    for (const RandomAccess &a : program) {
      if (a.block != lowlpCpuBlockId(thread, 0) || a.epoch != epoch ||
          a.thread != lowlpCpuThreadId(thread, 0))
        continue;
      // Lets the other threads of the block go first, or not.
      lowlpCpuAtomic(thread, LowlpAtomicAdd, x, yieldOffset, 1, "y");
      if (a.kind == 2)
        lowlpCpuAtomic(thread, LowlpAtomicAdd, x, a.byteOffset, 1, siteA);
      else
        lowlpCpuCheckAccess(thread, x, a.byteOffset, a.bytes, a.bytes, a.kind,
                            siteB);
    }
  }
}

TEST(CPURaces, randomProgramsAgainstAllPairs) {
  std::mt19937 random(1);
  auto below = [&](int bound) { return int(random() % unsigned(bound)); };
  int numRacy = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Program program;
    int numBlocks = 1 + below(3), mostlyKind = below(3);
    for (int i = 2 + below(7); i > 0; --i) {
      int kind = below(3) ? mostlyKind : below(3);
      int bytes = kind == 2 ? 4 : 1 << below(5);
      program.push_back({below(numBlocks), below(3), below(numEpochs), kind,
                         bytes * below(32 / bytes), bytes});
    }
    bool expected = hasRace(program);
    numRacy += expected;
    std::vector<int32_t> x(16);
    Launcher launcher(runProgram, numBlocks, 3);
    launcher.pass(x, "x", true).passScalar(program);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      launcher.seed = seed;
      launcher.workers = seed == 3 ? 2 : 1;
      LaunchReport report = launcher.run();
      ASSERT_EQ(report.ok, !expected) << "trial " << trial << report.error;
    }
  }
  EXPECT_GT(numRacy, 500);
  EXPECT_LT(numRacy, 2500);
}

} // namespace
