//===- LowlpDialect.cpp - the block dialect and its attributes ------------===//
//
// A layout is written as the papers write it, `local(2, 1).spatial(8, 4)`.
// The dots between the factors are no tokens of MLIR's, so layouts are read
// from the text of the whole attribute, which MLIR hands to the dialect; the
// parser then goes on behind it.
//
//===----------------------------------------------------------------------===//
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

#include "lowlp/IR/LowlpDialect.cpp.inc"
#include "lowlp/IR/LowlpEnums.cpp.inc"
#include "lowlp/IR/LowlpInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "lowlp/IR/LowlpAttrs.cpp.inc"

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
}

/// Parses `["...", "..."]>`, behind `#lowlp.plan<`.
static Attribute parsePlan(DialectAsmParser &parser) {
  std::string text;
  auto parseLine = [&] {
    std::string line;
    if (parser.parseString(&line))
      return failure();
    text += line + "\n";
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseLine) ||
      parser.parseGreater())
    return {};
  return PlanAttr::get(parser.getContext(), text);
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
  StringRef mnemonic;
  if (spec.starts_with("plan<"))
    return parser.parseKeyword(&mnemonic) ? Attribute() : parsePlan(parser);
  Attribute attribute;
  if (generatedAttributeParser(parser, &mnemonic, type, attribute).has_value())
    return attribute;
  parser.emitError(parser.getNameLoc(),
                   "expected '#lowlp.layout<...>', '#lowlp.plan<...>', "
                   "'#lowlp.schedule<...>' or '#lowlp.stages<...>', found "
                   "'#lowlp.")
      << spec << "'";
  return {};
}

void LowlpDialect::printAttribute(Attribute attribute,
                                  DialectAsmPrinter &printer) const {
  if (succeeded(generatedAttributePrinter(attribute, printer)))
    return;
  if (auto plan = dyn_cast<PlanAttr>(attribute)) {
    SmallVector<StringRef> lines;
    plan.getText().split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    printer << "plan<[";
    llvm::interleaveComma(lines, printer,
                          [&](StringRef line) { printer.printString(line); });
    printer << "]>";
    return;
  }
  printer << "layout<" << str(cast<LayoutAttr>(attribute).getLayout()) << ">";
}
