// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @elements(%x: !lowlp.tile<32xf16, spatial(32)>) {
  // expected-error @below {{'lowlp.convert_layout' op element types must match: source holds 'f16', result holds 'bf16'}}
  %y = lowlp.convert_layout %x : !lowlp.tile<32xf16, spatial(32)> -> !lowlp.tile<32xbf16, spatial(32)>
  return
}

// -----

func.func @shapes(%x: !lowlp.tile<8x4xf16, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.convert_layout' op shapes must match: source is '!lowlp.tile<8x4xf16, spatial(8, 4)>', result is '!lowlp.tile<4x8xf16, spatial(4, 8)>'}}
  %y = lowlp.convert_layout %x : !lowlp.tile<8x4xf16, spatial(8, 4)> -> !lowlp.tile<4x8xf16, spatial(4, 8)>
  return
}

// -----

func.func @threads(%x: !lowlp.tile<64xsi4, spatial(32).local(2)>) {
  // expected-error @below {{'lowlp.convert_layout' op threads must match: source is held by 32, result by 64}}
  %y = lowlp.convert_layout %x : !lowlp.tile<64xsi4, spatial(32).local(2)> -> !lowlp.tile<64xsi4, spatial(64)>
  return
}

// -----

func.func @offset() {
  // expected-error @below {{'lowlp.alloc_shared' op must begin at a multiple of 16 bytes, but begins at 8}}
  %s = lowlp.alloc_shared at 8 : !lowlp.shared<8xf32>
  return
}
