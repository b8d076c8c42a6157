//===- LowlpInterfaces.td - what passes ask of ops ------------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPINTERFACES_TD
#define LOWLP_IR_LOWLPINTERFACES_TD

include "mlir/IR/OpBase.td"

def Lowlp_LayoutTransferInterface : OpInterface<"LayoutTransferInterface"> {
  let cppNamespace = "::lowlp";
  let description = [{
    An op with one tile as its result, which may hold it in more than one layout. Its operands that are tiles, counted
    from 0 without the others, are then held as the methods say. Without methods of its own an op holds all of them as
    it holds the result, as arithmetic element by element does; one that has no tiles as operands, such as a load, may
    hold its result in any layout.

    Ops that demand the layouts they have, such as `lowlp.dot`, do not have the interface.
  }];
  let methods = [
    InterfaceMethod<
      "The layouts of the operands with which the result is held as `result`; nothing where it cannot be.",
      "::std::optional<::llvm::SmallVector<::lowlp::Layout>>", "getOperandLayouts",
      (ins "const ::lowlp::Layout &":$result), "", [{
        return ::llvm::SmallVector<::lowlp::Layout>(::lowlp::getTileOperands($_op).size(), result);
      }]>,
    InterfaceMethod<
      "The layout of the result that follows when operand `number` is held as `operand`; nothing where none does.",
      "::std::optional<::lowlp::Layout>", "getResultLayout",
      (ins "unsigned":$number, "const ::lowlp::Layout &":$operand), "", [{ return operand; }]>,
  ];
}

/// For ops with methods of their own.
def Lowlp_LayoutTransfer : DeclareOpInterfaceMethods<Lowlp_LayoutTransferInterface,
    ["getOperandLayouts", "getResultLayout"]>;

#endif // LOWLP_IR_LOWLPINTERFACES_TD
