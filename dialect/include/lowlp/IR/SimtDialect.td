//===- SimtDialect.td - the thread dialect and its types ---*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTDIALECT_TD
#define LOWLP_IR_SIMTDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def SimtDialect : Dialect {
  let name = "simt";
  let cppNamespace = "::lowlp::simt";
  let summary = "What one thread of a GPU does that upstream dialects cannot say";
  let description = [{
    `simt` is the part of the thread level that upstream dialects lack; it stands next to `gpu`, `scf`, `arith`,
    `math` and `vector`. Every op has two lowerings, side by side: `lowlp-convert-thread-to-nvvm` and
    `lowlp-convert-thread-to-cpu`; but ops of clusters have the first alone, since `lowlp-expand-clusters` leaves none to
    the CPU. Memory accesses are ops of this dialect so that the CPU target can check each one
    and name where it came from.
  }];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    /// Attribute of a gpu.func: how many registers its threads begin with, where they set that anew.
    static constexpr ::llvm::StringLiteral kLaunchRegistersAttrName = "lowlp.launch_registers";
  }];
}

class Simt_Op<string mnemonic, list<Trait> traits = []> : Op<SimtDialect, mnemonic, traits>;

def Simt_MemorySpace : I32EnumAttr<"MemorySpace", "a memory space of the GPU", [
    I32EnumAttrCase<"Global", 1, "global">, I32EnumAttrCase<"Shared", 3, "shared">,
    I32EnumAttrCase<"Cluster", 7, "cluster">]> {
  let cppNamespace = "::lowlp::simt";
}

def Simt_PtrType : TypeDef<SimtDialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "an address in global or shared memory";
  let description = [{
    Untyped; offsets from it count bytes. `cluster` is shared memory of any block of the cluster. Example:
    `!simt.ptr<global>`.
  }];
  let parameters = (ins EnumParameter<Simt_MemorySpace>:$space);
  let assemblyFormat = "`<` $space `>`";
}

#endif // LOWLP_IR_SIMTDIALECT_TD
