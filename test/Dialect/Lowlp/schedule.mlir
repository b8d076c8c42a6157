// RUN: lowlp-opt %s | lowlp-opt | FileCheck %s

// Fields that have their defaults are left out, and the others come in one order.
// CHECK-LABEL: lowlp.kernel @all
// CHECK-SAME: schedule = #lowlp.schedule<matrix_unit = warpgroup, products_in_flight = 4, ping_pong = true, exchange_registers = true, blocks_per_sm = 1, cluster = 2, table_form = pair, table_copies = 8, decode_offsets = accumulators, reassociate = true>
lowlp.kernel @all(%m: i32) attributes {grid = affine_map<(m) -> (m * 2)>, num_threads = 256 : i64,
    schedule = #lowlp.schedule<reassociate = true, decode_offsets = accumulators, table_copies = 8, table_form = pair, cluster = 2, blocks_per_sm = 1,
                               exchange_registers = true, ping_pong = true, products_in_flight = 4, matrix_unit = warpgroup>} {
  lowlp.return
}

// CHECK-LABEL: lowlp.kernel @defaults
// CHECK-SAME: schedule = #lowlp.schedule<>
lowlp.kernel @defaults() attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64,
    schedule = #lowlp.schedule<products_in_flight = 2, table_form = auto, ping_pong = false>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: lowlp.stages = #lowlp.stages<3>
  scf.for %i = %c0 to %c1 step %c1 {
  } {lowlp.stages = #lowlp.stages<3, producer = false>}
  // CHECK: lowlp.stages = #lowlp.stages<2, producer = true>
  scf.for %i = %c0 to %c1 step %c1 {
  } {lowlp.stages = #lowlp.stages<2, producer = true>}
  lowlp.return
}
