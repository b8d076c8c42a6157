//===- LowlpEnums.td - enumerations of the block dialect ------*- tablegen -*-===//
#ifndef LOWLP_IR_LOWLPENUMS_TD
#define LOWLP_IR_LOWLPENUMS_TD

include "mlir/IR/EnumAttr.td"

def Lowlp_ComparePredicate : I32EnumAttr<"ComparePredicate", "how two numbers are compared", [
    I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">, I32EnumAttrCase<"LT", 2, "lt">,
    I32EnumAttrCase<"LE", 3, "le">, I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines two numbers", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">]> {
  let cppNamespace = "::lowlp";
}

#endif // LOWLP_IR_LOWLPENUMS_TD
