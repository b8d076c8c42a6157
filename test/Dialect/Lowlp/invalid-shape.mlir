// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @reduce_codes(%x: !lowlp.tile<8x4xui4, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.reduce' op computes in f16, bf16, f32 or integers of 16 or 32 bits, but the tile holds 'ui4': cast it first}}
  %t = lowlp.reduce add %x dim 0 : !lowlp.tile<8x4xui4, spatial(8, 4)> -> !lowlp.tile<4xui4, reduce(spatial(8, 4), dims=[0])>
  return
}

// -----

func.func @reduce_type(%x: !lowlp.tile<8x4xf16, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.reduce' op element types must match: source holds 'f16', result holds 'f32'}}
  %t = lowlp.reduce add %x dim 0 : !lowlp.tile<8x4xf16, spatial(8, 4)> -> !lowlp.tile<4xf32, reduce(spatial(8, 4), dims=[0])>
  return
}

// -----

func.func @reduce_dim(%x: !lowlp.tile<8x4xf16, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.reduce' op dim must be at least 0 and less than 2, but is 2}}
  %t = lowlp.reduce add %x dim 2 : !lowlp.tile<8x4xf16, spatial(8, 4)> -> !lowlp.tile<4xf16, reduce(spatial(8, 4), dims=[0])>
  return
}

// -----

func.func @reduce_layout(%x: !lowlp.tile<8x4xf16, local(8, 4)>) {
  // expected-error @below {{'lowlp.reduce' op the layout of the result must be 'local(1, 4)' or 'local(4)', but is 'local(8)'}}
  %t = lowlp.reduce add %x dim 0 : !lowlp.tile<8x4xf16, local(8, 4)> -> !lowlp.tile<8xf16, local(8)>
  return
}

// -----

func.func @broadcast_type(%x: !lowlp.tile<1xf16, local(1)>) {
  // expected-error @below {{'lowlp.broadcast' op element types must match: source holds 'f16', result holds 'f32'}}
  %t = lowlp.broadcast %x : !lowlp.tile<1xf16, local(1)> -> !lowlp.tile<8xf32, local(8)>
  return
}

// -----

func.func @broadcast_threads(%x: !lowlp.tile<1xf16, local(1)>) {
  // expected-error @below {{'lowlp.broadcast' op threads must match: the source is held by 1, the result by 8}}
  %t = lowlp.broadcast %x : !lowlp.tile<1xf16, local(1)> -> !lowlp.tile<8xf16, spatial(8)>
  return
}

// -----

func.func @broadcast_extents(%x: !lowlp.tile<4x1xf16, local(4, 1)>) {
  // expected-error @below {{'lowlp.broadcast' op a tile of shape (4, 1) does not broadcast to (8, 2): from the last dimension on, extents must match or be 1}}
  %t = lowlp.broadcast %x : !lowlp.tile<4x1xf16, local(4, 1)> -> !lowlp.tile<8x2xf16, local(8, 2)>
  return
}

// -----

func.func @broadcast_rank(%x: !lowlp.tile<1x1xf16, local(1, 1)>) {
  // expected-error @below {{'lowlp.broadcast' op a tile of shape (1, 1) does not broadcast to (8): from the last}}
  %t = lowlp.broadcast %x : !lowlp.tile<1x1xf16, local(1, 1)> -> !lowlp.tile<8xf16, local(8)>
  return
}

// -----

// Thread 1 holds element (0, 1) of the source, but its elements of the result are in row 1.
!row = !lowlp.tile<1x4xf16, spatial(1, 4)>
!tile = !lowlp.tile<4x4xf16, spatial(4, 1).local(1, 4)>
func.func @broadcast_held(%x: !row) {
  // expected-error @below {{'lowlp.broadcast' op thread 0 does not hold element (0, 1) of the source, which it needs for its value 1 of the result}}
  %t = lowlp.broadcast %x : !row -> !tile
  return
}

// -----

// Every thread holds both elements; thread 0 repeats the first, thread 1 the second.
!row = !lowlp.tile<1x2xf16, reduce(spatial(8, 1), dims=[0], keep_dims=True).local(1, 2)>
!tile = !lowlp.tile<4x2xf16, spatial(4, 2)>
func.func @broadcast_registers(%x: !row) {
  // expected-error @below {{'lowlp.broadcast' op for value 0 of the result thread 1 needs its value 1 of the source, thread 0 its value 0: registers are chosen at compile time}}
  %t = lowlp.broadcast %x : !row -> !tile
  return
}

// -----

func.func @transpose_type(%x: !lowlp.tile<8x4xui4, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.transpose' op element types must match: source holds 'ui4', result holds 'si4'}}
  %t = lowlp.transpose %x [1, 0] : !lowlp.tile<8x4xui4, spatial(8, 4)> -> !lowlp.tile<4x8xsi4, column_spatial(4, 8)>
  return
}

// -----

func.func @transpose_dims(%x: !lowlp.tile<8x4xui4, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.transpose' op a permutation names all 2 dimensions once; found (1)}}
  %t = lowlp.transpose %x [1] : !lowlp.tile<8x4xui4, spatial(8, 4)> -> !lowlp.tile<4x8xui4, column_spatial(4, 8)>
  return
}

// -----

func.func @transpose_layout(%x: !lowlp.tile<8x4xui4, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.transpose' op the layout of the transposed tile must be 'column_spatial(4, 8)', but is 'spatial(4, 8)'}}
  %t = lowlp.transpose %x [1, 0] : !lowlp.tile<8x4xui4, spatial(8, 4)> -> !lowlp.tile<4x8xui4, spatial(4, 8)>
  return
}

// -----

func.func @iota_dim() {
  // expected-error @below {{'lowlp.iota' op dim must be at least 0 and less than 2, but is -1}}
  %t = lowlp.iota dim -1 : !lowlp.tile<8x4xf32, spatial(8, 4)>
  return
}

// -----

func.func @iota_type() {
  // expected-error @below {{'lowlp.iota' op indices are f32, si32 or ui32, but the tile holds 'f16'}}
  %t = lowlp.iota dim 0 : !lowlp.tile<8x4xf16, spatial(8, 4)>
  return
}

// -----

func.func @iota_extent() {
  // expected-error @below {{'lowlp.iota' op 'f32' holds indices of extents up to 16777216, but the extent is 16777217}}
  %t = lowlp.iota dim 0 : !lowlp.tile<16777217xf32, local(16777217)>
  return
}

// -----

func.func @reduce_short(%x: !lowlp.tile<8x4xsi16, spatial(8, 4)>) {
  // expected-error @below {{'lowlp.reduce' op combines integers of 32 bits, but the tile holds 'si16': cast it first}}
  %t = lowlp.reduce add %x dim 1 : !lowlp.tile<8x4xsi16, spatial(8, 4)> -> !lowlp.tile<8xsi16, spatial(8)>
  return
}

// -----

func.func @part_type(%x: !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)>) {
  // expected-error @below {{'lowlp.part' op element types must match: source holds 'f16', result holds 'f32'}}
  %t = lowlp.part %x[0] : !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)> -> !lowlp.tile<8xf32, spatial(8)>
  return
}

// -----

func.func @part_rank(%x: !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)>) {
  // expected-error @below {{'lowlp.part' op a part names fewer than the 2 dimensions of the source, but this one names 2}}
  %t = lowlp.part %x[0, 1] : !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)> -> !lowlp.tile<8xf16, spatial(8)>
  return
}

// -----

func.func @part_index(%x: !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)>) {
  // expected-error @below {{'lowlp.part' op index 0 of the part must be at least 0 and less than 2, but is 2}}
  %t = lowlp.part %x[2] : !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)> -> !lowlp.tile<8xf16, spatial(8)>
  return
}

// -----

func.func @part_threads(%x: !lowlp.tile<2x8xf16, spatial(2, 4).local(1, 2)>) {
  // expected-error @below {{'lowlp.part' op each thread must hold all of the first 1 dimensions of the source, which the layout spatial(2, 4).local(1, 2) spreads over threads}}
  %t = lowlp.part %x[0] : !lowlp.tile<2x8xf16, spatial(2, 4).local(1, 2)> -> !lowlp.tile<8xf16, spatial(4).local(2)>
  return
}

// -----

func.func @part_layout(%x: !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)>) {
  // expected-error @below {{'lowlp.part' op the layout of the part must be 'spatial(8)', but is 'local(8)'}}
  %t = lowlp.part %x[0] : !lowlp.tile<2x8xf16, local(2, 1).spatial(1, 8)> -> !lowlp.tile<8xf16, local(8)>
  return
}
