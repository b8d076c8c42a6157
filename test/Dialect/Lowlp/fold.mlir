// RUN: lowlp-opt %s --canonicalize | FileCheck %s

!codes = !lowlp.tile<128xsi6, local(4).spatial(32)>
!bytes = !lowlp.tile<96xui8, local(3).spatial(32)>
!twos = !lowlp.tile<384xui2, local(12).spatial(32)>

// CHECK-LABEL: func.func @nothing
// CHECK-SAME: %[[X:.*]]: !lowlp.tile
func.func @nothing(%x: !codes) -> !codes {
  // CHECK-NEXT: return %[[X]]
  %cast = lowlp.cast %x : !codes -> !codes
  %view = lowlp.view %cast : !codes -> !codes
  return %view : !codes
}

// CHECK-LABEL: func.func @two_views
// CHECK-SAME: %[[X:.*]]: !lowlp.tile
func.func @two_views(%x: !codes) -> !twos {
  // CHECK-NEXT: %[[V:.*]] = lowlp.view %[[X]] : !lowlp.tile<128xsi6, local(4).spatial(32)> -> !lowlp.tile<384xui2, local(12).spatial(32)>
  // CHECK-NEXT: return %[[V]]
  %bytes = lowlp.view %x : !codes -> !bytes
  %twos = lowlp.view %bytes : !bytes -> !twos
  return %twos : !twos
}

// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME: %[[X:.*]]: !lowlp.tile
func.func @there_and_back(%x: !codes) -> !codes {
  // CHECK-NEXT: return %[[X]]
  %bytes = lowlp.view %x : !codes -> !bytes
  %codes = lowlp.view %bytes : !bytes -> !codes
  return %codes : !codes
}

// A cast changes values: two of them are not one.
// CHECK-LABEL: func.func @two_casts
func.func @two_casts(%x: !lowlp.tile<32xf16, spatial(32)>) -> !lowlp.tile<32xf16, spatial(32)> {
  // CHECK-COUNT-2: lowlp.cast
  %codes = lowlp.cast %x : !lowlp.tile<32xf16, spatial(32)> -> !lowlp.tile<32xui3, spatial(32)>
  %back = lowlp.cast %codes : !lowlp.tile<32xui3, spatial(32)> -> !lowlp.tile<32xf16, spatial(32)>
  return %back : !lowlp.tile<32xf16, spatial(32)>
}
