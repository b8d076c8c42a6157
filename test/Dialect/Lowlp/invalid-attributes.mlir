// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{'lowlp.kernel' op parameter 0: there is no attribute 'lowlp.algn'; the nearest is 'lowlp.align'}}
lowlp.kernel @kernel(%p: !lowlp.ptr<f16> {lowlp.algn = 16 : i64}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op there is no attribute 'lowlp.matrx_unit'; the nearest is the field of a kernel's schedule = #lowlp.schedule<matrix_unit = ...>}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.matrx_unit = "warpgroup"} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op there is no attribute 'lowlp.ping_pon'; the nearest is the field of a kernel's schedule = #lowlp.schedule<ping_pong = ...>}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.ping_pon = "no"} {
  lowlp.return
}

// -----

// expected-error @below {{'builtin.module' op there is no attribute 'lowlp.kernel'; the nearest is 'lowlp.kernels'}}
module attributes {lowlp.kernel = {}} {
}

// -----

lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op there is no attribute 'lowlp.stage'; the nearest is 'lowlp.stages'}}
  scf.for %i = %c0 to %c1 step %c1 {
  } {lowlp.stage = #lowlp.stages<2>}
  lowlp.return
}

// -----

lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @below {{'scf.for' op attribute 'lowlp.stages' must be a #lowlp.stages, but is 3 : i64}}
  scf.for %i = %c0 to %c1 step %c1 {
  } {lowlp.stages = 3 : i64}
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op has attribute 'lowlp.stages', which belongs to scf.for}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.stages = #lowlp.stages<2>} {
  lowlp.return
}

// -----

lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'arith.constant' op has attribute 'lowlp.free_layout', which belongs to an op whose result is a tile}}
  %c = arith.constant {lowlp.free_layout} 0 : index
  lowlp.return
}

// -----

lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{'lowlp.splat' op attribute 'lowlp.free_layout' must be given without a value, but is "no"}}
  %t = lowlp.splat %zero {lowlp.free_layout = "no"} : f32 -> !lowlp.tile<32xf32, spatial(32)>
  lowlp.return
}

// -----

lowlp.kernel @kernel(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'lowlp.view_global' op has attribute 'lowlp.align', which belongs to a parameter of a lowlp.kernel}}
  %v = lowlp.view_global %p shape [32] {lowlp.align = 16 : i64} : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  lowlp.return
}

// -----

// expected-error @below {{'func.func' op argument 0 has attribute 'lowlp.align'; only parameters of a lowlp.kernel have such}}
func.func private @f(%p: i64 {lowlp.align = 16 : i64})

// -----

// expected-error @below {{'func.func' op result 0 has attribute 'lowlp.name'; no result has attributes of lowlp}}
func.func private @f() -> (i64 {lowlp.name = "x"})

// -----

// expected-error @below {{'lowlp.kernel' op attribute 'lowlp.report' must be a dictionary, but is "good"}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.report = "good"} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op lowlp.report has no entry 'layout'; the nearest is 'layouts'}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.report = {layout = []}} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op the entry 'layouts' of lowlp.report must be an array of strings, but is [1]}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.report = {layouts = [1 : i64]}} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op has attribute 'lowlp.schedule', which belongs to gpu.func}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp.schedule = #lowlp.schedule<>} {
  lowlp.return
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op attribute 'lowlp.shared_bytes' must be an i64 of at least 0, but is -1 : i64}}
  gpu.func @f() kernel attributes {lowlp.shared_bytes = -1 : i64} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op attribute 'lowlp.grid' must be an affine_map, but is 1 : i64}}
  gpu.func @f() kernel attributes {lowlp.grid = 1 : i64} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op attribute 'lowlp.parameters' must be an array of dictionaries, but is ["x"]}}
  gpu.func @f() kernel attributes {lowlp.parameters = ["x"]} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op attribute 'lowlp.schedule' must be a #lowlp.schedule, but is 2 : i64}}
  gpu.func @f() kernel attributes {lowlp.schedule = 2 : i64} {
    gpu.return
  }
}

// -----

// expected-error @below {{'builtin.module' op attribute 'lowlp.kernels' must be a dictionary of dictionaries, but is {f = 1 : i64}}}
module attributes {lowlp.kernels = {f = 1 : i64}} {
}

// -----

// expected-error @below {{'lowlp.kernel' op has no attribute 'shedule'; the nearest is 'schedule'}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, shedule = #lowlp.schedule<cluster = 2>} {
  lowlp.return
}

// -----

// expected-error @below {{'lowlp.kernel' op has no attribute 'lowlp.'; the nearest is 'grid'}}
lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64, lowlp. = 2 : i64} {
  lowlp.return
}

// -----

lowlp.kernel @kernel(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  // expected-error @below {{'lowlp.load_global' op has no attribute 'in_bonds'; the nearest is 'in_bounds'}}
  %t = lowlp.load_global %v[%c0] {in_bonds} : !lowlp.global<32xf16> -> !lowlp.tile<32xf16, spatial(32)>
  lowlp.return
}

// -----

lowlp.kernel @kernel() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  // expected-error @below {{'lowlp.synchronize' op has no attribute 'all'}}
  lowlp.synchronize {all}
  lowlp.return
}
