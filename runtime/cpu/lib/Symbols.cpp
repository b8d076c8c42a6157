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
      LOWLP_CPU_SYMBOL(lowlpCpuCheckAccess),
      LOWLP_CPU_SYMBOL(lowlpCpuAssert),
      LOWLP_CPU_SYMBOL(lowlpCpuMma),
      LOWLP_CPU_SYMBOL(lowlpCpuBarrier),
      LOWLP_CPU_SYMBOL(lowlpCpuShuffle),
      LOWLP_CPU_SYMBOL(lowlpCpuAtomic),
      LOWLP_CPU_SYMBOL(lowlpCpuSharedMemory),
      LOWLP_CPU_SYMBOL(lowlpCpuAtomicAdd16),
      LOWLP_CPU_SYMBOL(lowlpCpuAtomicCas),
      LOWLP_CPU_SYMBOL(lowlpCpuAwait),
      LOWLP_CPU_SYMBOL(lowlpCpuRelease),
      LOWLP_CPU_SYMBOL(lowlpCpuPrint),
  };
  *count = sizeof(symbols) / sizeof(symbols[0]);
  return symbols;
}
