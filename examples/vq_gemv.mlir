// The product of 8 rows of f16 and weights of two codebooks (AQLM 2x8), Y[8, N] = X[8, K] * W[N, K]^T, of codes [N, K / 8, 2]:
// W[n, 8 i + j] = C_0[q[n, i, 0], j] + C_1[q[n, i, 1], j]. A block of one warp has 16 rows of W.
//
// Lane (g, t) looks up the codes of rows g and g + 8, which give it K = 8 t to 8 t + 7 of each. x is loaded in the same order of K, 16
// bytes a lane, so that both are operands of lowlp.dot as they are: two matrix instructions for each book, and no exchange.
//
//   lowlp run examples/vq_gemv.mlir -a x=8x256 codes=64x64 books=2x256x8 y=8x64
//   lowlp-opt examples/vq_gemv.mlir --lowlp-to-ptx="arch=sm_90a"

!codes = !lowlp.tile<16x4xui8, local(2, 1).spatial(8, 4)>
!weights = !lowlp.tile<16x32xf16, local(2, 1).spatial(8, 4).local(1, 8)>
!rows = !lowlp.tile<8x32xf16, spatial(8, 4).local(1, 8)>
!columns = !lowlp.tile<32x8xf16, column_spatial(4, 8).local(8, 1)>
!sums = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!books = !lowlp.codebook<2x256x8xf16>

lowlp.kernel @vq_gemv(%x: !lowlp.ptr<f16> {lowlp.name = "x", lowlp.align = 16 : i64},
                      %q: !lowlp.ptr<ui8> {lowlp.name = "codes"},
                      %c: !lowlp.ptr<f16> {lowlp.name = "books", lowlp.align = 16 : i64},
                      %y: !lowlp.ptr<f32> {lowlp.name = "y"})
    attributes {grid = affine_map<() -> (4)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %groups = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32

  %block = lowlp.block_indices : index
  %row = arith.muli %block, %c16 : index
  %x_view = lowlp.view_global %x shape [8, 256] : !lowlp.ptr<f16> -> !lowlp.global<8x256xf16>
  %q_view = lowlp.view_global %q shape [2, 64, 32] strides [1, 64, 2] : !lowlp.ptr<ui8> -> !lowlp.global<2x64x32xui8>
  %c_view = lowlp.view_global %c shape [2, 256, 8] : !lowlp.ptr<f16> -> !lowlp.global<2x256x8xf16>
  %y_view = lowlp.view_global %y shape [64, 8] strides [1, 64] : !lowlp.ptr<f32> -> !lowlp.global<64x8xf32>

  %book = lowlp.load_codebook %c_view[] : !lowlp.global<2x256x8xf16> -> !books
  %init = lowlp.splat %zero : f32 -> !sums
  %result = scf.for %group = %c0 to %groups step %c4 iter_args(%sum = %init) -> (!sums) {
    %k = arith.muli %group, %c8 : index
    %x_rows = lowlp.load_global %x_view[%c0, %k] : !lowlp.global<8x256xf16> -> !rows
    %x_tile = lowlp.transpose %x_rows [1, 0] : !rows -> !columns
    %q0 = lowlp.load_global %q_view[%c0, %row, %group] : !lowlp.global<2x64x32xui8> -> !codes
    %q1 = lowlp.load_global %q_view[%c1, %row, %group] : !lowlp.global<2x64x32xui8> -> !codes
    %w0 = lowlp.lookup_vectors %q0 in %book[0] along 1 : !codes, !books -> !weights
    %w1 = lowlp.lookup_vectors %q1 in %book[1] along 1 : !codes, !books -> !weights
    %first = lowlp.dot %w0, %x_tile, %sum : !weights, !columns, !sums
    %next = lowlp.dot %w1, %x_tile, %first : !weights, !columns, !sums
    scf.yield %next : !sums
  }
  lowlp.store_global %result, %y_view[%row, %c0] : !sums, !lowlp.global<64x8xf32>
  lowlp.return
}
