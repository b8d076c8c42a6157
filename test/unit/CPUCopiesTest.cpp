//===- CPUCopiesTest.cpp - Asynchronous copies that land late -------------===//

#include "CPUReports.h"

#include <cstdint>

namespace {

const char *const copySite = "lowlp.copy_async at t.mlir:1:1";
const char *const loadSite = "lowlp.load_shared at t.mlir:2:1";
const char *const storeSite = "lowlp.store at t.mlir:3:1";

/// Copies 4 words, from x[4 i] to word 4 `to` of shared memory.
void copy(LowlpThread *t, void *const *args, int64_t i, int64_t to) {
  lowlpCpuCopyAsync(t, pointerArg<int32_t>(args, 0), 16 * i, sharedWords(t),
                    16 * to, 16, copySite);
}

void copyGroup(LowlpThread *t, void *const *args, int64_t i, int64_t to) {
  copy(t, args, i, to);
  lowlpCpuCopyAsyncCommit(t);
}

/// y[`to`] = word `from` of shared memory.
void show(LowlpThread *t, void *const *args, int64_t from, int64_t to) {
  int32_t value = load(t, sharedWords(t), from, loadSite);
  store(t, pointerArg<int32_t>(args, 1), to, value, storeSite);
}

TEST(CPUCopies, land) {
  const ReportCase cases[] = {
      {"waited for, then a barrier",
       32,
       [](LowlpThread *t, void *const *args) {
         int64_t i = lowlpCpuThreadId(t, 0);
         copyGroup(t, args, i, i);
         lowlpCpuCopyAsyncWait(t, 0);
         lowlpCpuBarrier(t, "b");
         show(t, args, 127 - i, i);
       },
       {},
       {127, 126, 125}},
      {"the first of two groups",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 1, 0);
         copyGroup(t, args, 2, 1);
         lowlpCpuCopyAsyncWait(t, 1);
         show(t, args, 0, 0);
         lowlpCpuCopyAsyncWait(t, 0);
         show(t, args, 4, 1);
         copyGroup(t, args, 3, 0);
         lowlpCpuCopyAsyncWait(t, 0);
         show(t, args, 0, 2);
       },
       {},
       {4, 8, 12}},
      {"not waited for",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 0, 0);
         show(t, args, 3, 0);
       },
       {"lowlp.load_shared at t.mlir:2:1: read of 4 bytes at byte offset 12 of "
        "shared memory (8192 bytes) touches bytes of an asynchronous copy that "
        "was not waited for, issued by thread (0, 0, 0) at lowlp.copy_async at "
        "t.mlir:1:1; block (0, 0, 0), thread (0, 0, 0)"}},
      {"not committed",
       1,
       [](LowlpThread *t, void *const *args) {
         copy(t, args, 0, 0);
         lowlpCpuCopyAsyncWait(t, 0);
         show(t, args, 0, 0);
       },
       {loadSite, "was not waited for"}},
      {"the last group is not waited for",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 0, 0);
         copyGroup(t, args, 1, 1);
         lowlpCpuCopyAsyncWait(t, 1);
         show(t, args, 4, 0);
       },
       {loadSite, "byte offset 16", "was not waited for"}},
      {"a barrier instead of a wait",
       2,
       [](LowlpThread *t, void *const *args) {
         int64_t i = lowlpCpuThreadId(t, 0);
         copyGroup(t, args, i, i);
         lowlpCpuBarrier(t, "b");
         show(t, args, 4 - 4 * i, i);
       },
       {loadSite, "was not waited for, issued by thread"}},
      {"a wait without a barrier",
       2,
       [](LowlpThread *t, void *const *args) {
         if (lowlpCpuThreadId(t, 0) == 0)
           store(t, sharedWords(t), 0, 7, storeSite);
         lowlpCpuBarrier(t, "b");
         if (lowlpCpuThreadId(t, 0) == 0) {
           copyGroup(t, args, 0, 0);
           lowlpCpuCopyAsyncWait(t, 0);
         } else {
           show(t, args, 0, 0);
         }
       },
       {"thread (0, 0, 0)"}},
      {"a write over the destination",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 0, 0);
         store(t, sharedWords(t), 1, 5, storeSite);
       },
       {storeSite, "write of 4 bytes at byte offset 4", "was not waited for"}},
      {"two copies to one place",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 0, 0);
         copyGroup(t, args, 1, 0);
       },
       {copySite, "write of 16 bytes", "was not waited for"}},
      {"a write to the source",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 2, 0);
         load(t, pointerArg<int32_t>(args, 0), 9, loadSite);
         store(t, pointerArg<int32_t>(args, 0), 12, 1, storeSite);
         store(t, pointerArg<int32_t>(args, 0), 9, 1, storeSite);
       },
       {storeSite, "byte offset 36 of argument 'x'",
        "changes bytes that an asynchronous copy still reads, issued by "
        "thread (0, 0, 0) at lowlp.copy_async at t.mlir:1:1"}},
      {"a write to the source after the wait",
       1,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 2, 0);
         lowlpCpuCopyAsyncWait(t, 0);
         store(t, pointerArg<int32_t>(args, 0), 9, 1, storeSite);
         show(t, args, 1, 0);
       },
       {},
       {9}},
      {"nobody waits, and the thread ends",
       2,
       [](LowlpThread *t, void *const *args) {
         copyGroup(t, args, 0, lowlpCpuThreadId(t, 0));
       },
       {}},
      {"misaligned source",
       1,
       [](LowlpThread *t, void *const *args) {
         lowlpCpuCopyAsync(t, pointerArg<int32_t>(args, 0), 4, sharedWords(t),
                           0, 8, copySite);
       },
       {copySite, "read of 8 bytes at byte offset 4 of argument 'x'",
        "misaligned"}},
      {"misaligned destination",
       1,
       [](LowlpThread *t, void *const *args) {
         lowlpCpuCopyAsync(t, pointerArg<int32_t>(args, 0), 0, sharedWords(t),
                           8, 16, copySite);
       },
       {copySite, "write of 16 bytes at byte offset 8 of shared memory",
        "misaligned: its address is 8 bytes past a multiple of 16"}},
      {"out of bounds",
       1,
       [](LowlpThread *t, void *const *args) { copy(t, args, 256, 0); },
       {copySite, "outside the allocation"}},
  };
  for (const ReportCase &test : cases)
    expectReport(test);
}

} // namespace
