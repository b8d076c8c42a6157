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

gpu.module @kernels {
  // expected-error @below {{gpu.func is of the thread level, and PTX is made of the llvm and nvvm dialects; lowlp-convert-thread-to-nvvm lowers it first}}
  gpu.func @high() kernel {
    gpu.return
  }
}

// -----

// expected-error @below {{lowlp.kernel is of the block level, and PTX is made of the llvm and nvvm dialects; lowlp-to-ptx lowers it first}}
lowlp.kernel @block() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// What LLVM's translation does not know.
// expected-error @below {{cannot become PTX: translation to LLVM IR failed}}
gpu.module @kernels {
  llvm.func @wrong(%a: i32) {
    // expected-error @below {{cannot be converted to LLVM IR}}
    %b = arith.addi %a, %a : i32
    llvm.return
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
