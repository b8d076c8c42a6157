//===- LowlpSchedule.td - what a kernel tells the passes ------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPSCHEDULE_TD
#define LOWLP_IR_LOWLPSCHEDULE_TD

include "lowlp/IR/LowlpDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Lowlp_MatrixUnit : I32EnumAttr<"MatrixUnit", "what makes products", [
    I32EnumAttrCase<"Warp", 0, "warp">, I32EnumAttrCase<"Warpgroup", 1, "warpgroup">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_TableForm : I32EnumAttr<"TableForm", "how codes are looked up in shared memory", [
    I32EnumAttrCase<"Auto", 0, "auto">, I32EnumAttrCase<"Pair", 1, "pair">, I32EnumAttrCase<"Entry", 2, "entry">,
    I32EnumAttrCase<"Register", 3, "register">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_DecodeOffsets : I32EnumAttr<"DecodeOffsets", "where the offsets of decode plans are taken off", [
    I32EnumAttrCase<"Auto", 0, "auto">, I32EnumAttrCase<"Weights", 1, "weights">,
    I32EnumAttrCase<"Accumulators", 2, "accumulators">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_CodebookPlacement : I32EnumAttr<"CodebookPlacement", "where codebooks are kept, as VQ-LLM's table IV names it", [
    I32EnumAttrCase<"Auto", 0, "auto">, I32EnumAttrCase<"GC", 1, "gc">, I32EnumAttrCase<"SC", 2, "sc">,
    I32EnumAttrCase<"O1", 3, "o1">, I32EnumAttrCase<"O2", 4, "o2">, I32EnumAttrCase<"O3", 5, "o3">,
    I32EnumAttrCase<"O4", 6, "o4">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_ScheduleAttr : AttrDef<LowlpDialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how the work of a kernel is divided, and what passes are to prefer";
  let description = [{
    The attribute `schedule` of `lowlp.kernel`. A field that is left out has its default; which values a field takes is
    verified. Passes read it and no other wishes, but for `#lowlp.stages`, which belongs to a loop; what they decided they
    write into `lowlp.report`.

    ```mlir
    lowlp.kernel @product() attributes {grid = affine_map<() -> (1)>, num_threads = 256 : i64,
        schedule = #lowlp.schedule<matrix_unit = warpgroup, products_in_flight = 4, ping_pong = true>} {
    ```
  }];
  let parameters = (ins
    AttrParameter<"::lowlp::MatrixUnit", "what makes products whose operand b is a transposed load of shared memory: warp, "
        "or warpgroup where the architecture has wgmma; default warp">:$matrix_unit,
    AttrParameter<"int64_t", "products of warpgroups in flight at once, 1 to 8: as many operands a are held in "
        "registers; default 2">:$products_in_flight,
    AttrParameter<"bool", "warpgroups begin the products of an iteration one after the other, so that one multiplies "
        "while another does what comes before and after; needs matrix_unit = warpgroup; default false">:$ping_pong,
    AttrParameter<"bool", "a producer is a whole warpgroup, which gives its registers to the others, where the "
        "architecture has setmaxnreg; for blocks of whole warpgroups; default false">:$exchange_registers,
    AttrParameter<"int64_t", "for how many blocks at once a multiprocessor is to have registers, 1 to 32 (PTX ISA, "
        ".minnctapersm); default 0, the assembler's choice">:$blocks_per_sm,
    AttrParameter<"int64_t", "how many neighbouring blocks are a cluster, 1 to 8 (PTX ISA, Cluster of Cooperative Thread "
        "Arrays); the grid then has one extent, a multiple of it; default 1">:$cluster,
    AttrParameter<"::lowlp::TableForm", "how codes are looked up in shared memory: pair, entry or register; default "
        "auto, the cheapest">:$table_form,
    AttrParameter<"int64_t", "copies of each new table, a power of two up to 32; default 0, chosen by "
        "cost">:$table_copies,
    AttrParameter<"::lowlp::DecodeOffsets", "where the offsets of decode plans are taken off: weights or "
        "accumulators; default auto, where it is cheaper">:$decode_offsets,
    AttrParameter<"bool", "products may be added in another order, so that scales of rows go on accumulators rather than "
        "on weights; results differ by roundings; default false">:$reassociate,
    AttrParameter<"::lowlp::CodebookPlacement", "where codebooks are kept, by the names of VQ-LLM's table IV: gc all in global "
        "memory, sc all in shared memory, o1 in shared memory what has room there, o2 to o4 the most frequent entries in registers "
        "too; default auto, with as many copies in shared memory as avoid bank conflicts">:$codebooks);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The most blocks that a cluster of any architecture may have (CUDA C++ Programming Guide, "Thread Block
    /// Clusters").
    static constexpr int64_t kMaxCluster = 8;

    /// The one whose fields all have their defaults.
    static ScheduleAttr getDefault(::mlir::MLIRContext *context);
    /// The names of all fields, as they are written.
    static ::llvm::ArrayRef<::llvm::StringRef> getFieldNames();
    /// The same without clusters, which then are single blocks.
    ScheduleAttr withoutCluster() const;
    /// The same with a producer that keeps its registers.
    ScheduleAttr withoutExchangeOfRegisters() const;
  }];
}

def Lowlp_StagesAttr : AttrDef<LowlpDialect, "Stages"> {
  let mnemonic = "stages";
  let summary = "how far the loads of a loop run ahead";
  let description = [{
    The attribute `lowlp.stages` of an `scf.for`, which `lowlp-pipeline` takes: its loads of global memory get a ring of `count`
    places, 2 to 9. With a `producer` a warp of its own begins the copies, where the architecture has tensor copies.

    ```mlir
    scf.for %i = %c0 to %n step %c1 {
      ...
    } {lowlp.stages = #lowlp.stages<3, producer = true>}
    ```
  }];
  let parameters = (ins AttrParameter<"int64_t", "places of the ring, 2 to 9">:$count,
    DefaultValuedParameter<"bool", "false", "whether a warp of its own begins the copies">:$producer);
  let assemblyFormat = "`<` $count (`,` `producer` `=` $producer^)? `>`";
  let genVerifyDecl = 1;
}

#endif // LOWLP_IR_LOWLPSCHEDULE_TD
