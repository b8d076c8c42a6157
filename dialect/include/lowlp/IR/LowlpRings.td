//===- LowlpRings.td - what lowlp-choose-rings hands over -----*- tablegen -*-===//
//
// A file of its own, which few others need: it is not part of Lowlp.td.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_IR_LOWLPRINGS_TD
#define LOWLP_IR_LOWLPRINGS_TD

include "lowlp/IR/LowlpDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Lowlp_RingCopies : I32EnumAttr<"RingCopies", "who fills the places of a ring", [
    I32EnumAttrCase<"AllThreads", 0, "all_threads">, I32EnumAttrCase<"FirstThread", 1, "first_thread">,
    I32EnumAttrCase<"ProducerWarp", 2, "producer_warp">]> {
  let cppNamespace = "::lowlp";
  let genSpecializedAttr = 0;
}

def Lowlp_RingsAttr : AttrDef<LowlpDialect, "Rings"> {
  let mnemonic = "rings";
  let summary = "the rings of a loop, and who fills them";
  let description = [{
    The attribute `lowlp.rings` of an `scf.for`, which `lowlp-choose-rings` writes and `lowlp-pipeline` takes. Whoever wants
    another choice writes it by hand. Copies are made by `all_threads`, asynchronously; or they are tensor copies, which the
    `first_thread` begins, or a `producer_warp`. Each ring is a shared tile whose first extent is the number of stages, 2 to 9,
    the same for all; the others, from the last one on, are what a copy moves. A `producer_warp` fills those whose numbers
    are listed after `multicast` by copies to all blocks of the cluster, of which each makes an equal part (`#lowlp.multicast`).

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      %t = lowlp.load_global %v[%i, %c0] {lowlp.ring = #lowlp.ring<0 at [0]>} : !lowlp.global<?x64xf16> -> !tile
    } {lowlp.rings = #lowlp.rings<first_thread fills [!lowlp.shared<3x64xf16>]>}
    ```
  }];
  let parameters = (ins EnumParameter<Lowlp_RingCopies>:$copies,
    ArrayRefParameter<"::mlir::Type", "the shared tile of each ring">:$tiles,
    OptionalArrayRefParameter<"int64_t", "the numbers of the rings that multicast fills">:$multicast);
  let assemblyFormat = "`<` $copies `fills` `[` $tiles `]` (`multicast` `[` $multicast^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kName = "lowlp.rings";
    /// The places of each ring.
    int64_t getNumStages() const;
  }];
}

def Lowlp_RingAttr : AttrDef<LowlpDialect, "Ring"> {
  let mnemonic = "ring";
  let summary = "which part of which ring a load reads";
  let description = [{
    The attribute `lowlp.ring` of a `lowlp.load_global` in the body of a loop with `lowlp.rings`: the number of the ring, and
    where the tile begins in what a copy moves, along its last dimensions. One load of each ring begins at 0; the others lie as
    far after it in the view as they do in the copy.
  }];
  let parameters = (ins "int64_t":$ring, ArrayRefParameter<"int64_t", "where the tile begins">:$position);
  let assemblyFormat = "`<` $ring `at` `[` $position `]` `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kName = "lowlp.ring";
  }];
}

def Lowlp_MulticastAttr : AttrDef<LowlpDialect, "Multicast"> {
  let mnemonic = "multicast";
  let summary = "what the blocks of a cluster copy for each other";
  let description = [{
    The attribute `lowlp.multicast`, with the number of blocks of the kernel's clusters, 2 to 8. What it says depends on the op:

    - of an `scf.for` with `lowlp.stages`: loads that are the same in all blocks of a cluster may be made once for all;
      `lowlp-choose-rings` finds out which these are;
    - of a `lowlp.copy_tensor` or `simt.copy_tensor`: what it copies goes to the same place of all blocks of the cluster, and an
      mbarrier of each counts it. Each block makes a copy: a `lowlp.copy_tensor` of an equal part along the first dimension but
      the last that divides, so that together they bring all of it to all;
    - of `lowlp.alloc_mbarriers`: each warp that arrives arrives at the mbarrier of every block, so `arrivals` counts those of all;
    - of a `simt.mbarrier_arrive` of a warp: it arrives at the mbarrier at this place of every block;
    - of a `lowlp.producer_warp`: all threads of the cluster meet before it begins, so that the mbarriers of all blocks are there.

    ```mlir
    lowlp.copy_tensor %x[%j, %k] to %s[%place, %c0, %c0] shape [128, 64] signals %full[%place]
      {lowlp.multicast = #lowlp.multicast<2>} : ...
    ```

    Lowers to `.multicast::cluster` and `mapa` (PTX ISA, `cp.async.bulk.tensor`). The CPU target, which has no clusters, takes the
    attribute off loops (`lowlp-expand-clusters`), and each block copies for itself.
  }];
  let parameters = (ins AttrParameter<"int64_t", "of the cluster">:$blocks);
  let assemblyFormat = "`<` $blocks `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kName = "lowlp.multicast";
    /// That of `op`, or null.
    static MulticastAttr of(::mlir::Operation *op);
    /// How many blocks get what `op` copies: 1 without the attribute.
    static int64_t countBlocks(::mlir::Operation *op);
  }];
}

#endif // LOWLP_IR_LOWLPRINGS_TD
