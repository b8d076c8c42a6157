// RUN: lowlp-opt %s --lowlp-convert-thread-to-nvvm=arch=sm_75 --verify-diagnostics

// expected-error @below {{unknown architecture 'sm_75'; known are sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103a, sm_120, sm_120a, sm_121a}}
module {
}
