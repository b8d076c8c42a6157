// Attention of one token over codes of codebooks: what `python examples/vq_attention.py --mlir` prints, whose text explains it. A block of
// one warp has a head, and takes 16 tokens at a time; lookups are staggered, so that the 16 lanes of a phase read 16 books.
//
//   lowlp run examples/vq_attention.mlir -a q=2x128 keys=2x64x32 values=2x64x32 books=2x2x32x256x4 o=2x128
//   lowlp-opt examples/vq_attention.mlir --lowlp-to-ptx="arch=sm_90a"

!shared_8x4x4x8xf32 = !lowlp.shared<8x4x4x8xf32>
!tile_1024x1xf16 = !lowlp.tile<1024x1xf16, spatial(8, 1).local(2, 1).spatial(4, 1).local(16, 1)>
!tile_1024x1xsi32 = !lowlp.tile<1024x1xsi32, spatial(8, 1).local(2, 1).spatial(4, 1).local(16, 1)>
!tile_128x16xf16 = !lowlp.tile<128x16xf16, column_local(16, 2).spatial(8, 4).local(1, 2)>
!tile_128x8xf16 = !lowlp.tile<128x8xf16, local(16, 1).column_spatial(4, 8).local(2, 1)>
!tile_128x8xf32 = !lowlp.tile<128x8xf32, local(16, 1).spatial(8, 4).local(1, 2)>
!tile_16x128xf16 = !lowlp.tile<16x128xf16, local(2, 2).spatial(8, 4).local(1, 16)>
!tile_16x128xf16_1 = !lowlp.tile<16x128xf16, local(2, 16).spatial(8, 4).local(1, 2)>
!tile_16x128xf16_2 = !lowlp.tile<16x128xf16, local(2, 1).column_spatial(4, 8).local(2, 16)>
!tile_16x128xf16_3 = !lowlp.tile<16x128xf16, local(2, 1).column_spatial(4, 8).column_local(2, 16)>
!tile_16x128xf16_4 = !lowlp.tile<16x128xf16, local(2, 16).column_spatial(4, 8).local(2, 1)>
!tile_16x32xui8 = !lowlp.tile<16x32xui8, local(2, 2).spatial(8, 4).local(1, 4)>
!tile_16x32xui8_1 = !lowlp.tile<16x32xui8, local(2, 1).column_spatial(4, 8).local(2, 4)>
!tile_16x8xf16 = !lowlp.tile<16x8xf16, local(2, 1).spatial(8, 4).local(1, 2)>
!tile_16x8xf16_1 = !lowlp.tile<16x8xf16, local(2, 1).column_spatial(4, 8).local(2, 1)>
!tile_16x8xf32 = !lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>
!tile_16x8xsi32 = !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
!tile_16x8xui1 = !lowlp.tile<16x8xui1, local(2, 1).spatial(8, 4).local(1, 2)>
!tile_1x1xf32 = !lowlp.tile<1x1xf32, reduce(spatial(1, 1, 32), dims=[2])>
!tile_1x8xf32 = !lowlp.tile<1x8xf32, reduce(spatial(1, 1, 8), dims=[2]).spatial(1, 4).local(1, 2)>
!tile_8x128xf16 = !lowlp.tile<8x128xf16, local(1, 16).spatial(8, 4).local(1, 2)>
!tile_8x1x4x1xf32 = !lowlp.tile<8x1x4x1xf32, spatial(8, 1, 4, 1)>
!tile_8x1x4xf32 = !lowlp.tile<8x1x4xf32, spatial(8, 1, 4)>
!tile_8x4x4x8xf32 = !lowlp.tile<8x4x4x8xf32, spatial(8, 1, 1, 4).local(1, 4, 4, 2)>
#map = affine_map<() -> (2)>
module {
  lowlp.kernel @vq_attention(%q: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "q"}, %keys: !lowlp.ptr<ui8> {lowlp.align = 16 : i64, lowlp.name = "keys"}, %values: !lowlp.ptr<ui8> {lowlp.align = 16 : i64, lowlp.name = "values"}, %books: !lowlp.ptr<f16> {lowlp.align = 16 : i64, lowlp.name = "books"}, %o: !lowlp.ptr<f32> {lowlp.align = 16 : i64, lowlp.name = "o"}) attributes {grid = #map, num_threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128_i32 = arith.constant 128 : i32
    %c4_i32 = arith.constant 4 : i32
    %c2_i32 = arith.constant 2 : i32
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst = arith.constant 0xFF800000 : f32
    %cst_0 = arith.constant -1.000000e+30 : f32
    %cst_1 = arith.constant 0.000000e+00 : f32
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %cst_2 = arith.constant 0.127517432 : f32
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %0 = lowlp.block_indices : index
    %1 = lowlp.view_global %books shape [2, 2, 32, 256, 4] : !lowlp.ptr<f16> -> !lowlp.global<2x2x32x256x4xf16>
    %2 = lowlp.load_codebook %1[%0, %c0] cache <shared = 256, line_bytes = 256, book_bytes = 8> : !lowlp.global<2x2x32x256x4xf16> -> !lowlp.codebook<32x256x4xf16>
    %3 = lowlp.load_codebook %1[%0, %c1] cache <shared = 256, line_bytes = 256, book_bytes = 8> : !lowlp.global<2x2x32x256x4xf16> -> !lowlp.codebook<32x256x4xf16>
    %4 = lowlp.iota dim 0 : !tile_1024x1xsi32
    %5 = lowlp.splat %c128_i32 : i32 -> !tile_1024x1xsi32
    %6 = lowlp.mod %4, %5 : !tile_1024x1xsi32
    %7 = lowlp.splat %c4_i32 : i32 -> !tile_1024x1xsi32
    %8 = lowlp.floor_div %6, %7 : !tile_1024x1xsi32
    %9 = lowlp.splat %c128_i32 : i32 -> !tile_1024x1xsi32
    %10 = lowlp.floor_div %4, %9 : !tile_1024x1xsi32
    %11 = lowlp.splat %c4_i32 : i32 -> !tile_1024x1xsi32
    %12 = lowlp.mod %10, %11 : !tile_1024x1xsi32
    %13 = lowlp.xor %8, %12 : !tile_1024x1xsi32
    %14 = lowlp.splat %c4_i32 : i32 -> !tile_1024x1xsi32
    %15 = lowlp.mul %13, %14 : !tile_1024x1xsi32
    %16 = lowlp.splat %c4_i32 : i32 -> !tile_1024x1xsi32
    %17 = lowlp.mod %4, %16 : !tile_1024x1xsi32
    %18 = lowlp.add %15, %17 : !tile_1024x1xsi32
    %19 = lowlp.view_global %q shape [2, 128, 1] : !lowlp.ptr<f16> -> !lowlp.global<2x128x1xf16>
    %20 = lowlp.gather_global %19[%0, %c0, %c0] indices %18 dim 0 in_bounds : !lowlp.global<2x128x1xf16>, !tile_1024x1xsi32 -> !tile_1024x1xf16
    %21 = lowlp.view %20 : !tile_1024x1xf16 -> !tile_8x128xf16
    %22 = lowlp.transpose %21 [1, 0] : !tile_8x128xf16 -> !tile_128x8xf16
    %23 = lowlp.iota dim 1 : !tile_16x8xsi32
    %24 = lowlp.iota dim 0 : !tile_16x8xsi32
    %25 = lowlp.splat %c2_i32 : i32 -> !tile_16x8xsi32
    %26 = lowlp.shr %24, %25 : !tile_16x8xsi32
    %27 = lowlp.xor %24, %26 : !tile_16x8xsi32
    %28 = lowlp.splat %c1_i32 : i32 -> !tile_16x8xsi32
    %29 = lowlp.and %27, %28 : !tile_16x8xsi32
    %30 = lowlp.splat %c2_i32 : i32 -> !tile_16x8xsi32
    %31 = lowlp.and %24, %30 : !tile_16x8xsi32
    %32 = lowlp.or %29, %31 : !tile_16x8xsi32
    %33 = lowlp.sub %32, %23 : !tile_16x8xsi32
    %34 = lowlp.splat %c0_i32 : i32 -> !tile_16x8xsi32
    %35 = lowlp.compare eq %33, %34 : !tile_16x8xsi32 -> !tile_16x8xui1
    %36 = lowlp.splat %cst : f32 -> !tile_16x8xf32
    %37 = lowlp.splat %cst_0 : f32 -> !tile_1x8xf32
    %38 = lowlp.splat %cst_1 : f32 -> !tile_1x8xf32
    %39 = lowlp.splat %cst_1 : f32 -> !tile_128x8xf32
    %40 = lowlp.view_global %keys shape [2, 64, 32] : !lowlp.ptr<ui8> -> !lowlp.global<2x64x32xui8>
    %41 = lowlp.view_global %values shape [2, 64, 32] : !lowlp.ptr<ui8> -> !lowlp.global<2x64x32xui8>
    %42:3 = scf.for %arg0 = %c0 to %c4 step %c1 iter_args(%arg1 = %38, %arg2 = %39, %arg3 = %37) -> (!tile_1x8xf32, !tile_128x8xf32, !tile_1x8xf32) {
      %108 = arith.muli %arg0, %c16 : index
      %109 = lowlp.load_global %40[%0, %108, %c0] in_bounds : !lowlp.global<2x64x32xui8> -> !tile_16x32xui8
      %110 = lowlp.lookup_vectors %109 in %2[0] along 1 book_along 1 staggered [0, 5, 2] : !tile_16x32xui8, !lowlp.codebook<32x256x4xf16> -> !tile_16x128xf16
      %111 = lowlp.view %110 : !tile_16x128xf16 -> !tile_16x128xf16_1
      %112 = lowlp.splat %cst_1 : f32 -> !tile_16x8xf32
      %113 = lowlp.dot %111, %22, %112 : !tile_16x128xf16_1, !tile_128x8xf16, !tile_16x8xf32
      %114 = lowlp.splat %cst_2 : f32 -> !tile_16x8xf32
      %115 = lowlp.mul %113, %114 : !tile_16x8xf32
      %116 = lowlp.select %35, %115, %36 : !tile_16x8xui1, !tile_16x8xf32
      %117 = lowlp.reduce max %116 dim 0 : !tile_16x8xf32 -> !tile_1x8xf32
      %118 = lowlp.maximum %arg3, %117 : !tile_1x8xf32
      %119 = lowlp.broadcast %118 : !tile_1x8xf32 -> !tile_16x8xf32
      %120 = lowlp.sub %116, %119 : !tile_16x8xf32
      %121 = lowlp.exp2 %120 : !tile_16x8xf32
      %122 = lowlp.sub %arg3, %118 : !tile_1x8xf32
      %123 = lowlp.exp2 %122 : !tile_1x8xf32
      %124 = lowlp.mul %arg1, %123 : !tile_1x8xf32
      %125 = lowlp.reduce add %121 dim 0 : !tile_16x8xf32 -> !tile_1x8xf32
      %126 = lowlp.add %124, %125 : !tile_1x8xf32
      %127 = lowlp.load_global %41[%0, %108, %c0] in_bounds : !lowlp.global<2x64x32xui8> -> !tile_16x32xui8_1
      %128 = lowlp.lookup_vectors %127 in %3[0] along 1 book_along 1 staggered [0, 5, 2] : !tile_16x32xui8_1, !lowlp.codebook<32x256x4xf16> -> !tile_16x128xf16_2
      %129 = lowlp.convert_layout %128 : !tile_16x128xf16_2 -> !tile_16x128xf16_3
      %130 = lowlp.view %129 : !tile_16x128xf16_3 -> !tile_16x128xf16_4
      %131 = lowlp.transpose %130 [1, 0] : !tile_16x128xf16_4 -> !tile_128x16xf16
      %132 = lowlp.cast %121 : !tile_16x8xf32 -> !tile_16x8xf16
      %133 = lowlp.convert_layout %132 : !tile_16x8xf16 -> !tile_16x8xf16_1
      %134 = lowlp.broadcast %123 : !tile_1x8xf32 -> !tile_128x8xf32
      %135 = lowlp.mul %arg2, %134 : !tile_128x8xf32
      %136 = lowlp.dot %131, %133, %135 : !tile_128x16xf16, !tile_16x8xf16_1, !tile_128x8xf32
      scf.yield %126, %136, %118 : !tile_1x8xf32, !tile_128x8xf32, !tile_1x8xf32
    }
    %43 = lowlp.reduce max %42#2 dim 1 : !tile_1x8xf32 -> !tile_1x1xf32
    %44 = lowlp.broadcast %43 : !tile_1x1xf32 -> !tile_1x8xf32
    %45 = lowlp.sub %42#2, %44 : !tile_1x8xf32
    %46 = lowlp.exp2 %45 : !tile_1x8xf32
    %47 = lowlp.mul %42#0, %46 : !tile_1x8xf32
    %48 = lowlp.reduce add %47 dim 1 : !tile_1x8xf32 -> !tile_1x1xf32
    %49 = lowlp.broadcast %48 : !tile_1x1xf32 -> !tile_1x8xf32
    %50 = lowlp.div %46, %49 : !tile_1x8xf32
    %51 = lowlp.broadcast %50 : !tile_1x8xf32 -> !tile_128x8xf32
    %52 = lowlp.mul %42#1, %51 : !tile_128x8xf32
    %53 = lowlp.view %52 : !tile_128x8xf32 -> !tile_8x4x4x8xf32
    %54 = lowlp.alloc_shared : !shared_8x4x4x8xf32
    lowlp.store_shared %53, %54[%c0, %c0, %c0, %c0] : !tile_8x4x4x8xf32, !shared_8x4x4x8xf32
    lowlp.synchronize
    %55 = lowlp.view_global %o shape [2, 8, 4, 4] : !lowlp.ptr<f32> -> !lowlp.global<2x8x4x4xf32>
    %56 = lowlp.splat %cst_1 : f32 -> !tile_8x1x4xf32
    %57 = lowlp.load_shared %54[%c0, %c0, %c0, %c0] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %58 = lowlp.view %57 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %59 = lowlp.add %56, %58 : !tile_8x1x4xf32
    %60 = lowlp.load_shared %54[%c0, %c1, %c0, %c1] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %61 = lowlp.view %60 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %62 = lowlp.add %59, %61 : !tile_8x1x4xf32
    %63 = lowlp.load_shared %54[%c0, %c2, %c0, %c2] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %64 = lowlp.view %63 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %65 = lowlp.add %62, %64 : !tile_8x1x4xf32
    %66 = lowlp.load_shared %54[%c0, %c3, %c0, %c3] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %67 = lowlp.view %66 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %68 = lowlp.add %65, %67 : !tile_8x1x4xf32
    lowlp.store_global %68, %55[%0, %c0, %c0, %c0] : !tile_8x1x4xf32, !lowlp.global<2x8x4x4xf32>
    %69 = lowlp.splat %cst_1 : f32 -> !tile_8x1x4xf32
    %70 = lowlp.load_shared %54[%c0, %c1, %c0, %c0] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %71 = lowlp.view %70 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %72 = lowlp.add %69, %71 : !tile_8x1x4xf32
    %73 = lowlp.load_shared %54[%c0, %c0, %c0, %c1] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %74 = lowlp.view %73 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %75 = lowlp.add %72, %74 : !tile_8x1x4xf32
    %76 = lowlp.load_shared %54[%c0, %c3, %c0, %c2] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %77 = lowlp.view %76 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %78 = lowlp.add %75, %77 : !tile_8x1x4xf32
    %79 = lowlp.load_shared %54[%c0, %c2, %c0, %c3] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %80 = lowlp.view %79 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %81 = lowlp.add %78, %80 : !tile_8x1x4xf32
    lowlp.store_global %81, %55[%0, %c0, %c1, %c0] : !tile_8x1x4xf32, !lowlp.global<2x8x4x4xf32>
    %82 = lowlp.splat %cst_1 : f32 -> !tile_8x1x4xf32
    %83 = lowlp.load_shared %54[%c0, %c2, %c0, %c0] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %84 = lowlp.view %83 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %85 = lowlp.add %82, %84 : !tile_8x1x4xf32
    %86 = lowlp.load_shared %54[%c0, %c3, %c0, %c1] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %87 = lowlp.view %86 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %88 = lowlp.add %85, %87 : !tile_8x1x4xf32
    %89 = lowlp.load_shared %54[%c0, %c0, %c0, %c2] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %90 = lowlp.view %89 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %91 = lowlp.add %88, %90 : !tile_8x1x4xf32
    %92 = lowlp.load_shared %54[%c0, %c1, %c0, %c3] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %93 = lowlp.view %92 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %94 = lowlp.add %91, %93 : !tile_8x1x4xf32
    lowlp.store_global %94, %55[%0, %c0, %c2, %c0] : !tile_8x1x4xf32, !lowlp.global<2x8x4x4xf32>
    %95 = lowlp.splat %cst_1 : f32 -> !tile_8x1x4xf32
    %96 = lowlp.load_shared %54[%c0, %c3, %c0, %c0] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %97 = lowlp.view %96 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %98 = lowlp.add %95, %97 : !tile_8x1x4xf32
    %99 = lowlp.load_shared %54[%c0, %c2, %c0, %c1] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %100 = lowlp.view %99 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %101 = lowlp.add %98, %100 : !tile_8x1x4xf32
    %102 = lowlp.load_shared %54[%c0, %c1, %c0, %c2] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %103 = lowlp.view %102 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %104 = lowlp.add %101, %103 : !tile_8x1x4xf32
    %105 = lowlp.load_shared %54[%c0, %c0, %c0, %c3] : !shared_8x4x4x8xf32 -> !tile_8x1x4x1xf32
    %106 = lowlp.view %105 : !tile_8x1x4x1xf32 -> !tile_8x1x4xf32
    %107 = lowlp.add %104, %106 : !tile_8x1x4xf32
    lowlp.store_global %107, %55[%0, %c0, %c3, %c0] : !tile_8x1x4xf32, !lowlp.global<2x8x4x4xf32>
    lowlp.return
  }
}

