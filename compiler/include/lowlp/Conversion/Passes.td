//===- Passes.td - from one level of the compiler to the next -*- tablegen -*-===//
#ifndef LOWLP_CONVERSION_PASSES_TD
#define LOWLP_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertToThread : Pass<"lowlp-convert-to-thread", "::mlir::ModuleOp"> {
  let summary = "turn kernels of the block level into the program of one thread";
  let description = [{
    Turns every `lowlp.kernel` into a `gpu.func` of the `gpu.module` called `kernels`.

    `arch` is the architecture whose instructions the program may use; without one, those that all have. It decides
    between instructions that do the same, so the values are the same for every architecture.

    Requires: every tile has a layout whose threads are those of its kernel, and gives each at most 8192 elements; the
    shared tiles of a kernel take at most 227 KiB.

    Guarantees: no op of `lowlp` is left. A kernel's body is `gpu`, `scf`, `arith`, `math`, `vector` and `simt`; the grid
    is the attribute `lowlp.grid`, the size of a block is `known_block_size`, the bytes of dynamic shared memory that the
    kernel needs, if any, are `lowlp.shared_bytes`. Where it allocates global memory, `lowlp.workspace` lists that (`name`,
    `shape` over the integer parameters, `element_bits`, `zeroed`), and the last parameter, which `lowlp.parameters` does not
    list, is the pointer to it: see `lowlp.alloc_global`. Every op carries the name and the location of the
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
  let options = [Option<"arch", "arch", "std::string", "\"\"", "the architecture, such as sm_90a; none if left out">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect", "::mlir::math::MathDialect",
      "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect", "::lowlp::simt::SimtDialect"];
}

def ConvertThreadToNVVM : Pass<"lowlp-convert-thread-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "turn the program of one thread into the llvm and nvvm dialects";
  let description = [{
    Lowers the contents of every `gpu.module` for the architecture `arch`. `!simt.ptr<global>` becomes `!llvm.ptr<1>`,
    `!simt.ptr<shared>` becomes `!llvm.ptr<3>`, an `index` has 64 bits, `simt.mma` becomes `nvvm.mma.sync`;
    `simt.assert` is dropped. An instruction that `arch` lacks is an error. No two roundings are fused into one: a product and a sum stay `mul.rn` and `add.rn`.

    Requires: every kernel is a `gpu.func` with `known_block_size` and without attributions. `arch` is one that lowlp
    knows, it has the instructions that the ops stand for, and its blocks may have the shared memory that each kernel takes
    (`lowlp targets` lists both).

    Guarantees: a `gpu.module` holds nothing but `llvm` and `nvvm`, and its target names `arch`. The attribute
    `lowlp.kernels` of the module describes each kernel by name: its `block_size`, and each attribute `lowlp.x` of
    the `gpu.func` under the name `x`.

    Before:

    ```mlir
    gpu.func @copy(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      %zero = arith.constant 0 : i64
      %v = simt.load %p[%zero] align 16 : <global> -> vector<4xi32>
      simt.store %v, %p[%zero] align 16 : vector<4xi32>, <global>
      gpu.return
    }
    ```

    After:

    ```mlir
    llvm.func @copy(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>} {
      %zero = llvm.mlir.constant(0 : i64) : i64
      %from = llvm.getelementptr %p[%zero] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      %v = llvm.load %from {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
      %to = llvm.getelementptr %p[%zero] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
      llvm.store %v, %to {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
      llvm.return
    }
    ```
  }];
  let options = [Option<"arch", "arch", "std::string", "\"sm_90a\"", "the architecture, such as sm_90a">];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect",
      "::mlir::cf::ControlFlowDialect"];
}

def ConvertThreadToCPU : Pass<"lowlp-convert-thread-to-cpu", "::mlir::ModuleOp"> {
  let summary = "turn the program of one thread into host code in the llvm dialect";
  let description = [{
    Makes of every kernel a function of the host that carries out one GPU thread, `void (LowlpThread *thread, void
    *const *args)` (`lowlp/CPU/ABI.h`); `args[i]` points at the value of the i-th argument. Indices, collectives, atomics
    and assertions become calls of the executor, and a load or store is announced to it by `lowlpCpuCheckAccess`. The
    call names its op by a string such as `lowlp.load_global at fig2.mlir:12:8`, whose parts are the name and the place
    in the op's location, or the op's own name if the location has none. Every op has a string of its own. A division of
    integers by 0 is reported, and one whose quotient is too large wraps; a host would end the process. Every loop calls
    `lowlpCpuPoll`, so that a launch can be stopped.

    Requires: every kernel is a `gpu.func` with `known_block_size` and without attributions. A `gpu.module` holds nothing
    but kernels, whose names are those of no other symbol of the module.

    Guarantees: no `gpu.module` is left and the module holds `llvm` in its place. The attribute `lowlp.kernels` of the
    module describes the kernels as `lowlp-convert-thread-to-nvvm` does.

    Before:

    ```mlir
    gpu.func @wait() kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
      gpu.barrier
      gpu.return
    }
    ```

    After:

    ```mlir
    llvm.mlir.global internal constant @lowlp.site_0("gpu.barrier at wait.mlir:2:3\\00")
    llvm.func @lowlpCpuBarrier(!llvm.ptr, !llvm.ptr)
    llvm.func @wait(%thread: !llvm.ptr, %args: !llvm.ptr) {
      %site = llvm.mlir.addressof @lowlp.site_0 : !llvm.ptr
      llvm.call @lowlpCpuBarrier(%thread, %site) : (!llvm.ptr, !llvm.ptr) -> ()
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::cf::ControlFlowDialect"];
}

#endif // LOWLP_CONVERSION_PASSES_TD
