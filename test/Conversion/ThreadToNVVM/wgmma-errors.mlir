// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_90 --verify-diagnostics

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @product(%s: !simt.ptr<shared>, %i: i64, %a: vector<8xf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
      // expected-error @below {{'simt.wgmma_fence' op needs wgmma.mma_async, which sm_90 does not have; it is on sm_90a}}
      %f = simt.wgmma_fence of %a : vector<8xf16>
      // expected-error @below {{'simt.wgmma' op needs wgmma.mma_async}}
      %t = simt.wgmma %f, %s[%i] swizzle 128 leading 16 stride 1024 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
      // expected-error @below {{'simt.wgmma_commit' op needs wgmma.mma_async}}
      simt.wgmma_commit
      // expected-error @below {{'simt.wgmma_wait' op needs wgmma.mma_async}}
      %d = simt.wgmma_wait 0 takes %t : (!simt.accumulators<vector<4xf32>>) -> vector<4xf32>
      gpu.return
    }
  }
}
