// RUN: lowlp-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(lowlp.kernel(lowlp-pipeline))"

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  // expected-error @below {{'scf.for' op has lowlp.stages and no lowlp.rings, which lowlp-choose-rings chooses}}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] : !lowlp.global<?x128xf16> -> !t
  } {lowlp.stages = #lowlp.stages<3>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{'lowlp.load_global' op has ring 1, but the loop has 1}}
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<1 at [0]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    scf.if %true {
    // expected-error @below {{has a ring, and must stand in the body of the loop itself}}
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
    }
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  // expected-error @below {{'scf.for' op has no load at the begin of ring 0}}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [64]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x128xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %y shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{has a ring, but cannot be made ahead: the kernel may write to y, which it reads}}
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
    lowlp.store_global %a, %v[%i, %c0] : !t, !lowlp.global<?x128xf16>
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{does not fit its ring '!lowlp.shared<3x64xf32>'}}
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf32>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
    // expected-error @below {{reaches beyond its part of the ring '!lowlp.shared<3x96xf16>'}}
    %b = lowlp.load_global %v[%i, %c64] {lowlp.ring = #lowlp.ring<0 at [64]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x96xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
    // expected-error @below {{does not lie at [64] of what the first load of its ring begins}}
    %b = lowlp.load_global %v[%i, %c1] {lowlp.ring = #lowlp.ring<0 at [64]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x128xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %y shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  // expected-error @below {{has rings that tensor copies fill, but y promises no alignment of 16 bytes}}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<first_thread fills [!lowlp.shared<3x64xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  scf.if %true {
    lowlp.exit
  }
  // expected-error @below {{has rings that a producer warp fills, but lowlp.exit may end the block before the loop}}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x128xf16> -> !t
  } {lowlp.rings = #lowlp.rings<producer_warp fills [!lowlp.shared<3x64xf16>]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @k(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "p"}, %y: !lowlp.ptr<f16> {lowlp.name = "y"}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 128] : !lowlp.ptr<f16> -> !lowlp.global<?x128xf16>
  %any = arith.cmpi sgt, %n, %c64 : index
  scf.if %any {
    // expected-error @below {{'scf.for' op has rings, and must stand in the body of the kernel itself or of a loop there}}
    scf.for %j = %c0 to %n step %c1 {
    } {lowlp.rings = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>]>}
  }
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @no_cluster(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  // expected-error @below {{'scf.for' op has rings that multicast fills, but the kernel has no clusters}}
  scf.for %i = %c0 to %n step %c1 {
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x64xf16> -> !t
  } {lowlp.rings = #lowlp.rings<producer_warp fills [!lowlp.shared<3x64xf16>] multicast [0]>}
  lowlp.return
}

// -----

!t = !lowlp.tile<64xf16, spatial(32).local(2)>

lowlp.kernel @one_row(%p: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
    attributes {grid = affine_map<(m) -> (m * 2)>, num_threads = 32 : i64, schedule = #lowlp.schedule<cluster = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.index_cast %m : i32 to index
  %v = lowlp.view_global %p shape [%n, 64] : !lowlp.ptr<f16> -> !lowlp.global<?x64xf16>
  scf.for %i = %c0 to %n step %c1 {
    // expected-error @below {{'lowlp.load_global' op has a ring that multicast fills, but it does not divide into parts for 2 blocks}}
    %a = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x64xf16> -> !t
  } {lowlp.rings = #lowlp.rings<producer_warp fills [!lowlp.shared<3x64xf16>] multicast [0]>}
  lowlp.return
}
