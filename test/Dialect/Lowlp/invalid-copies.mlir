// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @source(%v: !lowlp.global<64xf16>, %s: !lowlp.shared<32xf16>, %i: index) {
  // expected-error @below {{'lowlp.copy_async' op the source must be a result of lowlp.view_global}}
  lowlp.copy_async %v[%i] to %s[%i] shape [32] : !lowlp.global<64xf16> to !lowlp.shared<32xf16>
  return
}

// -----

func.func @element(%p: !lowlp.ptr<si6>, %s: !lowlp.shared<32xui6>, %i: index) {
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<si6> -> !lowlp.global<64xsi6>
  // expected-error @below {{'lowlp.copy_async' op element types must match: the view holds 'si6', shared memory holds 'ui6'}}
  lowlp.copy_async %v[%i] to %s[%i] shape [32] : !lowlp.global<64xsi6> to !lowlp.shared<32xui6>
  return
}

// -----

func.func @source_offsets(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<32xf16>, %i: index) {
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  // expected-error @below {{'lowlp.copy_async' op expected one source offset for each of the view's 1 dimensions, found 2}}
  lowlp.copy_async %v[%i, %i] to %s[%i] shape [32] : !lowlp.global<64xf16> to !lowlp.shared<32xf16>
  return
}

// -----

func.func @destination_offsets(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x32xf16>, %i: index) {
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  // expected-error @below {{'lowlp.copy_async' op expected one destination offset for each of the 2 dimensions of the shared tile, found 1}}
  lowlp.copy_async %v[%i] to %s[%i] shape [32] : !lowlp.global<64xf16> to !lowlp.shared<3x32xf16>
  return
}

// -----

func.func @rank(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x32xf16>, %i: index) {
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  // expected-error @below {{'lowlp.copy_async' op shape must have 1 to 1 extents, but has 2}}
  lowlp.copy_async %v[%i] to %s[%i, %i] shape [3, 32] : !lowlp.global<64xf16> to !lowlp.shared<3x32xf16>
  return
}

// -----

func.func @extent(%p: !lowlp.ptr<f16>, %s: !lowlp.shared<3x32xf16>, %i: index) {
  %v = lowlp.view_global %p shape [64] : !lowlp.ptr<f16> -> !lowlp.global<64xf16>
  // expected-error @below {{'lowlp.copy_async' op an extent of shape must be 1 to 32, which the shared tile has, but is 33}}
  lowlp.copy_async %v[%i] to %s[%i, %i] shape [33] : !lowlp.global<64xf16> to !lowlp.shared<3x32xf16>
  return
}

// -----

func.func @wait() {
  // expected-error @below {{'lowlp.copy_async_wait' op attribute 'n' failed to satisfy constraint}}
  lowlp.copy_async_wait -1
  return
}
