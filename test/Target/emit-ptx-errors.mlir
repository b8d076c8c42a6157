// RUN: lowlp-opt %s --lowlp-emit-ptx --split-input-file --verify-diagnostics

// expected-error @below {{was lowered for sm_80, but PTX is asked for sm_90a}}
gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
  llvm.func @nothing() attributes {nvvm.kernel} {
    llvm.return
  }
}

// -----

// An error at which LLVM's backend would end the process.
// expected-error @below {{cannot become PTX: Cannot select: intrinsic %llvm.nvvm.tcgen05}}
gpu.module @kernels {
  llvm.func @wrong() attributes {nvvm.kernel} {
    llvm.call_intrinsic "llvm.nvvm.tcgen05.fence.before.thread.sync"() : () -> ()
    llvm.return
  }
}

// -----

// expected-error @below {{cannot become PTX: translation to LLVM IR failed}}
gpu.module @kernels {
  // expected-error @below {{unsupported GPU operation: gpu.func}}
  // expected-error @below {{LLVM Translation failed for operation: gpu.func}}
  gpu.func @high() kernel {
    gpu.return
  }
}

// -----

// An error that LLVM reports in its context, at which it would end the process.
// expected-error @below {{cannot become PTX: can't parse integer attribute}}
gpu.module @kernels {
  llvm.func @wrong() attributes {nvvm.kernel, nvvm.maxntid = array<i32: -32>} {
    llvm.return
  }
}
