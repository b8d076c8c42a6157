//===- SimtMemoryOps.td - a thread's loads and stores ---*- tablegen -*-===//
#ifndef LOWLP_IR_SIMTMEMORYOPS_TD
#define LOWLP_IR_SIMTMEMORYOPS_TD

include "lowlp/IR/SimtDialect.td"

def Simt_SharedMemoryOp : Simt_Op<"shared_memory", [Pure]> {
  let summary = "an address in the block's dynamic shared memory";
  let description = [{
    `offset` bytes, a multiple of 16, past its begin (PTX ISA, state space `.shared`). How many bytes there are is the
    kernel's attribute `lowlp.shared_bytes`.

    ```mlir
    %p = simt.shared_memory 1024 : !simt.ptr<shared>
    ```
  }];
  let arguments = (ins I64Attr:$offset);
  let results = (outs Simt_PtrType:$address);
  let assemblyFormat = "$offset attr-dict `:` type($address)";
  let hasVerifier = 1;
}

def Simt_MapSharedOp : Simt_Op<"map_shared", [Pure]> {
  let summary = "the same place in another block's shared memory";
  let description = [{
    Of the block of the cluster that has the number `block` (PTX ISA, `mapa`). Clusters are expanded before the program
    of one thread for targets without them, the CPU among these, so this op has no lowering there.

    ```mlir
    %q = simt.map_shared %p, %block : !simt.ptr<shared> -> !simt.ptr<cluster>
    ```
  }];
  let arguments = (ins Simt_PtrType:$own, I32:$block);
  let results = (outs Simt_PtrType:$address);
  let assemblyFormat = "$own `,` $block attr-dict `:` type($own) `->` type($address)";
  let hasVerifier = 1;
}

def Simt_OffsetOp : Simt_Op<"offset", [Pure, AllTypesMatch<["base", "address"]>]> {
  let summary = "the address a number of bytes past another";
  let description = [{
    For places that a program divides memory into. The CPU target takes it for a pointer into the allocation that it
    then lies in. On a GPU it is `llvm.getelementptr`.

    ```mlir
    %q = simt.offset %p[%bytes] : !simt.ptr<global>
    ```
  }];
  let arguments = (ins Simt_PtrType:$base, I64:$offset);
  let results = (outs Simt_PtrType:$address);
  let assemblyFormat = "$base `[` $offset `]` attr-dict `:` type($base)";
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

def Simt_StoreAsyncOp : Simt_Op<"store_async", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begin to store words in another block's shared memory";
  let description = [{
    1, 2 or 4 words of 32 bits, whose bytes count at the mbarrier `barrier` bytes past the same base: who waits there for
    its phase sees them (PTX ISA, `st.async`). As `simt.map_shared` it has no lowering to the CPU.

    ```mlir
    simt.store_async %v, %p[%offset] arrives [%barrier] : vector<4xi32>, !simt.ptr<cluster>
    ```
  }];
  let arguments = (ins VectorOfLengthAndType<[1, 2, 4], [I32]>:$value, Simt_PtrType:$base, I64:$offset, I64:$barrier);
  let assemblyFormat = "$value `,` $base `[` $offset `]` `arrives` `[` $barrier `]` attr-dict `:` type($value) `,` type($base)";
  let hasVerifier = 1;
}

#endif // LOWLP_IR_SIMTMEMORYOPS_TD
