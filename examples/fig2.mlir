// The product of f16 activations and int6 weights, C[M, N] = A[M, K] * B[K, N], as in figure 2 of the Tilus paper. One
// block of one warp makes a tile of 16 x 8. The weights were packed ahead (transform_b.mlir): each tile of 16 x 8 is 96
// bytes, 3 for each thread, which are seen as 4 int6 numbers where the matrix instruction wants them.
//
//   lowlp-opt examples/fig2.mlir --lowlp-to-ptx="arch=sm_90a"

!f16_a = !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
!f16_b = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!int6_b = !lowlp.tile<16x8xsi6, local(2, 1).column_spatial(4, 8).local(2, 1)>
!bytes_b = !lowlp.tile<96xui8, local(3).spatial(32)>
!f32_c = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!f16_c = !lowlp.tile<16x8xf16, local(2, 1).spatial(8, 4).local(1, 2)>

lowlp.kernel @matmul(%a_ptr: !lowlp.ptr<f16> {lowlp.name = "a", lowlp.align = 16 : i64},
                     %b_ptr: !lowlp.ptr<ui8> {lowlp.name = "transformed_b", lowlp.align = 16 : i64},
                     %c_ptr: !lowlp.ptr<f16> {lowlp.name = "c", lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (64, 128)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bm = arith.constant 16 : index
  %bn = arith.constant 8 : index
  %bk = arith.constant 16 : index
  %steps = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32

  %bi, %bj = lowlp.block_indices : index, index
  %offset_m = arith.muli %bi, %bm : index
  %offset_n = arith.muli %bj, %bn : index
  %a_view = lowlp.view_global %a_ptr shape [1024, 1024] : !lowlp.ptr<f16> -> !lowlp.global<1024x1024xf16>
  %b_view = lowlp.view_global %b_ptr shape [64, 128, 96] : !lowlp.ptr<ui8> -> !lowlp.global<64x128x96xui8>
  %c_view = lowlp.view_global %c_ptr shape [1024, 1024] : !lowlp.ptr<f16> -> !lowlp.global<1024x1024xf16>

  %init = lowlp.splat %zero : f32 -> !f32_c
  %acc = scf.for %k = %c0 to %steps step %c1 iter_args(%sum = %init) -> (!f32_c) {
    %offset_k = arith.muli %k, %bk : index
    %a = lowlp.load_global %a_view[%offset_m, %offset_k] : !lowlp.global<1024x1024xf16> -> !f16_a
    %bytes = lowlp.load_global %b_view[%k, %bj, %c0] : !lowlp.global<64x128x96xui8> -> !bytes_b
    %codes = lowlp.view %bytes : !bytes_b -> !int6_b
    %b = lowlp.cast %codes : !int6_b -> !f16_b
    %next = lowlp.dot %a, %b, %sum : !f16_a, !f16_b, !f32_c
    scf.yield %next : !f32_c
  }
  %c = lowlp.cast %acc : !f32_c -> !f16_c
  lowlp.store_global %c, %c_view[%offset_m, %offset_n] : !f16_c, !lowlp.global<1024x1024xf16>
  lowlp.return
}
