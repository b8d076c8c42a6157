// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{a ring must be a shared tile of at least 2 dimensions, but is 'f16'}}
#r = #lowlp.rings<all_threads fills [f16]>

// -----

// expected-error @below {{a ring must have 2 to 9 places, but '!lowlp.shared<10x64xf16>' has 10}}
#r = #lowlp.rings<all_threads fills [!lowlp.shared<10x64xf16>]>

// -----

// expected-error @below {{rings must have the same number of places: 3, but '!lowlp.shared<4x64xf16>' has 4}}
#r = #lowlp.rings<all_threads fills [!lowlp.shared<3x64xf16>, !lowlp.shared<4x64xf16>]>

// -----

// expected-error @below {{the number of a ring must be at least 0, but is -1}}
#r = #lowlp.ring<-1 at [0]>

// -----

// expected-error @below {{a position must have a number of at least 0 for each dimension, but is [0, -64]}}
#r = #lowlp.ring<0 at [0, -64]>
