// Packs int6 weights for fig2.mlir, once and ahead of time (figure 8 of the Tilus paper, with the layout of its section
// 6.2 and the offset bj * BN). The 24 bits that a thread takes out of a row-major i6[K, N] are stored as 3 bytes.
//
//   lowlp-opt examples/transform_b.mlir --lowlp-to-ptx="arch=sm_90a"

!int6_b = !lowlp.tile<16x8xsi6, local(2, 1).column_spatial(4, 8).local(2, 1)>
!bytes_b = !lowlp.tile<96xui8, local(3).spatial(32)>

lowlp.kernel @transform_b(%b_ptr: !lowlp.ptr<si6> {lowlp.name = "b"},
                          %out_ptr: !lowlp.ptr<ui8> {lowlp.name = "transformed_b", lowlp.align = 16 : i64})
    attributes {grid = affine_map<() -> (64, 128)>, num_threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %block_k = arith.constant 16 : index
  %block_n = arith.constant 8 : index

  %bk, %bj = lowlp.block_indices : index, index
  %offset_k = arith.muli %bk, %block_k : index
  %offset_n = arith.muli %bj, %block_n : index
  %b_in = lowlp.view_global %b_ptr shape [1024, 1024] : !lowlp.ptr<si6> -> !lowlp.global<1024x1024xsi6>
  %b_out = lowlp.view_global %out_ptr shape [64, 128, 96] : !lowlp.ptr<ui8> -> !lowlp.global<64x128x96xui8>
  %codes = lowlp.load_global %b_in[%offset_k, %offset_n] : !lowlp.global<1024x1024xsi6> -> !int6_b
  %bytes = lowlp.view %codes : !int6_b -> !bytes_b
  lowlp.store_global %bytes, %b_out[%bk, %bj, %c0] : !bytes_b, !lowlp.global<64x128x96xui8>
  lowlp.return
}
