// RUN: lowlp-opt %s --lowlp-convert-to-thread --canonicalize --cse | FileCheck %s

// The pair's 8 bits go to bits 7 to 14 of the address, 32 copies of 4 bytes apart; the copy is the thread's lane.
// CHECK-LABEL: gpu.func @pairs
// CHECK-DAG: %[[TABLE:.*]] = simt.shared_memory 0 : <shared>
// CHECK-DAG: %[[MASK:.*]] = arith.constant 32640 : i32
// CHECK-DAG: %[[LANES:.*]] = arith.constant 124 : i32
// CHECK: %[[COPY:.*]] = arith.andi %{{.*}}, %[[LANES]] : i32
// CHECK: %[[UP:.*]] = arith.shli %[[WORD:.*]], %c7_i32 : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.andi %[[UP]], %[[MASK]] : i32
// CHECK-NEXT: %[[ADDRESS:.*]] = arith.ori %[[FIRST]], %[[COPY]] : i32
// CHECK-NEXT: %[[OFFSET:.*]] = arith.extui %[[ADDRESS]] : i32 to i64
// CHECK-NEXT: simt.load %[[TABLE]][%[[OFFSET]]] align 4 : <shared> -> vector<2xf16>
// CHECK-NEXT: %[[DOWN:.*]] = arith.shrui %[[WORD]], %c1_i32 : i32
// CHECK-NEXT: arith.andi %[[DOWN]], %[[MASK]] : i32
!codes = !lowlp.tile<256xui4, spatial(32).local(8)>
!values = !lowlp.tile<256xf16, spatial(32).local(8)>
lowlp.kernel @pairs(%p: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [256] : !lowlp.ptr<ui4> -> !lowlp.global<256xui4>
  %w = lowlp.view_global %q shape [256] : !lowlp.ptr<f16> -> !lowlp.global<256xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<256x32x2xf16>
  %codes = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<256xui4> -> !codes
  %t = lowlp.lookup_pairs %s, %codes : !lowlp.shared<256x32x2xf16>, !codes -> !values
  lowlp.store_global %t, %w[%c0] in_bounds : !values, !lowlp.global<256xf16>
  lowlp.return
}

// Pair 5 of codes of 3 bits lies in two words: one funnel shift takes it to its place.
// CHECK-LABEL: gpu.func @split
// CHECK: %[[PAIR:.*]] = simt.funnel_shift %{{.*}}, %{{.*}}, %c28_i32 right
// CHECK-NEXT: arith.andi %[[PAIR]], %c252_i32 : i32
// CHECK-NEXT: arith.extui
// CHECK-NEXT: simt.load %{{.*}} align 4 : <shared> -> vector<2xbf16>
!words = !lowlp.tile<96xui32, spatial(32).local(3)>
!threes = !lowlp.tile<1024xui3, spatial(32).local(32)>
!brains = !lowlp.tile<1024xbf16, spatial(32).local(32)>
lowlp.kernel @split(%p: !lowlp.ptr<ui32>, %q: !lowlp.ptr<bf16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [96] : !lowlp.ptr<ui32> -> !lowlp.global<96xui32>
  %w = lowlp.view_global %q shape [1024] : !lowlp.ptr<bf16> -> !lowlp.global<1024xbf16>
  %s = lowlp.alloc_shared : !lowlp.shared<64x1x2xbf16>
  %words = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<96xui32> -> !words
  %codes = lowlp.view %words : !words -> !threes
  %t = lowlp.lookup_pairs %s, %codes : !lowlp.shared<64x1x2xbf16>, !threes -> !brains
  lowlp.store_global %t, %w[%c0] in_bounds : !brains, !lowlp.global<1024xbf16>
  lowlp.return
}

// Two slices: each goes to its own bits of the address.
// CHECK-LABEL: gpu.func @slices
// CHECK: %[[LOW:.*]] = arith.andi %{{.*}}, %c60_i32 : i32
// CHECK: %[[HIGH:.*]] = arith.andi %{{.*}}, %c192_i32 : i32
// CHECK-NEXT: arith.ori %[[HIGH]], %[[LOW]] : i32
!low = !lowlp.tile<64xui2, spatial(32).local(2)>
!high = !lowlp.tile<64xui1, spatial(32).local(2)>
!half = !lowlp.tile<64xf16, spatial(32).local(2)>
lowlp.kernel @slices(%p: !lowlp.ptr<ui2>, %r: !lowlp.ptr<ui1>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui2> -> !lowlp.global<64xui2>
  %x = lowlp.view_global %r shape [64] : !lowlp.ptr<ui1> -> !lowlp.global<64xui1>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<64x1x2xf16>
  %low = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui2> -> !low
  %high = lowlp.load_global %x[%c0] in_bounds : !lowlp.global<64xui1> -> !high
  %t = lowlp.lookup_pairs %s, %low, %high : !lowlp.shared<64x1x2xf16>, !low, !high -> !half
  lowlp.store_global %t, %w[%c0] in_bounds : !half, !lowlp.global<64xf16>
  lowlp.return
}

// Single codes: bit 0 of the code is bit 1 of the address, the others lie above the 32 copies.
// CHECK-LABEL: gpu.func @entries
// CHECK-DAG: %[[HALF:.*]] = arith.andi %{{.*}}, %c2_i32 : i32
// CHECK-DAG: %[[REST:.*]] = arith.andi %{{.*}}, %c16256_i32 : i32
// CHECK-NOT: simt.assert
// CHECK: simt.load %{{.*}} align 2 : <shared> -> f16
!copies = !lowlp.shared<256x32xf16, local(128, 32).local(2, 1)>
!bytes = !lowlp.tile<64xui8, spatial(32).local(2)>
lowlp.kernel @entries(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %s = lowlp.alloc_shared : !copies
  %codes = lowlp.load_global %v[%c0] : !lowlp.global<64xui8> -> !bytes
  %t = lowlp.lookup %s, %codes : !copies, !bytes -> !half
  lowlp.store_global %t, %w[%c0] : !half, !lowlp.global<64xf16>
  lowlp.return
}

// Single codes in words of their own: no bit of the code is apart from the others.
// CHECK-LABEL: gpu.func @words
// CHECK: %[[COPY:.*]] = arith.andi %{{.*}}, %c124_i32 : i32
// CHECK: %[[CODE:.*]] = arith.andi %{{.*}}, %c32640_i32 : i32
// CHECK-NEXT: arith.ori %[[CODE]], %[[COPY]] : i32
// CHECK-NEXT: arith.extui
// CHECK-NEXT: simt.load %{{.*}} align 2 : <shared> -> f16
lowlp.kernel @words(%p: !lowlp.ptr<ui8>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui8> -> !lowlp.global<64xui8>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<256x64xf16>
  %codes = lowlp.load_global %v[%c0] : !lowlp.global<64xui8> -> !bytes
  %t = lowlp.lookup %s, %codes : !lowlp.shared<256x64xf16>, !bytes -> !half
  lowlp.store_global %t, %w[%c0] : !half, !lowlp.global<64xf16>
  lowlp.return
}

// 16 codes of 7 bits in three slices: what comes to bits 0 to 6 of the bytes of four words is a byte of the address.
// CHECK-LABEL: gpu.func @lines
// CHECK-DAG: %[[LANE:.*]] = arith.andi %{{.*}}, %c124_i32 : i32
// CHECK-DAG: %[[EVEN:.*]] = simt.prmt %[[N0:.*]], %[[N1:.*]] selector 25632
// CHECK-DAG: %[[ODD:.*]] = simt.prmt %[[N0]], %[[N1]] selector 30001
// CHECK-DAG: arith.andi %[[EVEN]], %c252645135_i32 : i32
// CHECK-DAG: %[[SPREAD:.*]] = simt.prmt %{{.*}}, %c0_i32 selector 16704
// CHECK-DAG: %[[UP:.*]] = arith.shli %[[SPREAD]], %c4_i32 : i32
// CHECK-DAG: %[[NIBBLES:.*]] = arith.ori %[[SPREAD]], %[[UP]] : i32
// CHECK-DAG: %[[BIT:.*]] = arith.shli %[[NIBBLES]], %c6_i32 : i32
// CHECK-DAG: %[[HIGH:.*]] = arith.andi %[[BIT]], %c1077952576_i32 : i32
// CHECK-DAG: %[[WORD:.*]] = arith.ori %[[HIGH]], %{{.*}} : i32
// CHECK: %[[ADDRESS:.*]] = simt.prmt %[[WORD]], %[[LANE]] selector 30468
// CHECK-NEXT: %[[OFFSET:.*]] = arith.extui %[[ADDRESS]] : i32 to i64
// CHECK-NEXT: simt.load %{{.*}}[%[[OFFSET]]] align 2 : <shared> -> f16
// CHECK-COUNT-15: simt.load %{{.*}} align 2 : <shared> -> f16
!nibbles = !lowlp.tile<512xui4, spatial(32).local(16)>
!crumbs = !lowlp.tile<512xui2, spatial(32).local(16)>
!bits = !lowlp.tile<512xui1, spatial(32).local(16)>
!many = !lowlp.tile<512xf16, spatial(32).local(16)>
lowlp.kernel @lines(%p: !lowlp.ptr<ui4> {lowlp.align = 16 : i64}, %r: !lowlp.ptr<ui2> {lowlp.align = 16 : i64}, %b: !lowlp.ptr<ui1> {lowlp.align = 16 : i64},
    %q: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [512] : !lowlp.ptr<ui4> -> !lowlp.global<512xui4>
  %x = lowlp.view_global %r shape [512] : !lowlp.ptr<ui2> -> !lowlp.global<512xui2>
  %y = lowlp.view_global %b shape [512] : !lowlp.ptr<ui1> -> !lowlp.global<512xui1>
  %w = lowlp.view_global %q shape [512] : !lowlp.ptr<f16> -> !lowlp.global<512xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<128x128xf16>
  %four = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<512xui4> -> !nibbles
  %two = lowlp.load_global %x[%c0] in_bounds : !lowlp.global<512xui2> -> !crumbs
  %one = lowlp.load_global %y[%c0] in_bounds : !lowlp.global<512xui1> -> !bits
  %t = lowlp.lookup %s, %four, %two, %one : !lowlp.shared<128x128xf16>, !nibbles, !crumbs, !bits -> !many
  lowlp.store_global %t, %w[%c0] in_bounds : !many, !lowlp.global<512xf16>
  lowlp.return
}

// Codes of 1 bit choose between two registers: their bits become the signs of bytes.
// CHECK-LABEL: gpu.func @registers
// CHECK: %[[BOTH:.*]] = simt.load %{{.*}} align 4 : <shared> -> i32
// CHECK: %[[FIRST:.*]] = simt.prmt %[[BOTH]], %[[BOTH]] selector 4112
// CHECK: %[[SECOND:.*]] = simt.prmt %[[BOTH]], %[[BOTH]] selector 12850
// CHECK: %[[DIFFERENCE:.*]] = arith.xori %[[FIRST]], %[[SECOND]] : i32
// CHECK-NOT: simt.load %{{.*}} <shared>
// CHECK: %[[LOW:.*]] = arith.shli %[[WORD:.*]], %c7_i32 : i32
// CHECK: %[[HIGH:.*]] = arith.shli %[[WORD]], %c6_i32 : i32
// CHECK: %[[MASK:.*]] = simt.prmt %[[LOW]], %[[HIGH]] selector 52360
// CHECK: %[[CHANGE:.*]] = arith.andi %[[MASK]], %[[DIFFERENCE]] : i32
// CHECK: arith.xori %[[FIRST]], %[[CHANGE]] : i32
lowlp.kernel @registers(%r: !lowlp.ptr<ui1>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %x = lowlp.view_global %r shape [64] : !lowlp.ptr<ui1> -> !lowlp.global<64xui1>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<2xf16>
  %codes = lowlp.load_global %x[%c0] in_bounds : !lowlp.global<64xui1> -> !high
  %t = lowlp.lookup %s, %codes : !lowlp.shared<2xf16>, !high -> !half
  lowlp.store_global %t, %w[%c0] in_bounds : !half, !lowlp.global<64xf16>
  lowlp.return
}

// A code that may name no entry is tested.
// CHECK-LABEL: gpu.func @few
// CHECK: %[[CODE:.*]] = arith.index_castui %{{.*}} : i32 to index
// CHECK: %[[IS:.*]] = arith.cmpi ult, %[[CODE]], %c12 : index
// CHECK: simt.assert %[[IS]], "a code names no entry of the table"
// CHECK: simt.load %{{.*}} align 2 : <shared> -> f16
!fours = !lowlp.tile<64xui4, spatial(32).local(2)>
lowlp.kernel @few(%p: !lowlp.ptr<ui4>, %q: !lowlp.ptr<f16>)
    attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<ui4> -> !lowlp.global<64xui4>
  %w = lowlp.view_global %q shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  %s = lowlp.alloc_shared : !lowlp.shared<12xf16>
  %codes = lowlp.load_global %v[%c0] in_bounds : !lowlp.global<64xui4> -> !fours
  %t = lowlp.lookup %s, %codes : !lowlp.shared<12xf16>, !fours -> !half
  lowlp.store_global %t, %w[%c0] in_bounds : !half, !lowlp.global<64xf16>
  lowlp.return
}

// Four copies of a pair are written at once: 128 stores, in two rounds of 96 threads. All entries are loaded before.
// CHECK-LABEL: gpu.func @expand
// CHECK: %[[A:.*]] = simt.load %{{.*}} align 2 : <shared> -> f16
// CHECK: %[[B:.*]] = simt.load %{{.*}} align 2 : <shared> -> f16
// CHECK: %[[W0:.*]] = vector.from_elements %[[A]], %[[B]], %[[A]], %[[B]], %[[A]], %[[B]], %[[A]], %[[B]] : vector<8xf16>
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %c1536_i32 : i32
// CHECK-COUNT-2: simt.load %{{.*}} align 2 : <shared> -> f16
// CHECK: %[[W1:.*]] = vector.from_elements
// CHECK-NOT: scf.if
// CHECK: simt.store %[[W0]], %{{.*}} align 16 : vector<8xf16>, <shared>
// CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[NEXT]], %c2048_i32 : i32
// CHECK: scf.if %[[EXISTS]]
// CHECK: simt.store %[[W1]], %{{.*}} align 16 : vector<8xf16>, <shared>
lowlp.kernel @expand() attributes {grid = affine_map<() -> (1)>, num_threads = 96 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<4xf16>
  %e = lowlp.alloc_shared : !lowlp.shared<16x32x2xf16>
  lowlp.expand_table %s, %e : !lowlp.shared<4xf16>, !lowlp.shared<16x32x2xf16>
  lowlp.return
}

// Of 32 rounds eight at a time are written, in a loop.
// CHECK-LABEL: gpu.func @expand_much
// CHECK: scf.for %[[ROUND:.*]] = %c0_i32 to %c16384_i32 step %c4096_i32
// CHECK-COUNT-16: simt.load %{{.*}} align 2 : <shared> -> f16
// CHECK-NOT: scf.if
// CHECK-COUNT-8: simt.store %{{.*}} align 16 : vector<8xf16>, <shared>
lowlp.kernel @expand_much() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %s = lowlp.alloc_shared : !lowlp.shared<16xf16>
  %e = lowlp.alloc_shared : !lowlp.shared<256x16x2xf16>
  lowlp.expand_table %s, %e : !lowlp.shared<16xf16>, !lowlp.shared<256x16x2xf16>
  lowlp.return
}
