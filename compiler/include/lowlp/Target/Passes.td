//===- Passes.td - text and code from the machine level -------*- tablegen -*-===//
#ifndef LOWLP_TARGET_PASSES_TD
#define LOWLP_TARGET_PASSES_TD

include "mlir/Pass/PassBase.td"

def EmitPTX : Pass<"lowlp-emit-ptx", "::mlir::ModuleOp"> {
  let summary = "compile every gpu.module to PTX";
  let description = [{
    Translates every `gpu.module` to LLVM IR, optimises it at `opt-level` (0 to 3), moves conversions of loaded 16-bit
    floats past a loop where they are used only after it, and lets LLVM's NVPTX backend write PTX for `arch`, in the
    oldest PTX version that has `arch` and every instruction that it has.

    Requires: a `gpu.module` holds only `llvm` and `nvvm`, and if it names a target then one of the same `arch`.

    Guarantees: every `gpu.module` is replaced by a `gpu.binary` of its name with one object, whose format is assembly.
    The same module gives the same text. With `seconds`, an attribute `lowlp.seconds` of the `gpu.binary` says how long
    the translation, LLVM's optimiser and its backend took. An error of the backend is a diagnostic at the `gpu.module`.

    Before:

    ```mlir
    gpu.module @kernels {
      llvm.func @nothing() attributes {nvvm.kernel} {
        llvm.return
      }
    }
    ```

    After:

    ```mlir
    gpu.binary @kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a">, assembly = ".version 8.6 ...">]
    ```
  }];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_90a\"", "the architecture, such as sm_90a">,
    Option<"optLevel", "opt-level", "unsigned", "3", "how far LLVM optimises, 0 to 3">,
    Option<"seconds", "seconds", "bool", "false", "leave the time of each step on the gpu.binary">,
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // LOWLP_TARGET_PASSES_TD
