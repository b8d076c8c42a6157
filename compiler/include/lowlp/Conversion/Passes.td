//===- Passes.td - from one level of the compiler to the next -*- tablegen -*-===//
#ifndef LOWLP_CONVERSION_PASSES_TD
#define LOWLP_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertToThread : Pass<"lowlp-convert-to-thread", "::mlir::ModuleOp"> {
  let summary = "turn kernels of the block level into the program of one thread";
  let description = [{
    Turns every `lowlp.kernel` into a `gpu.func` of the `gpu.module` called `kernels`.

    Requires: every tile has a layout whose threads are those of its kernel.

    Guarantees: no op of `lowlp` is left. A kernel's body is `gpu`, `scf`, `arith`, `vector` and `simt`; the grid is the
    attribute `lowlp.grid`, the size of a block is `known_block_size`; every op carries the name and the location of the
    block op that it was made from.

    Before:

    ```mlir
    lowlp.kernel @nothing(%m: i32) attributes {grid = affine_map<(m) -> (m)>, num_threads = 32 : i64} {
      lowlp.return
    }
    ```

    After:

    ```mlir
    gpu.module @kernels {
      gpu.func @nothing(%m: i32) kernel attributes {
          known_block_size = array<i32: 32, 1, 1>, lowlp.grid = affine_map<(m) -> (m)>} {
        gpu.return
      }
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::scf::SCFDialect",
      "::mlir::vector::VectorDialect", "::lowlp::simt::SimtDialect"];
}

#endif // LOWLP_CONVERSION_PASSES_TD
