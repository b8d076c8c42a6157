//===- CPUBulkCopiesTest.cpp - Bulk copies, fences and a ring of stages ---===//

#include "CPUReports.h"

namespace {

const char *const initSite = "lowlp.alloc_mbarriers at t.mlir:1:1";
const char *const arriveSite = "lowlp.mbarrier_arrive at t.mlir:2:1";
const char *const waitSite = "lowlp.mbarrier_wait at t.mlir:3:1";
const char *const copySite = "lowlp.copy_bulk at t.mlir:4:1";
const char *const loadSite = "lowlp.load_shared at t.mlir:5:1";
const char *const storeSite = "lowlp.store_shared at t.mlir:6:1";
const char *const backSite = "lowlp.copy_bulk_to_global at t.mlir:7:1";

constexpr int64_t barrierOffset = 4096;

char *barrierBase(LowlpThread *t) {
  return static_cast<char *>(lowlpCpuSharedMemory(t, barrierOffset));
}

void initBarrier(LowlpThread *t, int64_t barrier, int64_t arrivals) {
  lowlpCpuMbarrierInit(t, barrierBase(t), 8 * barrier, arrivals, initSite);
}

void arrive(LowlpThread *t, int64_t barrier, int64_t bytes = 0) {
  lowlpCpuMbarrierArrive(t, barrierBase(t), 8 * barrier, bytes, arriveSite);
}

void wait(LowlpThread *t, int64_t barrier, int64_t parity) {
  lowlpCpuMbarrierWait(t, barrierBase(t), 8 * barrier, int32_t(parity),
                       waitSite);
}

void copy(LowlpThread *t, void *const *args, int64_t from, int64_t to,
          int64_t words, int64_t barrier) {
  lowlpCpuCopyBulk(t, pointerArg<int32_t>(args, 0), 4 * from, sharedWords(t),
                   4 * to, barrierBase(t), 8 * barrier, 4 * words, copySite);
}

void copyBack(LowlpThread *t, void *const *args, int64_t from, int64_t to,
              int64_t words) {
  lowlpCpuCopyBulkToGlobal(t, sharedWords(t), 4 * from,
                           pointerArg<int32_t>(args, 1), 4 * to, 4 * words,
                           backSite);
  lowlpCpuCopyBulkCommit(t);
}

void show(LowlpThread *t, void *const *args, int64_t from, int64_t to) {
  int32_t value = load(t, sharedWords(t), from, loadSite);
  store(t, pointerArg<int32_t>(args, 1), to, value, "y");
}

bool isFirst(LowlpThread *t) { return lowlpCpuThreadId(t, 0) == 0; }

//===----------------------------------------------------------------------===//
// A ring of stages: warp 0 copies, warp 1 adds up
//===----------------------------------------------------------------------===//

constexpr int64_t numStages = 3, numSteps = 10, lanes = 32;

enum Bug {
  None,
  NoFullWait,
  WrongFullParity,
  NoEmptyWait,
  WrongEmptyParity,
  NoExpectedBytes,
  TooFewBytes,
  NoFence,
  NoInitFence,
  NoInitBarrier,
  OneWaits,
};

template <Bug bug> void ring(LowlpThread *t, void *const *args) {
  lowlpCpuTrackOrder(t);
  int64_t thread = lowlpCpuThreadId(t, 0), lane = thread % lanes;
  if (thread == 0) {
    for (int64_t stage = 0; stage < numStages; ++stage) {
      initBarrier(t, stage, 1);
      initBarrier(t, numStages + stage, lanes);
    }
    if (bug != NoInitFence)
      lowlpCpuFenceMbarrierInit(t);
  }
  if (bug != NoInitBarrier)
    lowlpCpuBarrier(t, "b");
  int32_t sum = 0;
  for (int64_t step = 0; step < numSteps; ++step) {
    int64_t stage = step % numStages, parity = step / numStages % 2;
    if (thread == 0) {
      if (bug != NoEmptyWait)
        wait(t, numStages + stage,
             bug == WrongEmptyParity ? parity : 1 - parity);
      if (bug != NoFence && bug != NoInitFence)
        lowlpCpuFenceAsync(t);
      if (bug == NoExpectedBytes)
        arrive(t, stage);
      else
        arrive(t, stage, bug == TooFewBytes ? 64 : 128);
      copy(t, args, lanes * step, lanes * stage, lanes, stage);
    } else if (thread >= lanes) {
      if (bug != NoFullWait && (bug != OneWaits || lane == 0))
        wait(t, stage, bug == WrongFullParity ? 1 - parity : parity);
      sum += load(t, sharedWords(t), lanes * stage + lane, loadSite);
      arrive(t, numStages + stage);
    }
  }
  if (thread >= lanes)
    store(t, pointerArg<int32_t>(args, 1), lane, sum, "y");
}

TEST(CPUBulkCopies, ring) {
  // The sum over the steps of 32 step + lane.
  const int32_t first = int32_t(lanes * numSteps * (numSteps - 1) / 2);
  const ReportCase cases[] = {
      {"correct", 64, ring<None>, {}, {first, first + 10, first + 20}},
      {"missing wait", 64, ring<NoFullWait>, {"load_shared"}},
      {"wrong phase of full", 64, ring<WrongFullParity>, {"load_shared"}},
      {"missing wait for empty", 64, ring<NoEmptyWait>, {"t.mlir:"}},
      {"wrong phase of empty",
       64,
       ring<WrongEmptyParity>,
       {"deadlock: ", "mbarrier_wait at t.mlir:3:1 (the mbarrier at byte "
                      "offset 4120, whose phase 0 lacks 32 of 32 arrivals)"}},
      {"missing expect", 64, ring<NoExpectedBytes>, {"t.mlir:"}},
      {"too few bytes", 64, ring<TooFewBytes>, {"t.mlir:"}},
      {"no fence over bytes that were only read",
       64,
       ring<NoFence>,
       {},
       {first, first + 10, first + 20}},
      {"missing fence of the initialisation",
       64,
       ring<NoInitFence>,
       {copySite, "missing fence: no simt.fence_mbarrier_init"}},
      {"missing barrier after the initialisation",
       64,
       ring<NoInitBarrier>,
       {"mbarrier at byte offset"}},
      {"only one lane waits", 64, ring<OneWaits>, {loadSite}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

//===----------------------------------------------------------------------===//
// Single bulk copies
//===----------------------------------------------------------------------===//

void initOne(LowlpThread *t) {
  lowlpCpuTrackOrder(t);
  if (isFirst(t)) {
    initBarrier(t, 0, 1);
    lowlpCpuFenceMbarrierInit(t);
  }
  lowlpCpuBarrier(t, "b");
}

TEST(CPUBulkCopies, fromGlobal) {
  const ReportCase cases[] = {
      {"misaligned",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         copy(t, args, 2, 0, 4, 0);
       },
       {copySite, "read of 16 bytes at byte offset 8 of argument 'x'",
        "misaligned: its address is 8 bytes past a multiple of 16"}},
      {"part of a unit",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         copy(t, args, 0, 0, 6, 0);
       },
       {copySite, "a bulk copy moves a multiple of 16 bytes, not 24"}},
      {"out of bounds",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         copy(t, args, 1020, 0, 8, 0);
       },
       {copySite, "outside the allocation"}},
      {"over bytes that were stored, without a fence",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         store(t, sharedWords(t), 5, 1, storeSite);
         arrive(t, 0, 32);
         copy(t, args, 0, 0, 8, 0);
       },
       {copySite, "missing fence: ", "the write by thread (0, 0, 0)",
        storeSite}},
      {"over bytes that were stored, after a fence",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         store(t, sharedWords(t), 5, 1, storeSite);
         lowlpCpuFenceAsync(t);
         arrive(t, 0, 32);
         copy(t, args, 0, 0, 8, 0);
         wait(t, 0, 0);
         show(t, args, 5, 0);
       },
       {},
       {5}},
      {"over bytes that another thread stored, without a barrier",
       2,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         if (isFirst(t)) {
           arrive(t, 0, 32);
           copy(t, args, 0, 0, 8, 0);
           wait(t, 0, 0);
         } else {
           store(t, sharedWords(t), 5, 1, storeSite);
           lowlpCpuFenceAsync(t);
         }
       },
       {storeSite}},
      {"a write to the source",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         arrive(t, 0, 32);
         copy(t, args, 0, 0, 8, 0);
         store(t, pointerArg<int32_t>(args, 0), 7, 1, storeSite);
       },
       {storeSite, "changes bytes that an asynchronous copy still reads"}},
      {"nobody waits",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         arrive(t, 0, 32);
         copy(t, args, 0, 0, 8, 0);
       },
       {copySite, "the block ended before the bytes of this copy"}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

/// Stores, then copies to y, with what lies in between left to the caller.
void storeAll(LowlpThread *t) {
  lowlpCpuTrackOrder(t);
  store(t, sharedWords(t), lowlpCpuThreadId(t, 0),
        int32_t(lowlpCpuThreadId(t, 0)), storeSite);
}

TEST(CPUBulkCopies, toGlobal) {
  const ReportCase cases[] = {
      {"fence, then barrier",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         lowlpCpuFenceAsync(t);
         lowlpCpuBarrier(t, "b");
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
         lowlpCpuCopyBulkWait(t, 0, /*onlyRead=*/1);
         lowlpCpuBarrier(t, "c");
         store(t, sharedWords(t), lowlpCpuThreadId(t, 0), -1, storeSite);
       },
       {},
       {0, 1, 2, 3, 4, 5, 6, 7}},
      {"barrier, then fence",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         lowlpCpuBarrier(t, "b");
         lowlpCpuFenceAsync(t);
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
         lowlpCpuCopyBulkWait(t, 0, /*onlyRead=*/1);
       },
       {},
       {0, 1, 2, 3, 4, 5, 6, 7}},
      {"no fence",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         lowlpCpuBarrier(t, "b");
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
       },
       {backSite,
        "missing fence: read of 32 bytes at byte offset 0 of shared "
        "memory (8192 bytes) by a bulk copy and the write by thread",
        storeSite, "no fence_async between them"}},
      {"another thread's fence",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         if (lowlpCpuThreadId(t, 0) == 3)
           lowlpCpuFenceAsync(t);
         lowlpCpuBarrier(t, "b");
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
       },
       {backSite, "missing fence: "}},
      {"no barrier",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         lowlpCpuFenceAsync(t);
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
       },
       {"t.mlir:"}},
      {"nobody waits, and the thread ends",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         lowlpCpuFenceAsync(t);
         lowlpCpuBarrier(t, "b");
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
       },
       {backSite, "the thread ended before this copy was waited for"}},
      {"stored again without waiting",
       8,
       [](LowlpThread *t, void *const *args) {
         storeAll(t);
         lowlpCpuFenceAsync(t);
         lowlpCpuBarrier(t, "b");
         if (isFirst(t))
           copyBack(t, args, 0, 0, 8);
         lowlpCpuBarrier(t, "c");
         store(t, sharedWords(t), lowlpCpuThreadId(t, 0), -1, storeSite);
       },
       {storeSite, "changes bytes that an asynchronous copy still reads, "
                   "issued by thread (0, 0, 0) at lowlp.copy_bulk_to_global"}},
      {"the target is read before the wait",
       1,
       [](LowlpThread *t, void *const *args) {
         for (int64_t i = 0; i < 4; ++i)
           store(t, sharedWords(t), i, 3, storeSite);
         lowlpCpuFenceAsync(t);
         copyBack(t, args, 0, 0, 4);
         lowlpCpuCopyBulkWait(t, 0, /*onlyRead=*/1);
         load(t, pointerArg<int32_t>(args, 1), 2, loadSite);
       },
       {loadSite, "byte offset 8 of argument 'y'", "was not waited for"}},
      {"the target is read after the wait",
       1,
       [](LowlpThread *t, void *const *args) {
         for (int64_t i = 0; i < 4; ++i)
           store(t, sharedWords(t), i, 3, storeSite);
         lowlpCpuFenceAsync(t);
         copyBack(t, args, 0, 0, 4);
         lowlpCpuCopyBulkWait(t, 0, /*onlyRead=*/0);
         load(t, pointerArg<int32_t>(args, 1), 2, loadSite);
       },
       {},
       {3}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

/// Copies the box of 8 x 16 words at (`row`, `column`) of x, seen as 20 x 12 of
/// rows of 48 words, and shows all of it.
template <int row, int column, int swizzle>
void copyBox(LowlpThread *t, void *const *args) {
  initOne(t);
  constexpr int64_t words = swizzle ? swizzle / 4 : 16;
  LowlpTensorCopy box = {pointerArg<int32_t>(args, 0),
                         sharedWords(t),
                         1024,
                         barrierBase(t),
                         0,
                         2,
                         4,
                         swizzle,
                         {20, 12},
                         {192},
                         {row, column},
                         {8, words}};
  arrive(t, 0, 8 * words * 4);
  lowlpCpuCopyTensor(t, &box, copySite);
  wait(t, 0, 0);
  for (int64_t i = 0; i < 8; ++i)
    for (int64_t j = 0; j < words; ++j) {
      int64_t chunk = j / 4;
      if (swizzle)
        chunk ^= i * swizzle / 128 % (swizzle / 16);
      show(t, args, 256 + i * words + chunk * 4 + j % 4, i * words + j);
    }
}

/// What `copyBox` shows.
std::vector<int32_t> wantedBox(int row, int column, int words) {
  std::vector<int32_t> wanted;
  for (int i = row; i < row + 8; ++i)
    for (int j = column; j < column + words; ++j)
      wanted.push_back(i < 0 || i >= 20 || j < 0 || j >= 12 ? 0 : 48 * i + j);
  return wanted;
}

TEST(CPUBulkCopies, tensors) {
  const ReportCase cases[] = {
      {"edges below", 1, copyBox<-3, -4, 0>, {}, wantedBox(-3, -4, 16)},
      {"edges above", 1, copyBox<15, 4, 0>, {}, wantedBox(15, 4, 16)},
      {"swizzle 32", 1, copyBox<3, 4, 32>, {}, wantedBox(3, 4, 8)},
      {"swizzle 64", 1, copyBox<3, 4, 64>, {}, wantedBox(3, 4, 16)},
      {"swizzle 128", 1, copyBox<3, -4, 128>, {}, wantedBox(3, -4, 32)},
      {"misaligned stride",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         LowlpTensorCopy box = {pointerArg<int32_t>(args, 0),
                                sharedWords(t),
                                0,
                                barrierBase(t),
                                0,
                                2,
                                4,
                                0,
                                {8, 8},
                                {40},
                                {0, 0},
                                {8, 8}};
         lowlpCpuCopyTensor(t, &box, copySite);
       },
       {copySite, "a stride of the tensor is not a multiple of 16 bytes"}},
      {"misaligned part",
       1,
       copyBox<3, 1, 0>,
       {copySite, "the box does not begin at a multiple of 16 bytes of a row"}},
      {"misaligned box",
       1,
       [](LowlpThread *t, void *const *args) {
         initOne(t);
         LowlpTensorCopy box = {pointerArg<int32_t>(args, 0),
                                sharedWords(t),
                                64,
                                barrierBase(t),
                                0,
                                2,
                                4,
                                0,
                                {8, 8},
                                {32},
                                {0, 0},
                                {8, 8}};
         lowlpCpuCopyTensor(t, &box, copySite);
       },
       {copySite, "the box does not begin at a multiple of 128 bytes"}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

} // namespace
