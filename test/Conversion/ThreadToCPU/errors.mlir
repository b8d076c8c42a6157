// RUN: lowlp-opt %s --lowlp-convert-thread-to-cpu --split-input-file --verify-diagnostics

// expected-note @below {{the other symbol}}
llvm.func @taken()
gpu.module @kernels {
  // expected-error @below {{kernel 'taken' has the name of another symbol}}
  gpu.func @taken() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{is not a kernel; on the CPU a gpu.module holds kernels only}}
  gpu.func @helper() {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @wide(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %0 = arith.constant 0 : i64
    %one = arith.constant 1 : i32
    %v = simt.load %p[%0] align 8 : !simt.ptr<global> -> i64
    // expected-error @below {{value must be i32 or f32 on the CPU, but is 'i64'}}
    // expected-error @below {{failed to legalize operation 'gpu.shuffle'}}
    %w, %valid = gpu.shuffle xor %v, %one, %one : i64
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @matrix(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %0 = arith.constant 0 : i64
    %v = arith.constant dense<0> : vector<2x3xi32>
    // expected-error @below {{value in memory must be a scalar or a vector of rank 1 and fixed length, but is 'vector<2x3xi32>'}}
    // expected-error @below {{failed to legalize operation 'simt.store'}}
    simt.store %v, %p[%0] align 4 : vector<2x3xi32>, !simt.ptr<global>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{argument 0 has a type without a form on the CPU: '!gpu.async.token'}}
  // expected-error @below {{failed to legalize operation 'gpu.func'}}
  gpu.func @token(%t: !gpu.async.token) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
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
