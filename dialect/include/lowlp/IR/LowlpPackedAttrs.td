//===- LowlpPackedAttrs.td - what packed weights mean ---------*- tablegen -*-===//
//
// The attributes hold objects of the libraries of number formats and of decoding, and leave text, equality and checks to
// them. Their classes are declared in LowlpPackedAttrs.h.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_IR_LOWLPPACKEDATTRS_TD
#define LOWLP_IR_LOWLPPACKEDATTRS_TD

include "lowlp/IR/LowlpDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Lowlp_CodecAttr : AttrDef<LowlpDialect, "Codec"> {
  let attrName = "lowlp.codec";
  let summary = "what the codes of a tensor mean";
  let description = [{
    A codec (dialect/include/lowlp/Numeric/Codec.h): the field of a code, which weights share a scale, the types of
    scales, zero points or offsets, and whether there is a second scale. `value = (s * (q - z)) * s2`, or `(s * q) + b`;
    with integers as scales that super-scales multiply, `(S * s) * (q - z)`, or `((S * s) * q) + (B * b)`.

    ```mlir
    #lowlp.codec<int6 g128 f16>                        // q is the code, scales are f16, one for 128 weights of a row
    #lowlp.codec<uint4 channel bf16 zeros:uint8>
    #lowlp.codec<f4e2m1 g16 e4m3 scale2>               // a second scale, of all weights
    #lowlp.codec<int6 g16 int8 super:f16:g256>         // integer scales, and super-scales for 256 weights of a row
    #lowlp.codec<lut2:f32[-1, 0, 0.5, 1] tensor f16>   // q is an entry of a table
    #lowlp.codec<lut4:f32:group g64 f16>               // a table for each group, an operand of the kernel
    #lowlp.codec<int6>                                 // codes alone
    #lowlp.codec<vec8:2x8:f16 channel f16>             // vectors of 8 weights, sums of entries of 2 books, codes of 8 bits
    #lowlp.codec<vec4:1x8:int8:256x256 g128 f16>       // books for each 256 rows by 256 of K
    #lowlp.codec<e8p+e8p channel f16>                  // books that are computed
    ```

    Fields of planes are reserved, and refused.
  }];
  let parameters = (ins AttrParameter<"::lowlp::Codec", "the codec", "const ::lowlp::Codec &">:$codec);
  let extraClassDeclaration = [{
    /// The type of the codes in tiles: `si6`, `f6E3M2FN`; `ui4` of bipolar numbers and indices, `ui16` of indices of
    /// more than 8 bits; `ui8` where the books of vectors have codes of several widths, which are taken byte by byte.
    ::mlir::Type getElementType() const;
  }];
}

def Lowlp_PlacementAttr : AttrDef<LowlpDialect, "Placement"> {
  let attrName = "lowlp.placement";
  let summary = "where the bits of codes are in packed words";
  let description = [{
    A placement of the packed format by its name, the format of stored codes and the family of fragments:
    `#lowlp.placement<int6.f16>`, or `int6.f16.k32` in units of 32 weights of a row. Ops write the name as a string.
  }];
  let parameters = (ins AttrParameter<"const ::lowlp::Placement *", "the placement">:$placement);
  let extraClassDeclaration = [{
    const ::lowlp::Placement &operator*() const { return *getPlacement(); }
    const ::lowlp::Placement *operator->() const { return getPlacement(); }
  }];
}

def Lowlp_PlanAttr : AttrDef<LowlpDialect, "Plan"> {
  let attrName = "lowlp.plan";
  let summary = "the instructions that turn packed words into fragments";
  let description = [{
    A decode plan (dialect/include/lowlp/Decode/DecodePlan.h), a line of its text to each string:

    ```mlir
    #lowlp.plan<["decode int4.f16 accumulators words 4", "row 0 exponent -24", "row 1 exponent -20",
                 "r4 = lop3 r0, 0xf000f, 0x0, 0xc0", "slot 0 = r4"]>
    ```

    A plan fits its placement: it reads registers that are there, and has the placement's rows and slots. That it gives
    the right numbers is proved where it is carried out.
  }];
  let parameters = (ins AttrParameter<"::lowlp::DecodePlan", "the plan", "const ::lowlp::DecodePlan &">:$plan);
  let genVerifyDecl = 1;
}

#endif // LOWLP_IR_LOWLPPACKEDATTRS_TD
