//===- LowlpTypes.td - types of the block dialect -------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPTYPES_TD
#define LOWLP_IR_LOWLPTYPES_TD

include "lowlp/IR/LowlpDialect.td"
include "mlir/IR/AttrTypeBase.td"

// No mnemonics, so that ODS derives no short form: a layout can be read from the text of a whole type only, which the
// dialect's own parser has (LowlpTypes.cpp).
class Lowlp_Type<string name, string word> : TypeDef<LowlpDialect, name> {
  let typeName = "lowlp." # word;
}

def Lowlp_FloatType : Lowlp_Type<"LowlpFloat", "float"> {
  let summary = "a float of 3 to 8 bits that MLIR has no type for";
  let description = [{
    One sign bit, `X` exponent bits (at least 1) and `Y` mantissa bits, bias `2^(X-1) - 1`, with subnormals; every
    code is a finite number. The splits that MLIR has (`f8E4M3FN`, `f8E5M2`, `f8E3M4`, `f6E3M2FN`, `f6E2M3FN`,
    `f4E2M1FN`) are written as MLIR writes them, and are refused here so that each format has one spelling.

    Example: `!lowlp.float<e2m2>`.
  }];
  let parameters = (ins "unsigned":$exponentBits, "unsigned":$mantissaBits);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Bits of one code: sign, exponent and mantissa.
    unsigned getWidth() const { return 1 + getExponentBits() + getMantissaBits(); }
  }];
}

def Lowlp_PtrType : Lowlp_Type<"Pointer", "ptr"> {
  let summary = "the address of elements in global memory, as a kernel receives it";
  let description = [{
    Elements narrower than 8 bits are packed without gaps, low bits first (Tilus, section 6.1 and figure 7):
    element `e` of `b` bits begins at bit `e * b` of the buffer.

    Example: `!lowlp.ptr<si6>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType);
  let genVerifyDecl = 1;
}

def Lowlp_GlobalType : Lowlp_Type<"Global", "global"> {
  let summary = "a view of a tensor in global memory";
  let description = [{
    Its extents bound every access: outside, loads give zero and stores do nothing. A `?` is an extent known at
    launch. Strides belong to the op that makes the view.

    Example: `!lowlp.global<?x4096xf16>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return static_cast<int64_t>(getShape().size()); }
  }];
}

def Lowlp_SharedType : Lowlp_Type<"Shared", "shared"> {
  let summary = "a tile in a block's shared memory";
  let description = [{
    The layout has one thread and maps the address of an element, counted in elements, to its index; left out, it
    is row-major. It may be swizzled (Tilus, appendix B): `swizzle(local(A, B), dim=1, log_step=n)` puts element (i, j)
    of A x B where element `(i, j xor ((i >> n) mod B))` would lie, B being a power of two; with `dim=0` the roles of i
    and j change.

    Examples: `!lowlp.shared<16x32xf16>`, `!lowlp.shared<16x32xf16, column_local(16, 32)>`,
    `!lowlp.shared<3x16x256xf16, local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType, Lowlp_SharedLayoutParameter:$layout);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getShape() const;
    int64_t getRank() const { return static_cast<int64_t>(getShape().size()); }
    /// The bytes that it takes; at most 2^40, which fits nowhere.
    int64_t getSizeInBytes() const;
  }];
}

def Lowlp_PackedType : Lowlp_Type<"Packed", "packed"> {
  let summary = "weights in global memory, in the packed format";
  let description = [{
    A matrix of weights [rows, K], or several [number, rows, K] one after the other, each padded to whole units. The codec
    says what a code means, and with the family of fragments, named by what tensor cores multiply, where its bits lie:
    by the placement `int6.f16` in this example (docs/packed-format.md). Units of the families `f16.k32` and `f16.k16`
    have 32 and 16 weights of a row in place of 64, those of vectors up to 1024. The extents bound every access: outside, loads give codes whose
    stored bits are zero. A `?` is an extent known at launch.

    Example: `!lowlp.packed<4096x?, #lowlp.codec<int6 g128 f16>, f16>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::lowlp::CodecAttr":$codec,
      "::lowlp::FragmentFamily":$family);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The type of the codes in tiles.
    ::mlir::Type getElementType() const;
    /// Where the bits of the codes are.
    const ::lowlp::Placement &getPlacement() const;
  }];
}

def Lowlp_MbarriersType : Lowlp_Type<"Mbarriers", "mbarriers"> {
  let summary = "mbarriers in a block's shared memory";
  let description = [{ As many as the number says. Example: `!lowlp.mbarriers<3>`. }];
  let parameters = (ins "int64_t":$count);
  let genVerifyDecl = 1;
}

def Lowlp_CodebookType : Lowlp_Type<"Codebook", "codebook"> {
  let summary = "codebooks in their cache: vectors that codes name";
  let description = [{
    One book of `entries x values`, or several of `books x entries x values`, of `f16`, `bf16`, `si8` or `f8E4M3FN`; an entry has 2, 4,
    8 or 16 values. The `#lowlp.codebook_cache`, which `lowlp-place-codebooks` chooses, says which entries are in registers, in shared
    memory and in global memory; without it all are in global memory.

    Examples: `!lowlp.codebook<256x8xf16>`,
    `!lowlp.codebook<2x256x8xf16, #lowlp.codebook_cache<shared = 256, copies = 8, line_bytes = 256,
    book_bytes = 128>>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType,
      "::lowlp::CodebookCacheAttr":$cache);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumBooks() const { return getShape().size() == 3 ? getShape().front() : 1; }
    int64_t getNumEntries() const { return getShape()[getShape().size() - 2]; }
    /// The values of an entry.
    int64_t getVectorLength() const { return getShape().back(); }
    int64_t getEntryBytes() const;
    /// Of each book, how many entries are in registers, how many are in these or in shared memory.
    int64_t getRegisterEntries() const { return getCache() ? getCache().getRegisters() : 0; }
    int64_t getSharedEntries() const { return getCache() ? getCache().getShared() : 0; }
    bool hasGlobalEntries() const;
    /// What the entries in shared memory take.
    int64_t getSharedBytes() const;
    /// Codebooks of this shape in another cache.
    CodebookType cloneWith(::lowlp::CodebookCacheAttr cache) const;
  }];
}

def Lowlp_TileType : Lowlp_Type<"Tile", "tile"> {
  let summary = "a tile in the registers of a block's threads";
  let description = [{
    The layout says which thread holds which element; its shape is the tile's shape. A thread holds its elements
    in the order of their local index, those narrower than 8 bits packed without gaps, low bits first.

    Example: `!lowlp.tile<16x8xf32, local(2, 1).spatial(8, 4).local(1, 2)>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType, Lowlp_LayoutParameter:$layout);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<int64_t> getShape() const;
    int64_t getRank() const { return static_cast<int64_t>(getShape().size()); }
    int64_t getNumThreads() const;
    int64_t getNumLocals() const;
    /// Bits of registers that one thread gives to the tile.
    int64_t getBitsPerThread() const;
    /// The same layout with another element type.
    TileType cloneWith(::mlir::Type elementType) const;
  }];
}

def Lowlp_AccumulatorsType : Lowlp_Type<"Accumulators", "accumulators"> {
  let summary = "accumulators of a warpgroup's products in flight";
  let description = [{
    The registers of a tile that `lowlp.wgmma` is still changing: nothing can be done with them but add another product
    or take them as a tile after `lowlp.wgmma_wait`. A value has one use on every way through the program.

    Example: `!lowlp.accumulators<64x8xf32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)>`.
  }];
  let parameters = (ins "::mlir::Type":$elementType, Lowlp_LayoutParameter:$layout);
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// What the accumulators become.
    TileType getTile() const { return TileType::get(getContext(), getElementType(), getLayout()); }
  }];
}

#endif // LOWLP_IR_LOWLPTYPES_TD
