// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a ring must be a shared tile of at least 2 dimensions, but is 'f16'}}
#r = #lowlp.rings<all_threads fills [f16]>

// -----

// expected-error @below {{a ring must have 2 to 9 places, but '!lowlp.shared<10x64xf16>' has 10}}
#r = #lowlp.rings<all_threads fills [!lowlp.shared<10x64xf16>]>

// -----

// expected-error @below {{rings must have the same number of places: 3, but '!lowlp.shared<4x64xf16>' has 4}}
#r = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>, !lowlp.shared<4x64xf16>]>

// -----

// expected-error @below {{the number of a ring must be at least 0, but is -1}}
#r = #lowlp.ring<-1 at [0]>

// -----

// expected-error @below {{a position must have a number of at least 0 for each dimension, but is [0, -64]}}
#r = #lowlp.ring<0 at [0, -64]>

// -----

// expected-error @below {{multicast needs a producer_warp, but copies are made by all_threads}}
#r = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>] multicast [0]>

// -----

// expected-error @below {{multicast must list numbers of the 1 rings in ascending order, but is [0, 0]}}
#r = #lowlp.rings<producer_warp fills [!lowlp.shared<3x64xf16>] multicast [0, 0]>

// -----

// expected-error @below {{multicast must go to 2 to 8 blocks, but goes to 1}}
#m = #lowlp.multicast<1>

// -----

lowlp.kernel @cluster() attributes {grid = affine_map<() -> (4)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 4>} {
  // expected-error @below {{'lowlp.alloc_mbarriers' op copies for 2 blocks, but the cluster of the kernel's schedule is 4}}
  %b = lowlp.alloc_mbarriers arrivals 2 by_warps {lowlp.multicast = #lowlp.multicast<2>} : !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @arrivals() attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  // expected-error @below {{'lowlp.alloc_mbarriers' op mbarriers of 2 blocks must be by_warps, with as many arrivals of each, but arrivals are 3}}
  %b = lowlp.alloc_mbarriers arrivals 3 by_warps {lowlp.multicast = #lowlp.multicast<2>} : !lowlp.mbarriers<1>
  lowlp.return
}

// -----

lowlp.kernel @part(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %c0 = arith.constant 0 : index
  %s = lowlp.alloc_shared : !lowlp.shared<3x5x64xf16>
  %full = lowlp.alloc_mbarriers arrivals 1 : !lowlp.mbarriers<3>
  %v = lowlp.view_global %p shape [64, 64] : !lowlp.ptr<f16> -> !lowlp.global<64x64xf16>
  // expected-error @below {{'lowlp.copy_tensor' op shape must divide into parts for 2 blocks along its first dimensions, each a multiple of 128 bytes, but is 5, 64}}
  lowlp.copy_tensor %v[%c0, %c0] to %s[%c0, %c0, %c0] shape [5, 64] signals %full[%c0] {lowlp.multicast = #lowlp.multicast<2>}
    : !lowlp.global<64x64xf16> to !lowlp.shared<3x5x64xf16>, !lowlp.mbarriers<3>
  lowlp.return
}

// -----

func.func @arrive(%s: !simt.ptr<shared>, %i: i64) {
  // expected-error @below {{'simt.mbarrier_arrive' op arrives in all blocks of a cluster, which the lanes of a warp do: it must be by_warp}}
  simt.mbarrier_arrive %s[%i] {lowlp.multicast = #lowlp.multicast<2>} : !simt.ptr<shared>
  return
}

// -----

func.func @loads(%s: !simt.ptr<shared>, %i: i64) {
  // expected-error @below {{'simt.mbarrier_arrive' op only lanes that arrive as one wait for loads: with loads_ended it must be by_warp}}
  simt.mbarrier_arrive %s[%i] loads_ended : !simt.ptr<shared>
  return
}
