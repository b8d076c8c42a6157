// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @space(%a: vector<8xf16>, %p: !simt.ptr<global>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op b lies in shared memory, but the base is '!simt.ptr<global>'}}
  %s = simt.wgmma %a, %p[%o] swizzle 0 leading 128 stride 256 : vector<8xf16>, !simt.ptr<global> -> !simt.accumulators<vector<4xf32>>
  return
}

// -----

func.func @number_of_accumulators(%a: vector<8xf16>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op the result must be 4 to 128 accumulators of f32 or i32, a multiple of 4, but is 'vector<132xf32>'}}
  %s = simt.wgmma %a, %p[%o] swizzle 0 leading 128 stride 256 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<132xf32>>
  return
}

// -----

func.func @untold(%a: vector<4xi32>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op a is 'vector<4xi32>', so a and b need 'as' with what they hold}}
  %s = simt.wgmma %a as si8, %p[%o] swizzle 0 leading 128 stride 256 : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xi32>>
  return
}

// -----

func.func @told(%a: vector<8xbf16>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op a is 'vector<8xbf16>', so a and b need no 'as'}}
  %s = simt.wgmma %a as bf16, %p[%o] swizzle 0 leading 128 stride 256 : vector<8xbf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
  return
}

// -----

func.func @elements(%a: vector<4xi32>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op a and b must both hold 8-bit integers, both 8-bit floats, or both ui1, but hold 'ui8' and 'f8E5M2'}}
  %s = simt.wgmma %a as ui8, %p[%o] as f8E5M2 swizzle 0 leading 128 stride 256 : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xi32>>
  return
}

// -----

func.func @accumulators(%a: vector<4xi32>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op accumulators of 'ui8' are i32, but the result holds 'f32'}}
  %s = simt.wgmma %a as ui8, %p[%o] as si8 swizzle 0 leading 128 stride 256 : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
  return
}

// -----

func.func @columns_of_integers(%a: vector<4xi32>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op N of integers must be 8, 24 or a multiple of 16, but is 40}}
  %s = simt.wgmma %a as ui8, %p[%o] as si8 swizzle 0 leading 128 stride 256 : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<20xi32>>
  return
}

// -----

func.func @columns_of_bits(%a: vector<4xi32>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op N of integers must be 8, 24 or a multiple of 16, but is 40}}
  %s = simt.wgmma %a as ui1, %p[%o] as ui1 swizzle 0 leading 128 stride 256 : vector<4xi32>, !simt.ptr<shared> -> !simt.accumulators<vector<20xi32>>
  return
}

// -----

func.func @type_of_c(%a: vector<8xf16>, %c: vector<8xf32>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op c must be 'vector<4xf32>', in flight or not, but is 'vector<8xf32>'}}
  %s = simt.wgmma %a, %p[%o] swizzle 0 leading 128 stride 256 plus %c : vector<8xf32> : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
  return
}

// -----

func.func @swizzle(%a: vector<8xf16>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op swizzle must be 0, 32, 64 or 128 bytes, but is 16}}
  %s = simt.wgmma %a, %p[%o] swizzle 16 leading 128 stride 256 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
  return
}

// -----

func.func @stride(%a: vector<8xf16>, %p: !simt.ptr<shared>, %o: i64) {
  // expected-error @below {{'simt.wgmma' op leading and stride must be multiples of 16 bytes below 2^18, but one is 264}}
  %s = simt.wgmma %a, %p[%o] swizzle 0 leading 128 stride 264 : vector<8xf16>, !simt.ptr<shared> -> !simt.accumulators<vector<4xf32>>
  return
}

// -----

func.func @fence(%a: vector<3xf16>) {
  // expected-error @below {{'simt.wgmma_fence' op takes whole registers of f16, bf16, f32 or i32, but a value is 'vector<3xf16>'}}
  %f = simt.wgmma_fence of %a : vector<3xf16>
  return
}

// -----

func.func @wait(%s: !simt.accumulators<vector<4xf32>>) {
  // expected-error @below {{'simt.wgmma_wait' op results must be the vectors of the operands}}
  %d = simt.wgmma_wait 0 takes %s : (!simt.accumulators<vector<4xf32>>) -> vector<8xf32>
  return
}

// -----

func.func @vector_as_accumulators(%c: vector<4xf32>) {
  // expected-error @below {{'simt.wgmma_wait' op operand #0 must be variadic of accumulators that a warpgroup's products in flight are still changing}}
  %d = simt.wgmma_wait 0 takes %c : (vector<4xf32>) -> vector<4xf32>
  return
}
