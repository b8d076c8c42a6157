// What the tool and the Python package know without being asked to load it.
// RUN: lowlp-opt --show-dialects | FileCheck %s

// CHECK-LABEL: Available Dialects:
// CHECK-SAME: gpu
// CHECK-SAME: lowlp
// CHECK-SAME: nvvm
// CHECK-SAME: simt
