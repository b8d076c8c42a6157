//===- CPUMbarrierTest.cpp - mbarriers, bulk copies and what they order ---===//

#include "CPUReports.h"

#include <set>

namespace {

const char *const initSite = "lowlp.alloc_mbarriers at t.mlir:1:1";
const char *const arriveSite = "lowlp.mbarrier_arrive at t.mlir:2:1";
const char *const waitSite = "lowlp.mbarrier_wait at t.mlir:3:1";
const char *const copySite = "lowlp.copy_bulk at t.mlir:4:1";
const char *const loadSite = "lowlp.load_shared at t.mlir:5:1";
const char *const storeSite = "lowlp.store_shared at t.mlir:6:1";

constexpr int64_t barrierOffset = 4096;

char *barrierBase(LowlpThread *t) {
  return static_cast<char *>(lowlpCpuSharedMemory(t, barrierOffset));
}

/// Mbarriers that take `arrivals[i]` arrivals, and a barrier after.
void init(LowlpThread *t, std::initializer_list<int64_t> arrivals) {
  lowlpCpuTrackOrder(t);
  if (lowlpCpuThreadId(t, 0) == 0) {
    int64_t offset = 0;
    for (int64_t count : arrivals) {
      lowlpCpuMbarrierInit(t, barrierBase(t), offset, count, initSite);
      offset += 8;
    }
    lowlpCpuFenceMbarrierInit(t);
    store(t, sharedWords(t), 0, 0, storeSite);
  }
  lowlpCpuBarrier(t, "b");
}

void arrive(LowlpThread *t, int64_t barrier, int64_t bytes = 0) {
  lowlpCpuMbarrierArrive(t, barrierBase(t), 8 * barrier, bytes, arriveSite);
}

void wait(LowlpThread *t, int64_t barrier, int64_t parity) {
  lowlpCpuMbarrierWait(t, barrierBase(t), 8 * barrier, int32_t(parity),
                       waitSite);
}

/// Copies `words` words from x[`from`] to word `to` of shared memory.
void copy(LowlpThread *t, void *const *args, int64_t from, int64_t to,
          int64_t words, int64_t barrier) {
  lowlpCpuCopyBulk(t, pointerArg<int32_t>(args, 0), 4 * from, sharedWords(t),
                   4 * to, barrierBase(t), 8 * barrier, 4 * words, copySite);
}

void show(LowlpThread *t, void *const *args, int64_t from, int64_t to) {
  int32_t value = load(t, sharedWords(t), from, loadSite);
  store(t, pointerArg<int32_t>(args, 1), to, value, "y");
}

bool isFirst(LowlpThread *t) { return lowlpCpuThreadId(t, 0) == 0; }

TEST(CPUMbarrier, orders) {
  const ReportCase cases[] = {
      {"a store is seen after arrive and wait",
       3,
       [](LowlpThread *t, void *const *args) {
         init(t, {1});
         if (isFirst(t)) {
           store(t, sharedWords(t), 0, 42, storeSite);
           arrive(t, 0);
         } else {
           wait(t, 0, 0);
           show(t, args, 0, lowlpCpuThreadId(t, 0));
         }
       },
       {},
       {0, 42, 42}},
      {"the thread arrives before it stores",
       2,
       [](LowlpThread *t, void *const *args) {
         init(t, {1});
         if (isFirst(t)) {
           arrive(t, 0);
           store(t, sharedWords(t), 0, 42, storeSite);
         } else {
           wait(t, 0, 0);
           show(t, args, 0, 0);
         }
       },
       {"race: ", "have no barrier between them, nor does an mbarrier order"}},
      {"the thread does not wait",
       2,
       [](LowlpThread *t, void *const *args) {
         init(t, {1});
         if (isFirst(t)) {
           store(t, sharedWords(t), 0, 42, storeSite);
           arrive(t, 0);
         } else {
           show(t, args, 0, 0);
           wait(t, 0, 0);
         }
       },
       {"race: "}},
      {"order goes on from thread to thread",
       3,
       [](LowlpThread *t, void *const *args) {
         init(t, {1, 1});
         int64_t i = lowlpCpuThreadId(t, 0);
         if (i > 0)
           wait(t, i - 1, 0);
         store(t, sharedWords(t), 0, int32_t(i), storeSite);
         if (i < 2)
           arrive(t, i);
         else
           show(t, args, 0, 0);
       },
       {},
       {2}},
      {"not all readers have arrived",
       4,
       [](LowlpThread *t, void *const *) {
         init(t, {2});
         int64_t i = lowlpCpuThreadId(t, 0);
         if (i == 0) {
           wait(t, 0, 0);
           store(t, sharedWords(t), 0, 1, storeSite);
           return;
         }
         load(t, sharedWords(t), 0, loadSite);
         if (i < 3)
           arrive(t, 0);
       },
       {"race: "}},
      {"global memory too",
       2,
       [](LowlpThread *t, void *const *args) {
         init(t, {1});
         if (isFirst(t)) {
           store(t, pointerArg<int32_t>(args, 1), 1, 7, storeSite);
           arrive(t, 0);
         } else {
           wait(t, 0, 0);
           int32_t value = load(t, pointerArg<int32_t>(args, 1), 1, loadSite);
           store(t, pointerArg<int32_t>(args, 1), 0, value, storeSite);
         }
       },
       {},
       {7}},
      {"global memory, without a wait",
       2,
       [](LowlpThread *t, void *const *args) {
         init(t, {1});
         if (isFirst(t)) {
           store(t, pointerArg<int32_t>(args, 1), 1, 7, storeSite);
           arrive(t, 0);
         } else {
           load(t, pointerArg<int32_t>(args, 1), 1, loadSite);
         }
       },
       {"race: ", "argument 'y'"}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

TEST(CPUMbarrier, misuse) {
  const ReportCase cases[] = {
      {"no mbarrier there",
       1,
       [](LowlpThread *t, void *const *) { wait(t, 0, 0); },
       {waitSite, "there is no mbarrier at byte offset 4096 of shared memory: "
                  "nothing has initialised one"}},
      {"no barrier after the initialisation",
       2,
       [](LowlpThread *t, void *const *) {
         if (isFirst(t))
           lowlpCpuMbarrierInit(t, barrierBase(t), 0, 1, initSite);
         else
           arrive(t, 0);
       },
       {arriveSite}},
      {"initialised twice",
       1,
       [](LowlpThread *t, void *const *) {
         init(t, {1});
         init(t, {1});
       },
       {initSite, "the mbarrier at byte offset 4096 is initialised already"}},
      {"misaligned",
       1,
       [](LowlpThread *t, void *const *) {
         lowlpCpuMbarrierInit(t, barrierBase(t), 4, 1, initSite);
       },
       {initSite, "byte offset 4100 of shared memory", "misaligned"}},
      {"one arrival too many",
       1,
       [](LowlpThread *t, void *const *) {
         init(t, {1});
         arrive(t, 0, 64);
         arrive(t, 0);
       },
       {arriveSite, "one arrival too many: all 1 arrivals of phase 0"}},
      {"too many bytes",
       1,
       [](LowlpThread *t, void *const *) {
         init(t, {3});
         arrive(t, 0, 1 << 19);
         arrive(t, 0, 1 << 19);
       },
       {arriveSite, "would expect 1048576 bytes; it counts at most 1048575"}},
      {"more bytes than announced",
       2,
       [](LowlpThread *t, void *const *args) {
         init(t, {2});
         if (isFirst(t)) {
           copy(t, args, 0, 16, 8, 0);
           arrive(t, 0, 16);
         } else {
           arrive(t, 0);
         }
         wait(t, 0, 0);
       },
       {copySite, "more bytes than announced: all arrivals of phase ",
        "16 bytes that none of them announced"}},
      {"a store to an mbarrier",
       1,
       [](LowlpThread *t, void *const *) {
         init(t, {1});
         store(t, sharedWords(t), barrierOffset / 4 + 1, 0, storeSite);
       },
       {storeSite, "byte offset 4100", "touches an mbarrier"}},
      {"nobody arrives",
       3,
       [](LowlpThread *t, void *const *) {
         init(t, {2, 1});
         if (isFirst(t)) {
           arrive(t, 0);
           wait(t, 1, 0);
         } else {
           wait(t, 0, 0);
         }
       },
       {"deadlock: no thread of block (0, 0, 0) can go on; 3 threads wait: ",
        "lowlp.mbarrier_wait at t.mlir:3:1 (the mbarrier at byte offset 4",
        "whose phase 0 lacks 1 of "}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

/// Runs `kernel` under several seeds; returns the distinct reports, cut at
/// their first colon.
std::set<std::string> runSeeds(LowlpKernelFn kernel, int64_t numThreads) {
  std::set<std::string> reports;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Launcher launcher(kernel, 1, numThreads);
    launcher.sharedBytes = 8192;
    launcher.seed = seed;
    std::string error = launcher.run().error;
    reports.insert(error.substr(0, error.find(" this thread")));
  }
  return reports;
}

TEST(CPUMbarrier, aPhaseMoreThanOneAheadIsReportedWhereItComesAbout) {
  // Whether thread 0 is two phases on when the other waits is left to chance.
  std::set<std::string> reports = runSeeds(
      [](LowlpThread *t, void *const *) {
        init(t, {1});
        if (isFirst(t)) {
          arrive(t, 0);
          arrive(t, 0);
        } else {
          wait(t, 0, 0);
        }
      },
      2);
  EXPECT_EQ(reports, (std::set<std::string>{
                         "", waitSite + std::string(": phase misuse:")}));
  // Here it is not, since the first thread waits for the other.
  reports = runSeeds(
      [](LowlpThread *t, void *const *) {
        init(t, {1, 1});
        if (isFirst(t)) {
          arrive(t, 0);
          wait(t, 1, 0);
          arrive(t, 0);
        } else {
          wait(t, 0, 0);
          arrive(t, 1);
        }
      },
      2);
  EXPECT_EQ(reports, std::set<std::string>{""});
}

} // namespace
