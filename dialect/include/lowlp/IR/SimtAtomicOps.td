//===- SimtAtomicOps.td - atomics, acquire and release -----*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTATOMICOPS_TD
#define LOWLP_IR_SIMTATOMICOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_AtomicKind : I32EnumAttr<"AtomicKind", "what an atomic does with the word in memory", [
    I32EnumAttrCase<"And", 0, "and">, I32EnumAttrCase<"Or", 1, "or">, I32EnumAttrCase<"Add", 2, "add">,
    I32EnumAttrCase<"Exchange", 3, "exchange">, I32EnumAttrCase<"Xor", 4, "xor">, I32EnumAttrCase<"MinS", 5, "min_s">,
    I32EnumAttrCase<"MaxS", 6, "max_s">, I32EnumAttrCase<"MinU", 7, "min_u">,
    I32EnumAttrCase<"MaxU", 8, "max_u">]> {
  let cppNamespace = "::lowlp::simt";
}

def Simt_AtomicData : AnyTypeOf<[I32, F32, F16, BF16, VectorOfLengthAndType<[2], [F16]>,
    VectorOfLengthAndType<[2], [BF16]>], "i32, f32, f16, bf16 or a pair of f16 or bf16">;

def Simt_AtomicRMWOp : Simt_Op<"atomic_rmw", [MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["value", "old"]>]> {
  let summary = "change a number in memory in one step";
  let description = [{
    Relaxed, at the scope of the GPU; the result is what was there. The address is a multiple of the value's size, 2 or
    4 bytes (PTX ISA, `atom`). `min_s` and `max_s` compare signed numbers, `min_u` and `max_u` unsigned ones. Floats
    have `add` alone, which rounds to nearest even; the two numbers of a pair are changed in one step each. A GPU
    flushes subnormals of f32 in global memory to zero, the CPU target does not. Some architectures lack bf16.

    ```mlir
    %old = simt.atomic_rmw or %bits, %p[%offset] : i32, !simt.ptr<global>
    ```
  }];
  let arguments = (ins Simt_AtomicKind:$kind, Simt_AtomicData:$value, Simt_PtrType:$base, I64:$offset);
  let results = (outs Simt_AtomicData:$old);
  let assemblyFormat = "$kind $value `,` $base `[` $offset `]` attr-dict `:` type($value) `,` type($base)";
  let hasVerifier = 1;
}

def Simt_AtomicCASOp : Simt_Op<"atomic_cas", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "replace a 32-bit word of memory if it has a value";
  let description = [{
    A word that is `expected` becomes `desired`, in one step; the result is the old word. Relaxed, at the scope of the
    GPU (PTX ISA, `atom.cas.b32`). The address is a multiple of 4.

    ```mlir
    %old = simt.atomic_cas %expected, %desired, %p[%offset] : !simt.ptr<global>
    ```
  }];
  let arguments = (ins I32:$expected, I32:$desired, Simt_PtrType:$base, I64:$offset);
  let results = (outs I32:$old);
  let assemblyFormat = "$expected `,` $desired `,` $base `[` $offset `]` attr-dict `:` type($base)";
}

def Simt_AcquireOp : Simt_Op<"acquire", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until a word of global memory has a value";
  let description = [{
    Reads the 32-bit word until it is `value`, with acquire semantics at the scope of the GPU: what came before the
    `simt.release` that wrote it comes before what this thread does next (PTX ISA, `ld.acquire.gpu` and "Memory
    Consistency Model"). The address is a multiple of 4. On the CPU target other threads run meanwhile, then other
    blocks; a wait that cannot end is reported.

    ```mlir
    simt.acquire %value, %p[%offset] : !simt.ptr<global>
    ```
  }];
  let arguments = (ins I32:$value, Simt_PtrType:$base, I64:$offset);
  let assemblyFormat = "$value `,` $base `[` $offset `]` attr-dict `:` type($base)";
  let hasVerifier = 1;
}

def Simt_ReleaseKind : I32EnumAttr<"ReleaseKind", "what a release does with the word", [
    I32EnumAttrCase<"Store", 0, "store">, I32EnumAttrCase<"Add", 1, "add">]> {
  let cppNamespace = "::lowlp::simt";
}

def Simt_ReleaseOp : Simt_Op<"release", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "store or add to a word of global memory after all that came before";
  let description = [{
    With release semantics at the scope of the GPU, for a `simt.acquire` that reads it (PTX ISA, `st.release.gpu` and
    `red.release.gpu.add`). What other threads of the block did comes before it if a barrier lies between. The address
    is a multiple of 4.

    ```mlir
    simt.release store %value, %p[%offset] : !simt.ptr<global>
    ```
  }];
  let arguments = (ins Simt_ReleaseKind:$kind, I32:$value, Simt_PtrType:$base, I64:$offset);
  let assemblyFormat = "$kind $value `,` $base `[` $offset `]` attr-dict `:` type($base)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_SIMTATOMICOPS_TD
