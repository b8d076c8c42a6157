// RUN: lowlp-opt %s --split-input-file --verify-diagnostics

func.func @values(%n: index) {
  // expected-error @below {{'lowlp.print' op the text has 2 places {}, but there are 1 values}}
  lowlp.print "{} of {}" %n : index
  return
}

// -----

func.func @exit() {
  // expected-error @below {{'lowlp.exit' op must lie in a lowlp.kernel}}
  lowlp.exit
  return
}

// -----

func.func @divisor(%n: index) {
  // expected-error @below {{attribute 'divisor' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %m = lowlp.assume_divisible %n by 0
  return
}
