//===- LowlpKernelOps.td - kernels and their blocks -----------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPKERNELOPS_TD
#define LOWLP_IR_LOWLPKERNELOPS_TD

include "lowlp/IR/LowlpTypes.td"
include "lowlp/IR/LowlpAttrs.td"
include "lowlp/IR/LowlpSchedule.td"
include "lowlp/IR/LowlpInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Lowlp_Op<string mnemonic, list<Trait> traits = []> : Op<LowlpDialect, mnemonic, traits>;

def Lowlp_KernelOp : Lowlp_Op<"kernel", [
    FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a program that every block of a grid runs";
  let description = [{
    Parameters are pointers (`!lowlp.ptr`), integers (`i32`, `i64`) and floats (`f32`). `grid` maps the integer
    parameters, in their order, to one to three extents; `num_threads` is the size of a block, a multiple of 32 up
    to 1024. A parameter may carry `lowlp.name`, which no two share, pointers `lowlp.align` (bytes, a power of two) and
    `lowlp.constant`, and integers `lowlp.divisible_by`: promises, of which the run time checks the numbers at launch.
    `schedule` tells passes how the work is to be divided, field by field; `lowlp.report`, which passes write, tells what they
    decided.

    The body holds ops of `lowlp`, `scf`, `arith`, `math` and `ub`; its tiles are held by all threads of the block.

    ```mlir
    lowlp.kernel @scale(%x: !lowlp.ptr<f16> {lowlp.align = 16 : i64}, %m: i32)
        attributes {grid = affine_map<(m) -> (m ceildiv 16)>, num_threads = 32 : i64,
                    schedule = #lowlp.schedule<blocks_per_sm = 4>} {
      %bi = lowlp.block_indices : index
      lowlp.return
    }
    ```

    Lowers to `gpu.func` in a `gpu.module`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, AffineMapAttr:$grid,
      I64Attr:$num_threads, OptionalAttr<Lowlp_ScheduleAttr>:$schedule, OptionalAttr<DictArrayAttr>:$arg_attrs,
      OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type,
      "::mlir::AffineMap":$grid, "int64_t":$numThreads)>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The schedule, all of whose fields have their defaults where the kernel has none.
    ::lowlp::ScheduleAttr getScheduleOrDefault();
    /// Sets the schedule, or takes it off where all of its fields have their defaults.
    void changeSchedule(::lowlp::ScheduleAttr schedule);
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Lowlp_ReturnOp : Lowlp_Op<"return", [Pure, HasParent<"KernelOp">, ReturnLike, Terminator]> {
  let summary = "end a kernel";
  let description = [{
    Ends the body of `lowlp.kernel`. Lowers to `gpu.return`.

    ```mlir
    lowlp.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Lowlp_BlockIndicesOp : Lowlp_Op<"block_indices", [Pure]> {
  let summary = "the indices of this block in the grid";
  let description = [{
    As many results as the grid has extents (Tilus, table 1: BlockIndices). Lowers to `gpu.block_id`.

    ```mlir
    %bi, %bj = lowlp.block_indices : index, index
    ```
  }];
  let results = (outs Variadic<Index>:$indices);
  let assemblyFormat = "attr-dict `:` type($indices)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_LOWLPKERNELOPS_TD
