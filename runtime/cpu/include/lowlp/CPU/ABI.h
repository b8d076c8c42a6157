//===- ABI.h - What compiled kernels call on the CPU ------------*- C++ -*-===//
//
// The calling contract between a thread-level GPU program compiled to host
// code and the executor that runs it: one call of the kernel function is one
// GPU thread, on a fiber of its own. Everything a GPU thread does beyond plain
// arithmetic, loads and stores goes through the functions below.
//
// Three rules hold for every function that takes a `LowlpThread`:
//  - `thread` is the pointer the kernel function was called with, and the call
//    comes from that thread's own fiber.
//  - `site` is a NUL-terminated string that outlives the launch, such as
//    "lowlp.load_global at fig2.mlir:12:8". Its text opens every report of that
//    op and its *address* identifies the op: two lanes meet in a collective
//    only if they pass the same pointer.
//  - The call may never return: after a report the fiber is abandoned where it
//    stands and its stack reused, without unwinding. Compiled code must
//    therefore not be declared `willreturn`, and a kernel written in C++ must
//    hold no object with a destructor that matters across a call.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_CPU_ABI_H
#define LOWLP_CPU_ABI_H

#include <stdint.h>

#define LOWLP_CPU_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// One GPU thread in flight; opaque to compiled code.
typedef struct LowlpThread LowlpThread;

/// A compiled kernel: the body of one GPU thread. `args[i]` points at the value
/// of the i-th argument (a pointer or a scalar). A thread exits by returning.
typedef void (*LowlpKernelFn)(LowlpThread *thread, void *const *args);

/// The instructions of `lowlpCpuMma`, by the types of A and B. Sums are f32, of
/// integers and bits s32.
enum LowlpMmaKind {
  LowlpMmaM16N8K16F16 = 0,
  LowlpMmaM16N8K16BF16 = 1,
  LowlpMmaM16N8K32S8S8 = 2,
  LowlpMmaM16N8K32S8U8 = 3,
  LowlpMmaM16N8K32U8S8 = 4,
  LowlpMmaM16N8K32U8U8 = 5,
  LowlpMmaM16N8K32E4M3E4M3 = 6,
  LowlpMmaM16N8K32E4M3E5M2 = 7,
  LowlpMmaM16N8K32E5M2E4M3 = 8,
  LowlpMmaM16N8K32E5M2E5M2 = 9,
  LowlpMmaM16N8K256B1And = 10, ///< `.and.popc`
  LowlpMmaM16N8K128B1And = 11, ///< of 2 registers of A and 1 of B
};

/// The modes of `lowlpCpuShuffle`.
enum LowlpShuffleMode {
  LowlpShuffleIdx = 0,
  LowlpShuffleUp = 1,
  LowlpShuffleDown = 2,
  LowlpShuffleBfly = 3,
};

/// The operations of `lowlpCpuAtomic`, on 32-bit words.
enum LowlpAtomicOp {
  LowlpAtomicAnd = 0,
  LowlpAtomicOr = 1,
  LowlpAtomicAdd = 2,
  LowlpAtomicExch = 3,
  LowlpAtomicXor = 4,
  LowlpAtomicMinU = 5,
  LowlpAtomicMaxU = 6,
  LowlpAtomicMinS = 7,
  LowlpAtomicMaxS = 8,
  LowlpAtomicAddF32 = 9,
  LowlpAtomicAddF16x2 = 10, ///< each half of the word
  LowlpAtomicAddBF16x2 = 11,
};

/// Coordinates and extents along `dim`. PTX ISA, "Special Registers": %tid,
/// %ctaid, %ntid, %nctaid. Requires: `dim` is 0 (x), 1 (y) or 2 (z).
LOWLP_CPU_EXPORT int64_t lowlpCpuThreadId(LowlpThread *thread, int32_t dim);
LOWLP_CPU_EXPORT int64_t lowlpCpuBlockId(LowlpThread *thread, int32_t dim);
LOWLP_CPU_EXPORT int64_t lowlpCpuBlockDim(LowlpThread *thread, int32_t dim);
LOWLP_CPU_EXPORT int64_t lowlpCpuGridDim(LowlpThread *thread, int32_t dim);

/// Returns, unless the launch goes on without the thread's block. Compiled code
/// calls it in every loop, so that a launch can be stopped.
LOWLP_CPU_EXPORT void lowlpCpuPoll(LowlpThread *thread);

/// Counts and checks one access of `bytes` bytes at `base + byteOffset`; the
/// access itself is the caller's. Requires: `bytes` >= 0 and `alignmentBytes`
/// is a power of two. Ensures on return, where checks are on: the bytes lie in
/// an allocation that `base` points into (one passed at launch, or the block's
/// shared memory), the address is a multiple of `alignmentBytes`, the
/// allocation may be written if `isWrite`, and the checks of the launch (see
/// `LowlpCheck` in Executor.h) find neither a race with an access before it nor
/// a read of bytes that nothing has written. Otherwise reports.
LOWLP_CPU_EXPORT void lowlpCpuCheckAccess(LowlpThread *thread, const void *base,
                                          int64_t byteOffset, int64_t bytes,
                                          int64_t alignmentBytes,
                                          int32_t isWrite, const char *site);

/// Reports `message` if `holds` is zero and checks are on.
LOWLP_CPU_EXPORT void lowlpCpuAssert(LowlpThread *thread, int32_t holds,
                                     const char *message, const char *site);

/// Writes a line to standard output. `format` is C's, with the conversions %d,
/// %u, %lld, %g and %% alone; each but the last takes 8 bytes of `values`: an
/// integer widened to 64 bits, or a double. What exceeds 4095 bytes is cut off.
LOWLP_CPU_EXPORT void lowlpCpuPrint(LowlpThread *thread, const char *format,
                                    const uint64_t *values);

/// D = A * B + C by the whole warp. PTX ISA, "Warp Level Matrix Instructions",
/// mma.sync.aligned.row.col. `kind` is a `LowlpMmaKind`. Each lane passes its
/// own fragment, in the order of "Matrix Fragments for mma.m16n8k16 with
/// floating point type" and those for k32 and k256: 16 bytes at `a`, 8 at `b`,
/// 4 accumulators at `c` and `d`. `d` may be `c`; no other memory may overlap
/// `d`. Products of floats are exact, the sum of c and then k = 0, 1, .. runs
/// in double and is rounded once to float: an oracle, more exact than tensor
/// cores, whose order and width of summation are not documented. Sums of
/// integers wrap around. Reports if the block's last warp is partial and calls
/// this, or if the lanes do not all come to this site.
LOWLP_CPU_EXPORT void lowlpCpuMma(LowlpThread *thread, int32_t kind,
                                  const void *a, const void *b, const void *c,
                                  void *d, const char *site);

/// Loads `count` matrices of 8 rows of 16 bytes from shared memory by the whole
/// warp. PTX ISA, "Warp Level Matrix Instructions", ldmatrix.sync.aligned.m8n8
/// .b16 with .x1, .x2 or .x4, and .trans if `transposed`. Lane 8 m + r passes
/// the address of row r of matrix m as `base + byteOffset`, a multiple of 16;
/// those of other lanes do not count. Each lane receives `count` words at
/// `words`. A row is counted and checked for bounds as an access of the lane
/// that gave its address; reads of what was never written, and races, are those
/// of the lane that receives the bytes. Reports as `lowlpCpuMma` does where
/// lanes do not meet.
LOWLP_CPU_EXPORT void lowlpCpuLoadMatrix(LowlpThread *thread, const void *base,
                                         int64_t byteOffset, int32_t count,
                                         int32_t transposed, void *words,
                                         const char *site);

/// The mirror of `lowlpCpuLoadMatrix`: stmatrix.sync.aligned.m8n8.b16.
LOWLP_CPU_EXPORT void lowlpCpuStoreMatrix(LowlpThread *thread, void *base,
                                          int64_t byteOffset, int32_t count,
                                          int32_t transposed, const void *words,
                                          const char *site);

/// Waits until every thread of the block is at this site, and orders the
/// accesses of the block before it and after it: nothing else does. PTX ISA,
/// "Parallel Synchronization and Communication Instructions", bar.sync 0.
/// Reports if a thread of the block waits at another barrier or has exited.
/// (Hardware may count exited threads as arrived; a program that leans on it is
/// wrong by the ISA, which makes all threads of the CTA take part.)
LOWLP_CPU_EXPORT void lowlpCpuBarrier(LowlpThread *thread, const char *site);

/// The same of the 128 threads of a warpgroup, as bar.sync with a number of its
/// own for each does.
LOWLP_CPU_EXPORT void lowlpCpuWarpgroupBarrier(LowlpThread *thread,
                                               const char *site);

/// PTX ISA, "Data Movement and Conversion Instructions: shfl.sync". `mode` is a
/// `LowlpShuffleMode`; `value`, `laneOrDelta`, `clampAndMask`, `memberMask` are
/// the operands a, b, c and membermask, where `clampAndMask` holds the clamp in
/// bits 0-4 and the segment mask in bits 8-12. Returns d; stores p (0 or 1)
/// at `pred` unless it is null. Lanes that a partial warp lacks are dropped
/// from `memberMask`. Reports if the calling lane is not in `memberMask`, if
/// the lane read is not (the value is undefined in PTX), or if the members do
/// not all come to this site with the same mode and mask.
LOWLP_CPU_EXPORT uint32_t lowlpCpuShuffle(LowlpThread *thread, int32_t mode,
                                          uint32_t value, uint32_t laneOrDelta,
                                          uint32_t clampAndMask,
                                          uint32_t memberMask, int32_t *pred,
                                          const char *site);

/// Atomically replaces the word w at `base + byteOffset` by `op`(w, operand)
/// and returns w. PTX ISA, "Parallel Synchronization and Communication
/// Instructions: atom", relaxed or stronger, at any scope. `op` is a
/// `LowlpAtomicOp`. The access is counted as an atomic and checked as one of 4
/// aligned bytes that writes, and that races with no other atomic; it needs no
/// `lowlpCpuCheckAccess`. Other threads of the block may run before it returns,
/// so that polling a word that another thread of the same block sets comes to
/// an end. Polling for another *block* may not, since that block may have to
/// wait for the worker that polls; `lowlpCpuAwait` is there for that.
LOWLP_CPU_EXPORT uint32_t lowlpCpuAtomic(LowlpThread *thread, int32_t op,
                                         void *base, int64_t byteOffset,
                                         uint32_t operand, const char *site);

/// The same for one f16, or one bf16 if `isBF16`: adds the lower half of
/// `operand` and returns the old value in the lower half. 2 aligned bytes.
LOWLP_CPU_EXPORT uint32_t lowlpCpuAtomicAdd16(LowlpThread *thread,
                                              int32_t isBF16, void *base,
                                              int64_t byteOffset,
                                              uint32_t operand,
                                              const char *site);

/// The same for compare-and-swap: a word that is `expected` becomes `desired`.
LOWLP_CPU_EXPORT uint32_t lowlpCpuAtomicCas(LowlpThread *thread, void *base,
                                            int64_t byteOffset,
                                            uint32_t expected, uint32_t desired,
                                            const char *site);

/// Waits until the word at `base + byteOffset` is `value`, and acquires: what
/// was published through the word comes before what this thread does next, and
/// after its block's next barrier before what the block does. Other threads of
/// the block run meanwhile, and when none of them can, other blocks. PTX ISA,
/// "ld.acquire.gpu" in a loop. Counted and checked like an atomic.
///
/// A block may wait for blocks of lower index. That always makes progress; for
/// one of higher index it does where all fit. Waits that can never end are
/// reported as a deadlock.
LOWLP_CPU_EXPORT void lowlpCpuAwait(LowlpThread *thread, const void *base,
                                    int64_t byteOffset, uint32_t value,
                                    const char *site);

/// Replaces the word at `base + byteOffset` by `operand`, or adds that to it,
/// and publishes through it what this thread has done, what its block had done
/// at its last barrier, and what was made known to them by acquires. `op` is
/// `LowlpAtomicExch` or `LowlpAtomicAdd`. PTX ISA, "st.release.gpu" and
/// "red.release.gpu.add". Counted and checked like an atomic.
LOWLP_CPU_EXPORT void lowlpCpuRelease(LowlpThread *thread, int32_t op,
                                      void *base, int64_t byteOffset,
                                      uint32_t operand, const char *site);

/// The address of byte `byteOffset` of the block's shared memory, which starts
/// at a multiple of 1024. Checks nothing: `lowlpCpuCheckAccess` does.
/// Where checks are on, a block's shared memory starts out as bytes 0xFF (NaN
/// in every IEEE format), so that use before initialisation shows.
LOWLP_CPU_EXPORT void *lowlpCpuSharedMemory(LowlpThread *thread,
                                            int64_t byteOffset);

//===----------------------------------------------------------------------===//
// Asynchronous copies and mbarriers
//===----------------------------------------------------------------------===//

/// Tells the executor that the kernel uses mbarriers, bulk copies or wgmma:
/// every thread says so before it does anything else. Then mbarriers order
/// accesses, and fences of proxies are looked for.
LOWLP_CPU_EXPORT void lowlpCpuTrackOrder(LowlpThread *thread);

/// Begins to copy `bytes` bytes, to which both addresses are aligned, from
/// global to shared memory. PTX ISA, "cp.async". Where races are checked, the
/// bytes land at the wait of this thread for their group, or at its end. Until
/// then whoever touches them is reported, and whoever writes to the source.
LOWLP_CPU_EXPORT void lowlpCpuCopyAsync(LowlpThread *thread, const void *source,
                                        int64_t sourceOffset, void *destination,
                                        int64_t destinationOffset,
                                        int64_t bytes, const char *site);

/// PTX ISA, "cp.async.commit_group" and "cp.async.wait_group".
LOWLP_CPU_EXPORT void lowlpCpuCopyAsyncCommit(LowlpThread *thread);
LOWLP_CPU_EXPORT void lowlpCpuCopyAsyncWait(LowlpThread *thread,
                                            int64_t numInFlight);

/// Makes the 8 bytes of shared memory at `base + byteOffset` an mbarrier whose
/// phases take `arrivals` arrivals. PTX ISA, "mbarrier.init". Reports an
/// address that is none or holds one already.
LOWLP_CPU_EXPORT void lowlpCpuMbarrierInit(LowlpThread *thread, void *base,
                                           int64_t byteOffset, int64_t arrivals,
                                           const char *site);

/// PTX ISA, "fence.mbarrier_init": bulk copies may use the mbarriers that this
/// thread has initialised.
LOWLP_CPU_EXPORT void lowlpCpuFenceMbarrierInit(LowlpThread *thread);

/// Arrives once, after announcing `expectedBytes` bytes. PTX ISA,
/// "mbarrier.arrive", "mbarrier.arrive.expect_tx". Reports an address without
/// an mbarrier, one that no barrier makes known to this thread, an arrival or
/// bytes beyond what the phase takes.
LOWLP_CPU_EXPORT void lowlpCpuMbarrierArrive(LowlpThread *thread, void *base,
                                             int64_t byteOffset,
                                             int64_t expectedBytes,
                                             const char *site);

/// Returns when the phase of the parity `parity` (its lowest bit) is complete.
/// PTX ISA, "mbarrier.try_wait.parity", in a loop. Reports what an arrival
/// reports, and a parity that means one phase or another depending on how far
/// the other threads are.
LOWLP_CPU_EXPORT void lowlpCpuMbarrierWait(LowlpThread *thread, void *base,
                                           int64_t byteOffset, int32_t parity,
                                           const char *site);

/// From here on the thread meets nobody at `lowlpCpuBarrier`, and may exit
/// while others wait there.
LOWLP_CPU_EXPORT void lowlpCpuLeaveBarriers(LowlpThread *thread);

/// PTX ISA, "fence.proxy.async".
LOWLP_CPU_EXPORT void lowlpCpuFenceAsync(LowlpThread *thread);

/// Begins a bulk copy from global to shared memory whose bytes the mbarrier at
/// `barrier + barrierOffset` counts. PTX ISA, "cp.async.bulk". Reports
/// addresses and `bytes` that are no multiple of 16, and a missing fence.
LOWLP_CPU_EXPORT void lowlpCpuCopyBulk(LowlpThread *thread, const void *source,
                                       int64_t sourceOffset, void *destination,
                                       int64_t destinationOffset, void *barrier,
                                       int64_t barrierOffset, int64_t bytes,
                                       const char *site);

/// Begins a bulk copy from shared to global memory, which belongs to the next
/// group of bulk copies that this thread commits.
LOWLP_CPU_EXPORT void lowlpCpuCopyBulkToGlobal(LowlpThread *thread,
                                               const void *source,
                                               int64_t sourceOffset,
                                               void *destination,
                                               int64_t destinationOffset,
                                               int64_t bytes, const char *site);

/// PTX ISA, "cp.async.bulk.commit_group" and "cp.async.bulk.wait_group", with
/// `.read` if `onlyRead`.
LOWLP_CPU_EXPORT void lowlpCpuCopyBulkCommit(LowlpThread *thread);
LOWLP_CPU_EXPORT void lowlpCpuCopyBulkWait(LowlpThread *thread,
                                           int64_t numInFlight,
                                           int32_t onlyRead);

/// A box of a tensor, on its way to shared memory. Dimensions count from the
/// outermost; the elements of the last are neighbours.
typedef struct LowlpTensorCopy {
  const void *source;
  void *destination;
  int64_t destinationOffset;
  void *barrier;
  int64_t barrierOffset;
  int64_t rank;           ///< 1 to 5
  int64_t elementBytes;   ///< 1, 2 or 4
  int64_t swizzleBytes;   ///< 0, or the 32, 64 or 128 bytes of a row of the box
  int64_t extents[5];     ///< of the tensor, in elements
  int64_t strideBytes[5]; ///< the last is not used
  int64_t offsets[5];     ///< of the first element of the box
  int64_t box[5];
} LowlpTensorCopy;

/// Begins to copy a box; elements outside of the tensor are zero. PTX ISA,
/// "cp.async.bulk.tensor". Reports what `lowlpCpuCopyBulk` does, and tensors
/// for which there is no tensor map.
LOWLP_CPU_EXPORT void lowlpCpuCopyTensor(LowlpThread *thread,
                                         const LowlpTensorCopy *copy,
                                         const char *site);

//===----------------------------------------------------------------------===//
// Products of warpgroups
//===----------------------------------------------------------------------===//

// PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". Each function
// reports threads that are in no whole warpgroup, and lanes of a warp that do
// not come here together.

/// wgmma.fence: products that this warp begins may take the registers as they
/// are. One is due in each group of products.
LOWLP_CPU_EXPORT void lowlpCpuWgmmaFence(LowlpThread *thread, const char *site);

/// wgmma.mma_async with A in registers: begins a product of 64 x K by K x `n`
/// and returns the number of its accumulators, for further calls. `kind` is a
/// `LowlpMmaKind` but that of bits; the 16 bytes at `a` are the lane's fragment
/// of A. B lies in shared memory from `base + byteOffset` on, a multiple of 16,
/// as `swizzleBytes` (0, 32, 64 or 128), `leadingBytes` and `strideBytes` of
/// its descriptor say. The accumulators begin with the `n` / 2 at `c`, or with
/// `accumulators` in flight if `c` is null, or with zero if `accumulators` is 0
/// too. A and C are read now. B is read, and the product added, by each warp at
/// its wait. Reports a missing fence, a tile outside of shared memory, bytes
/// that were never written, that a copy has yet to bring, or that no fence of
/// proxies and barrier makes known; a warpgroup whose warps do not all come
/// here; and accumulators used twice. Until the wait, whoever writes to B is
/// reported.
LOWLP_CPU_EXPORT int64_t lowlpCpuWgmma(LowlpThread *thread, int32_t kind,
                                       int32_t n, const void *a,
                                       const void *base, int64_t byteOffset,
                                       int64_t swizzleBytes,
                                       int64_t leadingBytes,
                                       int64_t strideBytes, const void *c,
                                       int64_t accumulators, const char *site);

/// wgmma.commit_group and wgmma.wait_group.
LOWLP_CPU_EXPORT void lowlpCpuWgmmaCommit(LowlpThread *thread,
                                          const char *site);
LOWLP_CPU_EXPORT void lowlpCpuWgmmaWait(LowlpThread *thread,
                                        int64_t numInFlight, const char *site);

/// Writes the lane's accumulators to `words`. Reports accumulators that a
/// product in flight is still going to change, or that were used before.
LOWLP_CPU_EXPORT void lowlpCpuWgmmaTake(LowlpThread *thread,
                                        int64_t accumulators, void *words,
                                        const char *site);

/// One entry of the table of the functions above.
typedef struct LowlpCpuSymbol {
  const char *name;
  void *address;
} LowlpCpuSymbol;

/// The functions above by name, for a JIT to define. Ensures: `*count` entries,
/// valid for the life of the process.
LOWLP_CPU_EXPORT const LowlpCpuSymbol *lowlpCpuSymbols(int64_t *count);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // LOWLP_CPU_ABI_H
