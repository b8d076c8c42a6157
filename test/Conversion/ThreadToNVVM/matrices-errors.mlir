// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --lowlp-convert-thread-to-nvvm="arch=sm_80"

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @small_floats(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>} {
      // expected-error @below {{'simt.mma' op needs mma.sync.m16n8k32 e4m3, e5m2, which sm_80 does not have; it is on sm_89,}}
      %d = simt.mma %a as f8E5M2, %b as f8E4M3FN, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
      gpu.return
    }
  }
}

// -----

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @store(%v: vector<4xi32>, %offset: i64) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %p = simt.shared_memory 0 : !simt.ptr<shared>
      // expected-error @below {{'simt.stmatrix' op needs stmatrix.m8n8 b16, which sm_80 does not have; it is on sm_90,}}
      simt.stmatrix %v, %p[%offset] : vector<4xi32>, !simt.ptr<shared>
      gpu.return
    }
  }
}
