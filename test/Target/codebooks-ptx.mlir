// RUN: lowlp-opt %S/../../examples/vq_gemv.mlir --lowlp-to-ptx="arch=sm_90a" | sed 's/\\0A/\n/g; s/\\09/ /g' | FileCheck %s

// One step of 32 of K: 2 codes a lane in each of two books. For each one instruction makes the address, and one load of 16 bytes
// reads the entry; book 1 begins 128 bytes later in the line. Nothing is exchanged, and nothing spilled.
// CHECK-NOT: .local
// CHECK-NOT: shfl
// CHECK: bar.sync
// CHECK-NOT: shfl
// CHECK: prmt.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[SLOT:%r[0-9]+]], 30468;
// CHECK: ld.shared.v4.b32 {{.*}}, [%rd[[#]]];
// CHECK: prmt.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[SLOT]], 30484;
// CHECK: ld.shared.v4.b32 {{.*}}, [%rd[[#]]];
// CHECK: prmt.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[SLOT]], 30468;
// CHECK: ld.shared.v4.b32 {{.*}}, [%rd[[#]]+128];
// CHECK: prmt.b32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[SLOT]], 30484;
// CHECK: ld.shared.v4.b32 {{.*}}, [%rd[[#]]+128];
// CHECK-NOT: prmt
// CHECK-NOT: ld.shared
// CHECK-COUNT-4: mma.sync
// CHECK-NOT: mma.sync
// CHECK-NOT: shfl
