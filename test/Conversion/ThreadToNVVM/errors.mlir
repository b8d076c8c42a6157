// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --split-input-file --verify-diagnostics

gpu.module @kernels {
  // expected-error @below {{kernel must have known_block_size}}
  gpu.func @unsized() kernel {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{kernel must have no attributions}}
  gpu.func @attributed() workgroup(%w: memref<4xf32, 3>) kernel
      attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @one {
  gpu.func @twice() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}
gpu.module @two {
  // expected-error @below {{kernel 'twice' exists in another gpu.module}}
  gpu.func @twice() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @matrix(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %0 = arith.constant 0 : i64
    // expected-error @below {{value in memory must be a scalar or a vector of rank 1 and fixed length, but is 'vector<2x3xi32>'}}
    // expected-error @below {{failed to legalize operation 'simt.load'}}
    %v = simt.load %p[%0] align 4 : !simt.ptr<global> -> vector<2x3xi32>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unknown(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c = arith.constant 0.0 : f32
    // expected-error @below {{failed to legalize operation 'gpu.all_reduce'}}
    %sum = gpu.all_reduce add %c {} : (f32) -> f32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @loop(%n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    // expected-error @below {{failed to legalize operation 'scf.forall'}}
    scf.forall (%i) in (%n) {
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @scalable(%p: !simt.ptr<global>, %o: i64) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    // expected-error @below {{a vector of rank 1 and fixed length, but is 'vector<[4]xi32>'}}
    // expected-error @below {{failed to legalize operation 'simt.load'}}
    %v = simt.load %p[%o] align 4 : !simt.ptr<global> -> vector<[4]xi32>
    gpu.return
  }
}
