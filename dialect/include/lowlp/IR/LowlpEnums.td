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

def Lowlp_AtomicKind : I32EnumAttr<"AtomicKind", "what an atomic does with an element in memory", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Min", 1, "min">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"And", 3, "and">, I32EnumAttrCase<"Or", 4, "or">, I32EnumAttrCase<"Xor", 5, "xor">,
    I32EnumAttrCase<"Exchange", 6, "exchange">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_ShiftDirection : I32EnumAttr<"ShiftDirection", "where bits move", [
    I32EnumAttrCase<"Left", 0, "left">, I32EnumAttrCase<"Right", 1, "right">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_ShiftMode : I32EnumAttr<"ShiftMode", "what an amount beyond 31 means", [
    I32EnumAttrCase<"Wrap", 0, "wrap">, I32EnumAttrCase<"Clamp", 1, "clamp">]> {
  let cppNamespace = "::lowlp";
}

def Lowlp_ShuffleMode : I32EnumAttr<"ShuffleMode", "which lane a shuffle reads", [
    I32EnumAttrCase<"Xor", 0, "xor">, I32EnumAttrCase<"Up", 1, "up">, I32EnumAttrCase<"Down", 2, "down">,
    I32EnumAttrCase<"Idx", 3, "idx">]> {
  let cppNamespace = "::lowlp";
}

#endif // LOWLP_IR_LOWLPENUMS_TD
