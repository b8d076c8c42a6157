//===- CPURandomOrderTest.cpp - Random programs with semaphores -----------===//
//
// Programs of blocks that read, write and change a few bytes, meet at barriers,
// and wait for lower blocks, against a comparison of all pairs of accesses. A
// step is one thing that one thread does, or a barrier of its block.
//
//===----------------------------------------------------------------------===//

#include "CPULauncher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>

using namespace lowlp::cpu;

namespace {

enum class StepKind { Read, Write, Atomic, Barrier, Release, Acquire };

struct Step {
  int block, thread;
  StepKind kind;
  int at, bytes; ///< of an access; a semaphore's number is `at`

  bool isAccess() const { return kind <= StepKind::Atomic; }
};

using Program = std::vector<Step>; ///< in each block's order

constexpr int numBlocks = 3;
constexpr int numThreads = 2;
constexpr int numWords = 4;    ///< each released once, by block `word % 2`
constexpr int yieldBytes = 60; ///< beyond what the programs touch

/// Which steps come before which, by the definition.
std::vector<std::vector<bool>> order(const Program &program) {
  size_t size = program.size();
  std::vector<std::vector<bool>> before(size, std::vector<bool>(size));
  for (size_t i = 0; i < size; ++i)
    for (size_t j = 0; j < size; ++j) {
      const Step &a = program[i], &b = program[j];
      bool isBarrier =
          a.kind == StepKind::Barrier || b.kind == StepKind::Barrier;
      if (a.block == b.block)
        before[i][j] = i < j && (isBarrier || a.thread == b.thread);
      else
        before[i][j] = a.kind == StepKind::Release &&
                       b.kind == StepKind::Acquire && a.at == b.at;
    }
  for (size_t k = 0; k < size; ++k)
    for (size_t i = 0; i < size; ++i)
      for (size_t j = 0; j < size; ++j)
        if (before[i][k] && before[k][j])
          before[i][j] = true;
  return before;
}

bool hasRace(const Program &program) {
  std::vector<std::vector<bool>> before = order(program);
  for (size_t i = 0; i < program.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Step &a = program[i], &b = program[j];
      if (!a.isAccess() || !b.isAccess() || before[i][j] || before[j][i] ||
          (a.block == b.block && a.thread == b.thread))
        continue;
      bool overlap = a.at < b.at + b.bytes && b.at < a.at + a.bytes;
      if (overlap && (a.kind == StepKind::Write || a.kind != b.kind))
        return true;
    }
  return false;
}

void runProgram(LowlpThread *thread, void *const *args) {
  auto *x = pointerArg<int32_t>(args, 0), *words = pointerArg<int32_t>(args, 1);
  const auto &program = *static_cast<const Program *>(args[2]);
  for (const Step &step : program) {
    if (step.block != lowlpCpuBlockId(thread, 0))
      continue;
    if (step.kind == StepKind::Barrier) {
      lowlpCpuBarrier(thread, "b");
      continue;
    }
    if (step.thread != lowlpCpuThreadId(thread, 0))
      continue;
    // Lets the other threads of the block go first, or not.
    lowlpCpuAtomic(thread, LowlpAtomicAdd, x, yieldBytes, 1, "y");
    switch (step.kind) {
    case StepKind::Read:
    case StepKind::Write:
      lowlpCpuCheckAccess(thread, x, step.at, step.bytes, step.bytes,
                          step.kind == StepKind::Write, "s");
      break;
    case StepKind::Atomic:
      lowlpCpuAtomic(thread, LowlpAtomicAdd, x, step.at, 1, "a");
      break;
    case StepKind::Release:
      lowlpCpuRelease(thread, LowlpAtomicExch, words, 4 * step.at, 1, "r");
      break;
    case StepKind::Acquire:
      lowlpCpuAwait(thread, words, 4 * step.at, 1, "w");
      break;
    case StepKind::Barrier:
      break;
    }
  }
}

/// Blocks 0 and 1 release, 1 and 2 acquire what lower ones release.
Program makeProgram(std::mt19937 &random) {
  auto below = [&](int bound) { return int(random() % unsigned(bound)); };
  Program program;
  auto mostly = StepKind(below(3));
  for (int block = 0; block < numBlocks; ++block) {
    std::vector<Step> steps;
    for (int i = below(4); i >= 0; --i) {
      StepKind kind = below(3) ? mostly : StepKind(below(3));
      int bytes = kind == StepKind::Atomic ? 4 : 1 << below(4);
      steps.push_back(
          {block, below(numThreads), kind, bytes * below(32 / bytes), bytes});
    }
    for (int i = below(3); i > 0; --i)
      steps.push_back({block, 0, StepKind::Barrier, 0, 0});
    for (int word = 0; word < numWords; ++word) {
      int releaser = word % 2;
      if (block == releaser)
        steps.push_back({block, below(numThreads), StepKind::Release, word, 0});
      else if (block > releaser && below(2))
        steps.push_back({block, below(numThreads), StepKind::Acquire, word, 0});
    }
    std::shuffle(steps.begin(), steps.end(), random);
    // As it is meant to be, now and then.
    if (below(2)) {
      auto is = [](StepKind kind) {
        return [=](const Step &step) { return step.kind == kind; };
      };
      const Step barrier = {block, 0, StepKind::Barrier, 0, 0};
      auto acquired =
          std::partition(steps.begin(), steps.end(), is(StepKind::Acquire));
      acquired = steps.insert(acquired, barrier) + 1;
      auto released = std::partition(acquired, steps.end(),
                                     std::not_fn(is(StepKind::Release)));
      steps.insert(released, barrier);
    }
    program.insert(program.end(), steps.begin(), steps.end());
  }
  return program;
}

TEST(CPUSemaphore, randomProgramsAgainstAllPairs) {
  std::mt19937 random(7);
  int numRacy = 0, numSaved = 0;
  constexpr int numTrials = 4000;
  for (int trial = 0; trial < numTrials; ++trial) {
    Program program = makeProgram(random);
    bool expected = hasRace(program);
    numRacy += expected;
    Program alone;
    std::copy_if(
        program.begin(), program.end(), std::back_inserter(alone),
        [](const Step &step) { return step.kind < StepKind::Release; });
    numSaved += !expected && hasRace(alone);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      std::vector<int32_t> x(16), words(numWords);
      Launcher launcher(runProgram, numBlocks, numThreads);
      launcher.pass(x, "x", true).pass(words, "words", true);
      launcher.passScalar(program);
      launcher.seed = seed;
      launcher.workers = seed == 3 ? 2 : 1;
      LaunchReport report = launcher.run();
      ASSERT_EQ(report.ok, !expected)
          << "trial " << trial << ", seed " << seed << ": " << report.error;
    }
  }
  EXPECT_GT(numSaved, numTrials / 20) << "by semaphores alone";
  EXPECT_GT(numRacy, numTrials / 5);
  EXPECT_LT(numRacy, numTrials * 4 / 5);
}

} // namespace
