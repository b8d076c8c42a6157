// RUN: not lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups{form=triple}))" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not lowlp-opt %s --pass-pipeline="builtin.module(lowlp.kernel(lowlp-vectorize-lookups{copies=12}))" 2>&1 | FileCheck %s --check-prefix=COPIES

// FORM: error: form must be pair, entry, register or auto, but is triple
// COPIES: error: copies must be 0 or a power of two up to 32, but is 12
lowlp.kernel @options() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  lowlp.return
}
