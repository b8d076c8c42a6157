//===- Simt.td - the machine ops of the thread level ----------*- tablegen -*-===//
#ifndef LOWLP_IR_SIMT_TD
#define LOWLP_IR_SIMT_TD

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
    `lowlp-convert-thread-to-cpu`. Memory accesses are ops of this dialect so that the CPU target can check each one
    and name where it came from.
  }];
  let useDefaultTypePrinterParser = 1;
}

class Simt_Op<string mnemonic, list<Trait> traits = []> : Op<SimtDialect, mnemonic, traits>;

def Simt_MemorySpace : I32EnumAttr<"MemorySpace", "a memory space of the GPU", [
    I32EnumAttrCase<"Global", 1, "global">, I32EnumAttrCase<"Shared", 3, "shared">]> {
  let cppNamespace = "::lowlp::simt";
}

def Simt_PtrType : TypeDef<SimtDialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "an address in global or shared memory";
  let description = [{ Untyped; offsets from it count bytes. Example: `!simt.ptr<global>`. }];
  let parameters = (ins EnumParameter<Simt_MemorySpace>:$space);
  let assemblyFormat = "`<` $space `>`";
}

def Simt_Data : AnyTypeOf<[I8, I16, I32, I64, F16, BF16, F32,
    VectorOfAnyRankOf<[I8, I16, I32, F16, BF16, F32]>], "a scalar or vector of whole bytes">;

class Simt_Access<string mnemonic, list<Trait> traits> : Simt_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Simt_LoadOp : Simt_Access<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "load a scalar or vector";
  let description = [{
    Reads as many bytes as the result has, `offset` bytes past `base`. The address is a multiple of `align`, which is a
    promise to the target; the CPU target checks it (PTX ISA, `ld`).

    ```mlir
    %v = simt.load %p[%offset] align 16 : !simt.ptr<global> -> vector<4xi32>
    ```
  }];
  let arguments = (ins Simt_PtrType:$base, I64:$offset, I64Attr:$align);
  let results = (outs Simt_Data:$value);
  let assemblyFormat = "$base `[` $offset `]` `align` $align attr-dict `:` type($base) `->` type($value)";
}

def Simt_StoreOp : Simt_Access<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "store a scalar or vector";
  let description = [{
    The mirror of `simt.load` (PTX ISA, `st`).

    ```mlir
    simt.store %v, %p[%offset] align 4 : vector<2xf16>, !simt.ptr<global>
    ```
  }];
  let arguments = (ins Simt_Data:$value, Simt_PtrType:$base, I64:$offset, I64Attr:$align);
  let assemblyFormat = "$value `,` $base `[` $offset `]` `align` $align attr-dict `:` type($value) `,` type($base)";
}

def Simt_AtomicKind : I32EnumAttr<"AtomicKind", "what an atomic does with the word in memory", [
    I32EnumAttrCase<"And", 0, "and">, I32EnumAttrCase<"Or", 1, "or">, I32EnumAttrCase<"Add", 2, "add">,
    I32EnumAttrCase<"Exchange", 3, "exchange">]> {
  let cppNamespace = "::lowlp::simt";
}

def Simt_AtomicRMWOp : Simt_Op<"atomic_rmw", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "change a 32-bit word of memory in one step";
  let description = [{
    Relaxed, at the scope of the GPU; the result is the old word. The address is a multiple of 4 (PTX ISA, `atom`).

    ```mlir
    %old = simt.atomic_rmw or %bits, %p[%offset] : !simt.ptr<global>
    ```
  }];
  let arguments = (ins Simt_AtomicKind:$kind, I32:$value, Simt_PtrType:$base, I64:$offset);
  let results = (outs I32:$old);
  let assemblyFormat = "$kind $value `,` $base `[` $offset `]` attr-dict `:` type($base)";
}

def Simt_MmaOp : Simt_Op<"mma", [Pure, AllTypesMatch<["c", "d"]>]> {
  let summary = "a warp's matrix multiply and accumulate, m16n8k16";
  let description = [{
    `d = a * b + c` over the 32 threads of a warp, all of which must arrive here together. Each gives 8 elements of
    `a`, 4 of `b` and 4 of `c`, in the order of the fragments of `mma.sync.aligned.m16n8k16.row.col` (PTX ISA, "Matrix
    Fragments for mma.m16n8k16").

    ```mlir
    %d = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[VectorOfLengthAndType<[8], [F16]>, VectorOfLengthAndType<[8], [BF16]>]>:$a,
      AnyTypeOf<[VectorOfLengthAndType<[4], [F16]>, VectorOfLengthAndType<[4], [BF16]>]>:$b,
      VectorOfLengthAndType<[4], [F32]>:$c);
  let results = (outs VectorOfLengthAndType<[4], [F32]>:$d);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
}

def Simt_AssertOp : Simt_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "a promise that the CPU target checks";
  let description = [{
    On the CPU target a false condition ends the launch with the message and the location. On a GPU it costs nothing.

    ```mlir
    simt.assert %inside, "element lies outside of the view"
    ```
  }];
  let arguments = (ins I1:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict";
}

#endif // LOWLP_IR_SIMT_TD
