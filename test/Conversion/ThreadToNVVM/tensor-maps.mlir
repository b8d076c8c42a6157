// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm | FileCheck %s

// A map whose copies go to places that are loaded from shared memory is fetched as the kernel begins; others are not.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    // CHECK-LABEL: llvm.func @copies(
    // CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: i64, %[[EARLY:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[LATE:[a-z0-9]+]]: !llvm.ptr {
    // CHECK-NEXT: llvm.inline_asm {{.*}}mov.u32 thread, %tid.x;{{.*}}@first prefetch.tensormap [$0];{{.*}} "l,~{memory}" %[[LATE]] : (!llvm.ptr)
    // CHECK-NOT: prefetch.tensormap
    gpu.func @copies(%g: !simt.ptr<global>, %i: i64, %early: !simt.tensor_map, %late: !simt.tensor_map) kernel attributes {
        known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<() -> (1)>, lowlp.tensor_maps = [{}, {}]} {
      %s = simt.shared_memory 0 : !simt.ptr<shared>
      %loaded = simt.load %s[%i] align 8 : !simt.ptr<shared> -> i64
      %place = arith.muli %loaded, %i : i64
      // CHECK: cp.async.bulk.tensor.1d
      simt.copy_tensor %early of %g extents [%i] strides [] at [%i] to %s[%i] box [64] element_bytes 2 swizzle 0
        signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      // CHECK: cp.async.bulk.tensor.1d
      simt.copy_tensor %late of %g extents [%i] strides [] at [%place] to %s[%i] box [64] element_bytes 2 swizzle 0
        signals %s[%i] : !simt.ptr<global> to !simt.ptr<shared>, !simt.ptr<shared>
      gpu.return
    }
  }
}
