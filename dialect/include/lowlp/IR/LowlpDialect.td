//===- LowlpDialect.td - the block dialect --------------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPDIALECT_TD
#define LOWLP_IR_LOWLPDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/DialectBase.td"

def LowlpDialect : Dialect {
  let name = "lowlp";
  let cppNamespace = "::lowlp";
  let summary = "Low-precision GPU kernels at the level of a thread block";
  let description = [{
    `lowlp` sits between a user's Python program and the thread level (`gpu`, `scf`, `arith`, `math`, `vector`, `simt`).
    Programs are SIMB, single instruction, multiple blocks (Tilus, section 5): one op says what a whole thread
    block does to a tile. A tile's type names its element type, of any width from 1 bit, and the layout that
    says which thread holds which element. Control flow is `scf`, scalars are `arith`.

    Attributes with the prefix `lowlp.` that an op or a parameter does not have are errors, on ops of every dialect.

    The pass `lowlp-convert-to-thread` turns the ops into the program of one thread.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Argument attribute: the bytes to which a pointer parameter is aligned.
    static constexpr ::llvm::StringLiteral kAlignAttrName = "lowlp.align";
    /// Argument attribute: the name a user gave to the parameter.
    static constexpr ::llvm::StringLiteral kNameAttrName = "lowlp.name";
    /// Argument attribute: a number that divides an integer parameter.
    static constexpr ::llvm::StringLiteral kDivisibleByAttrName = "lowlp.divisible_by";
    /// Argument attribute: what a pointer points to is read only, and written by no launch that may still run.
    static constexpr ::llvm::StringLiteral kConstantAttrName = "lowlp.constant";
    /// Attribute of an scf.for: `#lowlp.stages`.
    static constexpr ::llvm::StringLiteral kStagesAttrName = "lowlp.stages";
    /// Attribute of an op whose result has a layout that nobody named, so that any other will do too: of loads,
    /// `lowlp.splat`, `lowlp.iota` and `lowlp.convert_layout`. `lowlp-infer-layouts` reads it.
    static constexpr ::llvm::StringLiteral kFreeLayoutAttrName = "lowlp.free_layout";
    /// Attribute of a gpu.func: the schedule that the kernel had at the block level, `#lowlp.schedule`.
    static constexpr ::llvm::StringLiteral kScheduleAttrName = "lowlp.schedule";
    /// Attribute of a kernel, and of the gpu.func that it becomes: what passes decided, a dictionary that
    /// `lowlp/IR/Report.h` writes.
    static constexpr ::llvm::StringLiteral kReportAttrName = "lowlp.report";

    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser, ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attribute, ::mlir::DialectAsmPrinter &printer) const override;
    ::mlir::Type parseType(::mlir::DialectAsmParser &parser) const override;
    void printType(::mlir::Type type, ::mlir::DialectAsmPrinter &printer) const override;

    void registerAttributes();
    void registerTypes();
  }];
}

/// A layout inside of an attribute or a type, read by reference.
def Lowlp_LayoutParameter
    : AttrOrTypeParameter<"::lowlp::Layout", "a layout", "const ::lowlp::Layout &">;

/// A layout of shared memory inside of a type, read by reference.
def Lowlp_SharedLayoutParameter
    : AttrOrTypeParameter<"::lowlp::SharedLayout", "a layout of shared memory", "const ::lowlp::SharedLayout &">;

#endif // LOWLP_IR_LOWLPDIALECT_TD
