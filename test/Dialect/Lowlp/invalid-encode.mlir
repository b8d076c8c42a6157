// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @type(%c: !lowlp.tile<32x32xui4, spatial(32, 1).local(1, 32)>) {
  // expected-error @below {{'lowlp.encode' op codes must be si8 or ui8, but are 'ui4': cast them first}}
  %p = lowlp.encode %c : !lowlp.tile<32x32xui4, spatial(32, 1).local(1, 32)>
    -> !lowlp.tile<4x32xui32, spatial(1, 32).local(4, 1)>
  return
}

// -----

func.func @extent(%c: !lowlp.tile<32x64xui8, spatial(32, 1).local(1, 64)>) {
  // expected-error @below {{'lowlp.encode' op codes must have at least 2 dimensions, of which the last is 32, but are '!lowlp.tile<32x64xui8, spatial(32, 1).local(1, 64)>'}}
  %p = lowlp.encode %c : !lowlp.tile<32x64xui8, spatial(32, 1).local(1, 64)>
    -> !lowlp.tile<4x32xui32, spatial(1, 32).local(4, 1)>
  return
}

// -----

func.func @threads(%c: !lowlp.tile<32x32xui8, spatial(8, 4).local(4, 8)>) {
  // expected-error @below {{'lowlp.encode' op a thread must hold the 32 codes of a word side by side, but the tile is '!lowlp.tile<32x32xui8, spatial(8, 4).local(4, 8)>'}}
  %p = lowlp.encode %c : !lowlp.tile<32x32xui8, spatial(8, 4).local(4, 8)>
    -> !lowlp.tile<4x32xui32, spatial(1, 32).local(4, 1)>
  return
}

// -----

func.func @count(%c: !lowlp.tile<32x32xui8, spatial(32, 1).local(1, 32)>) {
  // expected-error @below {{'lowlp.encode' op the result must have as many dimensions as the codes, the last but one 1 to 8 planes, but is '!lowlp.tile<9x32xui32, spatial(1, 32).local(9, 1)>'}}
  %p = lowlp.encode %c : !lowlp.tile<32x32xui8, spatial(32, 1).local(1, 32)>
    -> !lowlp.tile<9x32xui32, spatial(1, 32).local(9, 1)>
  return
}

// -----

func.func @result(%c: !lowlp.tile<32x32xui8, spatial(32, 1).local(1, 32)>) {
  // expected-error @below {{'lowlp.encode' op the result must be '!lowlp.tile<4x32xui32, spatial(1, 32).local(4, 1)>', but is '!lowlp.tile<4x32xui32, spatial(4, 8).local(1, 4)>'}}
  %p = lowlp.encode %c : !lowlp.tile<32x32xui8, spatial(32, 1).local(1, 32)>
    -> !lowlp.tile<4x32xui32, spatial(4, 8).local(1, 4)>
  return
}
