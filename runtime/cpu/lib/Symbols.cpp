//===- Symbols.cpp - The ABI functions by name ----------------------------===//

#include "lowlp/CPU/ABI.h"

#define LOWLP_CPU_SYMBOL(function)                                             \
  {#function, reinterpret_cast<void *>(&function)}

const LowlpCpuSymbol *lowlpCpuSymbols(int64_t *count) {
  static const LowlpCpuSymbol symbols[] = {
      LOWLP_CPU_SYMBOL(lowlpCpuThreadId),
      LOWLP_CPU_SYMBOL(lowlpCpuBlockId),
      LOWLP_CPU_SYMBOL(lowlpCpuBlockDim),
      LOWLP_CPU_SYMBOL(lowlpCpuGridDim),
      LOWLP_CPU_SYMBOL(lowlpCpuPoll),
      LOWLP_CPU_SYMBOL(lowlpCpuCheckAccess),
      LOWLP_CPU_SYMBOL(lowlpCpuAssert),
      LOWLP_CPU_SYMBOL(lowlpCpuMma),
      LOWLP_CPU_SYMBOL(lowlpCpuBarrier),
      LOWLP_CPU_SYMBOL(lowlpCpuWarpgroupBarrier),
      LOWLP_CPU_SYMBOL(lowlpCpuLeaveBarriers),
      LOWLP_CPU_SYMBOL(lowlpCpuShuffle),
      LOWLP_CPU_SYMBOL(lowlpCpuAtomic),
      LOWLP_CPU_SYMBOL(lowlpCpuSharedMemory),
      LOWLP_CPU_SYMBOL(lowlpCpuLoadMatrix),
      LOWLP_CPU_SYMBOL(lowlpCpuStoreMatrix),
      LOWLP_CPU_SYMBOL(lowlpCpuAtomicAdd16),
      LOWLP_CPU_SYMBOL(lowlpCpuAtomicCas),
      LOWLP_CPU_SYMBOL(lowlpCpuAwait),
      LOWLP_CPU_SYMBOL(lowlpCpuRelease),
      LOWLP_CPU_SYMBOL(lowlpCpuTrackOrder),
      LOWLP_CPU_SYMBOL(lowlpCpuMbarrierInit),
      LOWLP_CPU_SYMBOL(lowlpCpuFenceMbarrierInit),
      LOWLP_CPU_SYMBOL(lowlpCpuMbarrierArrive),
      LOWLP_CPU_SYMBOL(lowlpCpuMbarrierWait),
      LOWLP_CPU_SYMBOL(lowlpCpuFenceAsync),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyAsync),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyAsyncCommit),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyAsyncWait),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyBulk),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyBulkToGlobal),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyBulkCommit),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyBulkWait),
      LOWLP_CPU_SYMBOL(lowlpCpuCopyTensor),
      LOWLP_CPU_SYMBOL(lowlpCpuPrint),
      LOWLP_CPU_SYMBOL(lowlpCpuWgmmaFence),
      LOWLP_CPU_SYMBOL(lowlpCpuWgmma),
      LOWLP_CPU_SYMBOL(lowlpCpuWgmmaCommit),
      LOWLP_CPU_SYMBOL(lowlpCpuWgmmaWait),
      LOWLP_CPU_SYMBOL(lowlpCpuWgmmaTake),
  };
  *count = sizeof(symbols) / sizeof(symbols[0]);
  return symbols;
}
