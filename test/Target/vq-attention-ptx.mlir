// RUN: lowlp-opt %S/../../examples/vq_attention.mlir --lowlp-to-ptx="arch=sm_90a" | sed 's/\\0A/\n/g; s/\\09/ /g' > %t
// RUN: FileCheck %s --check-prefix=LOADS < %t
// RUN: FileCheck %s --check-prefix=ADDRESSES < %t
// RUN: FileCheck %s --check-prefix=PAIRS < %t

// Between the barriers of the books and that of the end lies the loop over tokens: 32 codes a lane of keys and values. Each is one
// instruction that makes the address, with a slot of the line that each column has, and one load of 8 bytes.
// LOADS-NOT: .local
// LOADS: bar.sync
// LOADS: bar.sync
// LOADS-NOT: st.shared
// LOADS-COUNT-32: ld.shared.v2.b32
// LOADS-NOT: ld.shared
// LOADS: st.shared
// LOADS: bar.sync
// LOADS-NOT: .local

// ADDRESSES: bar.sync
// ADDRESSES: bar.sync
// ADDRESSES-COUNT-32: prmt.b32 {{.*}}, {{30468|30484|30500|30516}};
// ADDRESSES-NOT: prmt.b32 {{.*}}, {{30468|30484|30500|30516}};

// Values of two tokens go into one word by one instruction.
// PAIRS: bar.sync
// PAIRS: bar.sync
// PAIRS-COUNT-32: prmt.b32 {{.*}}, {{21520|30258}};
// PAIRS-NOT: prmt.b32 {{.*}}, {{21520|30258}};
