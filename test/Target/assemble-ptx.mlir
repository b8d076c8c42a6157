// The PTX of every architecture that the assembler knows is accepted by it, and comes out the same twice.
// REQUIRES: ptxas
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_80 --lowlp-emit-ptx=arch=sm_80 | sed -n 's/.*assembly = "\(.*\)">.*/\1/p' | sed 's/\\0A/\n/g; s/\\09/\t/g; s/\\22/"/g' > %t.80.ptx
// RUN: %ptxas -arch=sm_80 %t.80.ptx -o %t.80.cubin
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --lowlp-emit-ptx | sed -n 's/.*assembly = "\(.*\)">.*/\1/p' | sed 's/\\0A/\n/g; s/\\09/\t/g; s/\\22/"/g' > %t.90.ptx
// RUN: %ptxas -arch=sm_90a %t.90.ptx -o %t.90.cubin
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm --lowlp-emit-ptx | sed -n 's/.*assembly = "\(.*\)">.*/\1/p' | sed 's/\\0A/\n/g; s/\\09/\t/g; s/\\22/"/g' > %t.again.ptx
// RUN: cmp %t.90.ptx %t.again.ptx
// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_120a --lowlp-emit-ptx=arch=sm_120a | sed -n 's/.*assembly = "\(.*\)">.*/\1/p' | sed 's/\\0A/\n/g; s/\\09/\t/g; s/\\22/"/g' > %t.120.ptx
// RUN: %ptxas -arch=sm_120a %t.120.ptx -o %t.120.cubin

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @work(%p: !simt.ptr<global>, %q: !simt.ptr<global>, %n: i32) kernel attributes {
        known_block_size = array<i32: 64, 1, 1>} {
      %thread = gpu.thread_id x
      %block = gpu.block_id y
      %sum = arith.addi %thread, %block : index
      %index = arith.index_cast %sum : index to i64
      %sixteen = arith.constant 16 : i64
      %offset = arith.muli %index, %sixteen : i64
      %bytes = simt.load %p[%offset] align 1 : !simt.ptr<global> -> vector<3xi8>
      %words = simt.load %p[%offset] align 4 : !simt.ptr<global> -> vector<3xi32>
      %a = simt.load %q[%offset] align 16 : !simt.ptr<global> -> vector<8xbf16>
      %b = simt.load %q[%offset] align 8 : !simt.ptr<global> -> vector<4xbf16>
      %zero = arith.constant dense<0.0> : vector<4xf32>
      %first = arith.constant 0 : index
      %one = arith.constant 1 : index
      %end = arith.index_cast %n : i32 to index
      %d = scf.for %i = %first to %end step %one iter_args(%c = %zero) -> (vector<4xf32>) {
        %next = simt.mma %a, %b, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
        scf.yield %next : vector<4xf32>
      }
      gpu.barrier
      %narrow = arith.truncf %d : vector<4xf32> to vector<4xbf16>
      simt.store %narrow, %q[%offset] align 8 : vector<4xbf16>, !simt.ptr<global>
      simt.store %bytes, %p[%offset] align 1 : vector<3xi8>, !simt.ptr<global>
      simt.store %words, %p[%offset] align 4 : vector<3xi32>, !simt.ptr<global>
      %lane = arith.constant 4 : i32
      %width = arith.constant 32 : i32
      %word = vector.extract %words[2] : i32 from vector<3xi32>
      %other, %valid = gpu.shuffle down %word, %lane, %width : i32
      %old = simt.atomic_rmw exchange %other, %p[%offset] : i32, !simt.ptr<global>
      gpu.return
    }
  }
}
