// RUN: lowlp-opt %s --verify-diagnostics --lowlp-convert-to-thread="arch=sm_42"

// expected-error @below {{unknown architecture 'sm_42'; known are sm_80, sm_86,}}
module {
}
