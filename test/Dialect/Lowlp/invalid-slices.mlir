// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

!words = !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)>
!part = !lowlp.tile<16x64xui2, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @beyond(%words: !words) {
  // expected-error @below {{'lowlp.unpack' op a slice is of unsigned integers within the 3 bits of a code, but is 'ui2' from bit 2 on}}
  %high = lowlp.unpack %words from "lut3.f16" bit 2 : !words -> !part
  return
}

// -----

!words = !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)>
!part = !lowlp.tile<16x64xsi1, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @signed(%words: !words) {
  // expected-error @below {{'lowlp.unpack' op a slice is of unsigned integers within the 3 bits of a code, but is 'si1' from bit 0 on}}
  %low = lowlp.unpack %words from "lut3.f16" : !words -> !part
  return
}

// -----

!words = !lowlp.tile<1x1x96xui32, local(1, 1, 3).spatial(1, 1, 32)>
!codes = !lowlp.tile<16x64xui3, local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)>
func.func @whole(%words: !words) {
  // expected-error @below {{'lowlp.unpack' op a whole code begins at bit 0, not at 1}}
  %codes = lowlp.unpack %words from "lut3.f16" bit 1 : !words -> !codes
  return
}
