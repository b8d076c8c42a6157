// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @mma_types(%a: vector<8xf16>, %b: vector<4xbf16>, %c: vector<4xf32>) {
  // expected-error @below {{'simt.mma' op a and b must have one element type, or both hold 8-bit integers, or both 8-bit floats, but hold 'f16' and 'bf16'}}
  %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xbf16>, vector<4xf32>
  return
}

// -----

func.func @mma_mixed(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xi32>) {
  // expected-error @below {{'simt.mma' op a and b must have one element type, or both hold 8-bit integers, or both 8-bit floats, but hold 'ui8' and 'f8E5M2'}}
  %d = simt.mma %a as ui8, %b as f8E5M2, %c : vector<4xi32>, vector<2xi32>, vector<4xi32>
  return
}

// -----

func.func @mma_size(%a: vector<4xf16>, %b: vector<4xf16>, %c: vector<4xf32>) {
  // expected-error @below {{'simt.mma' op operand #0 must be}}
  %d = simt.mma %a, %b, %c : vector<4xf16>, vector<4xf16>, vector<4xf32>
  return
}

// -----

func.func @mma_registers(%a: vector<2xi32>, %b: vector<2xi32>, %c: vector<4xi32>) {
  // expected-error @below {{'simt.mma' op a and b have 4 and 2 registers, of ui1 also 2 and 1, but have 2 and 2}}
  %d = simt.mma %a as ui1, %b as ui1, %c : vector<2xi32>, vector<2xi32>, vector<4xi32>
  return
}

// -----

func.func @mma_half_of_bytes(%a: vector<2xi32>, %b: vector<1xi32>, %c: vector<4xi32>) {
  // expected-error @below {{'simt.mma' op a and b have 4 and 2 registers, of ui1 also 2 and 1, but have 2 and 1}}
  %d = simt.mma %a as si8, %b as si8, %c : vector<2xi32>, vector<1xi32>, vector<4xi32>
  return
}

// -----

func.func @mma_untold(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xi32>) {
  // expected-error @below {{'simt.mma' op b is 'vector<2xi32>' and needs 'as' with what it holds}}
  %d = simt.mma %a as si8, %b, %c : vector<4xi32>, vector<2xi32>, vector<4xi32>
  return
}

// -----

func.func @mma_told_twice(%a: vector<8xf16>, %b: vector<4xf16>, %c: vector<4xf32>) {
  // expected-error @below {{'simt.mma' op a is 'vector<8xf16>' and needs no 'as'}}
  %d = simt.mma %a as f16, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
  return
}

// -----

func.func @mma_holds(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xi32>) {
  // expected-error @below {{'simt.mma' op a must hold si8, ui8, f8E4M3FN, f8E5M2 or ui1, but holds 'si4'}}
  %d = simt.mma %a as si4, %b as si4, %c : vector<4xi32>, vector<2xi32>, vector<4xi32>
  return
}

// -----

func.func @mma_accumulators(%a: vector<4xi32>, %b: vector<2xi32>, %c: vector<4xf32>) {
  // expected-error @below {{'simt.mma' op accumulators of 'ui1' are i32, but c holds 'f32'}}
  %d = simt.mma %a as ui1, %b as ui1, %c : vector<4xi32>, vector<2xi32>, vector<4xf32>
  return
}

// -----

func.func @ldmatrix_space(%p: !simt.ptr<global>, %offset: i64) {
  // expected-error @below {{'simt.ldmatrix' op moves matrices of shared memory, but the base is '!simt.ptr<global>'}}
  %v = simt.ldmatrix %p[%offset] : !simt.ptr<global> -> vector<4xi32>
  return
}

// -----

func.func @ldmatrix_count(%p: !simt.ptr<shared>, %offset: i64) {
  // expected-error @below {{'simt.ldmatrix' op result #0 must be}}
  %v = simt.ldmatrix %p[%offset] : !simt.ptr<shared> -> vector<3xi32>
  return
}
