// Memory grows with the elements of a thread, and not with their square, which would take 1.4 GB here.
// RUN: ulimit -v 1200000; lowlp-opt --lowlp-to-nvvm %s -o /dev/null

!tile = !lowlp.tile<65536xf32, local(2048).spatial(32)>
lowlp.kernel @wide(%x: !lowlp.ptr<f32> {lowlp.name = "x"}) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %zero = arith.constant 0 : index
  %view = lowlp.view_global %x shape [65536] : !lowlp.ptr<f32> -> !lowlp.global<65536xf32>
  %tile = lowlp.load_global %view[%zero] : !lowlp.global<65536xf32> -> !tile
  %square = lowlp.mul %tile, %tile : !tile
  lowlp.store_global %square, %view[%zero] : !tile, !lowlp.global<65536xf32>
  lowlp.return
}
