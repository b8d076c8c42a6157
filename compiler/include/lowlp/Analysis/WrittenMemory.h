//===- WrittenMemory.h - what a kernel may write to -------------*- C++ -*-===//
#ifndef LOWLP_ANALYSIS_WRITTENMEMORY_H
#define LOWLP_ANALYSIS_WRITTENMEMORY_H

#include "lowlp/IR/Lowlp.h"

namespace lowlp {

/// Whether the kernel may write through parameter `index`. A pointer that is
/// chosen at run time may be any of them.
bool isWritten(KernelOp kernel, unsigned index);

} // namespace lowlp

#endif // LOWLP_ANALYSIS_WRITTENMEMORY_H
