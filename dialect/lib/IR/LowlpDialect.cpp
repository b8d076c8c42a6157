//===- LowlpDialect.cpp - the block dialect and its attributes ------------===//
//
// A layout is written as the papers write it, `local(2, 1).spatial(8, 4)`.
// The dots between the factors are no tokens of MLIR's, so layouts are read
// from the text of the whole attribute, which MLIR hands to the dialect; the
// parser then goes on after it.
//
//===----------------------------------------------------------------------===//
#include "LowlpAliases.h"
#include "LowlpPackedAttrs.h"

#include "lowlp/Decode/DecodePlan.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/LowlpRings.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Numeric/Codec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

#include "lowlp/IR/LowlpDialect.cpp.inc"
#include "lowlp/IR/LowlpEnums.cpp.inc"
#include "lowlp/IR/LowlpInterfaces.cpp.inc"

namespace lowlp {
// How objects of the libraries are hashed as parameters of attributes.
static llvm::hash_code hash_value(const Codec &codec) { return codec.hash(); }
static llvm::hash_code hash_value(const DecodePlan &plan) {
  return plan.hash();
}
} // namespace lowlp

#define GET_ATTRDEF_CLASSES
#include "lowlp/IR/LowlpAttrs.cpp.inc"

// The attributes of LowlpRings.td, with a parser and a printer of their own.
#define generatedAttributeParser generatedRingParser
#define generatedAttributePrinter generatedRingPrinter
#define GET_ATTRDEF_CLASSES
#include "lowlp/IR/LowlpRings.cpp.inc"
#undef generatedAttributeParser
#undef generatedAttributePrinter

SmallVector<OpOperand *> lowlp::getTileOperands(Operation *op) {
  SmallVector<OpOperand *> tiles;
  for (OpOperand &operand : op->getOpOperands())
    if (isa<TileType>(operand.get().getType()))
      tiles.push_back(&operand);
  return tiles;
}

void LowlpDialect::initialize() {
  registerAttributes();
  registerTypes();
  addAliases(*this);
  addOperations<
#define GET_OP_LIST
#include "lowlp/IR/LowlpOps.cpp.inc"
      >();
}

void LowlpDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "lowlp/IR/LowlpAttrs.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "lowlp/IR/LowlpRings.cpp.inc"
      >();
}

/// Parses `local(2, 1).spatial(8, 4)>`, which `text` holds whole.
static Attribute parseLayoutAttr(DialectAsmParser &parser, StringRef text) {
  Result<Layout> layout = parseLayout(text.str());
  if (layout)
    return LayoutAttr::get(parser.getContext(), *layout);
  parser.emitError(parser.getNameLoc(), layout.error());
  return {};
}

Attribute LowlpDialect::parseAttribute(DialectAsmParser &parser,
                                       Type type) const {
  StringRef spec = parser.getFullSymbolSpec();
  if (spec.consume_front("layout<") && spec.consume_back(">"))
    return parseLayoutAttr(parser, spec);
  spec = parser.getFullSymbolSpec();
  if (spec.starts_with("plan<"))
    return parsePlan(parser);
  if (spec.starts_with("codec<"))
    return parseCodec(parser);
  if (spec.starts_with("placement<"))
    return parsePlacement(parser);
  StringRef mnemonic;
  Attribute attribute;
  if (spec.starts_with("rings<") || spec.starts_with("ring<") ||
      spec.starts_with("multicast<")) {
    (void)generatedRingParser(parser, &mnemonic, type, attribute);
    return attribute;
  }
  if (generatedAttributeParser(parser, &mnemonic, type, attribute).has_value())
    return attribute;
  parser.emitError(
      parser.getNameLoc(),
      "expected '#lowlp.cache_estimate<...>', "
      "'#lowlp.codebook_cache<...>', '#lowlp.layout<...>', "
      "'#lowlp.codec<...>', "
      "'#lowlp.multicast<...>', '#lowlp.placement<...>', '#lowlp.plan<...>', "
      "'#lowlp.ring<...>', '#lowlp.rings<...>', "
      "'#lowlp.schedule<...>' or '#lowlp.stages<...>', found "
      "'#lowlp.")
      << spec << "'";
  return {};
}

void LowlpDialect::printAttribute(Attribute attribute,
                                  DialectAsmPrinter &printer) const {
  if (succeeded(generatedAttributePrinter(attribute, printer)) ||
      succeeded(generatedRingPrinter(attribute, printer)))
    return;
  if (auto layout = dyn_cast<LayoutAttr>(attribute))
    printer << "layout<" << str(layout.getLayout()) << ">";
  else
    printPackedAttribute(attribute, printer);
}
