//===- LowlpMemoryOps.td - views, loads and stores ------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPMEMORYOPS_TD
#define LOWLP_IR_LOWLPMEMORYOPS_TD

include "lowlp/IR/LowlpKernelOps.td"

def Lowlp_ViewGlobalOp : Lowlp_Op<"view_global", [Pure, AttrSizedOperandSegments]> {
  let summary = "see a pointer as a tensor";
  let description = [{
    The tensor's extents and its strides, counted in elements, are numbers or `index` values (Tilus, table 1:
    ViewGlobal). Without `strides` the tensor is row-major. A stride of 0 broadcasts. The view must be used where
    this op is visible: it is not a loop-carried value.

    ```mlir
    %v = lowlp.view_global %p shape [%m, 4096] strides [%ld, 1] : !lowlp.ptr<f16> -> !lowlp.global<?x4096xf16>
    ```

    Lowers to nothing: loads and stores compute addresses from its operands.
  }];
  let arguments = (ins Lowlp_PtrType:$source, Variadic<Index>:$dynamicShape, Variadic<Index>:$dynamicStrides,
      DenseI64ArrayAttr:$staticShape,
      DefaultValuedOptionalAttr<DenseI64ArrayAttr, "{}">:$staticStrides);
  let results = (outs Lowlp_GlobalType:$view);
  let assemblyFormat = [{
    $source `shape` custom<DynamicIndexList>($dynamicShape, $staticShape)
    (`strides` custom<DynamicIndexList>($dynamicStrides, $staticStrides)^)?
    attr-dict `:` type($source) `->` type($view)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedShape();
    /// One stride for each dimension; row-major ones are derived where they are static, and null where not.
    ::llvm::SmallVector<::mlir::OpFoldResult> getMixedStrides();
    bool isRowMajor() { return getStaticStrides().empty(); }
  }];
}

class Lowlp_GlobalAccess<string mnemonic, list<Trait> traits = []> : Lowlp_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def Lowlp_LoadGlobalOp : Lowlp_GlobalAccess<"load_global", [MemoryEffects<[MemRead]>,
    Lowlp_LayoutTransferInterface]> {
  let summary = "load a tile from global memory into registers";
  let description = [{
    One offset for each dimension of the view; the tile lies along the view's last dimensions (Tilus, table 1:
    LoadGlobal). Elements outside of the view are zero. `in_bounds` promises that there are none: the test is
    dropped, and the CPU target reports a broken promise.

    ```mlir
    %t = lowlp.load_global %v[%i, %k] : !lowlp.global<?x4096xf16>
      -> !lowlp.tile<16x16xf16, column_local(2, 2).spatial(8, 4).local(1, 2)>
    ```

    Lowers to `simt.load`, as wide as layout, strides and alignment allow; elements narrower than 8 bits are taken
    out of the bytes that hold them (Tilus, section 6.1).
  }];
  let arguments = (ins Lowlp_GlobalType:$source, Variadic<Index>:$offsets, UnitAttr:$in_bounds);
  let results = (outs Lowlp_TileType:$tile);
  let assemblyFormat = [{
    $source `[` $offsets `]` (`in_bounds` $in_bounds^)? attr-dict `:` type($source) `->` type($tile)
  }];
}

def Lowlp_StoreGlobalOp : Lowlp_GlobalAccess<"store_global", [MemoryEffects<[MemWrite]>]> {
  let summary = "store a tile from registers to global memory";
  let description = [{
    The mirror of `lowlp.load_global` (Tilus, table 1: StoreGlobal): elements outside of the view are not written.
    Elements narrower than 8 bits are put into 32-bit words by an atomic AND and an atomic OR, so that threads may
    share a byte; the buffer's address and size are then multiples of 4 bytes. Where several threads hold an element,
    the first of them writes it.

    ```mlir
    lowlp.store_global %t, %v[%i, %j] : !lowlp.tile<...>, !lowlp.global<?x4096xf16>
    ```

    Lowers to `simt.store`, or `simt.atomic_rmw` for elements narrower than 8 bits.
  }];
  let arguments = (ins Lowlp_TileType:$tile, Lowlp_GlobalType:$destination, Variadic<Index>:$offsets,
      UnitAttr:$in_bounds);
  let assemblyFormat = [{
    $tile `,` $destination `[` $offsets `]` (`in_bounds` $in_bounds^)? attr-dict
    `:` type($tile) `,` type($destination)
  }];
}

#endif // LOWLP_IR_LOWLPMEMORYOPS_TD
