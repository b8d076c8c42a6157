//===- LowlpPackedAttrs.cpp - what packed weights mean --------------------===//
//
// A codec is written as the library of number formats prints it, and read from
// the text of the whole attribute, as layouts are.
//
//===----------------------------------------------------------------------===//
#include "LowlpPackedAttrs.h"

#include "lowlp/Decode/CodeFormat.h"
#include "lowlp/Decode/DecodePlan.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Numeric/Codec.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

Type CodecAttr::getElementType() const {
  const CodecField &field = getCodec().getField();
  if (field.number && field.number->kind != FormatKind::Bipolar)
    return lowlp::getElementType(getContext(), *field.number);
  return IntegerType::get(getContext(), CodeFormat::of(field).getHeldBits(),
                          IntegerType::Unsigned);
}

LogicalResult PlanAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               DecodePlan plan) {
  if (Result<bool> good = plan.check(); !good)
    return emitError() << good.error();
  return success();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// What stands between `name<` and `>`; the parser goes on after it.
static std::string getBody(DialectAsmParser &parser) {
  StringRef spec = parser.getFullSymbolSpec();
  spec.consume_back(">");
  return spec.split('<').second.str();
}

Attribute lowlp::parseCodec(DialectAsmParser &parser) {
  Result<Codec> codec = Codec::parse(getBody(parser));
  if (!codec)
    return parser.emitError(parser.getNameLoc(), codec.error()), Attribute();
  return CodecAttr::get(parser.getContext(), *codec);
}

Attribute lowlp::parsePlacement(DialectAsmParser &parser) {
  Result<const Placement *> placement = Placement::find(getBody(parser));
  if (!placement)
    return parser.emitError(parser.getNameLoc(), placement.error()),
           Attribute();
  return PlacementAttr::get(parser.getContext(), *placement);
}

Attribute lowlp::parsePlan(DialectAsmParser &parser) {
  SMLoc loc = parser.getNameLoc();
  StringRef mnemonic;
  std::string text;
  auto parseLine = [&] {
    std::string line;
    if (parser.parseString(&line))
      return failure();
    text += line + "\n";
    return success();
  };
  if (parser.parseKeyword(&mnemonic) || parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseLine) ||
      parser.parseGreater())
    return {};
  Result<DecodePlan> plan = DecodePlan::parse(text);
  if (!plan)
    return parser.emitError(loc, plan.error()), Attribute();
  return PlanAttr::getChecked([&] { return parser.emitError(loc); },
                              parser.getContext(), *plan);
}

static void printPlan(const DecodePlan &plan, DialectAsmPrinter &printer) {
  std::string text = plan.print();
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  printer << "plan<[";
  llvm::interleaveComma(lines, printer,
                        [&](StringRef line) { printer.printString(line); });
  printer << "]>";
}

void lowlp::printPackedAttribute(Attribute attribute,
                                 DialectAsmPrinter &printer) {
  llvm::TypeSwitch<Attribute>(attribute)
      .Case([&](CodecAttr codec) {
        printer << "codec<" << codec.getCodec().str() << ">";
      })
      .Case([&](PlacementAttr placement) {
        printer << "placement<" << placement->name() << ">";
      })
      .Case([&](PlanAttr plan) { printPlan(plan.getPlan(), printer); });
}

ParseResult lowlp::parsePlacementName(OpAsmParser &parser,
                                      PlacementAttr &placement) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name;
  if (parser.parseString(&name))
    return failure();
  Result<const Placement *> found = Placement::find(name);
  if (!found)
    return parser.emitError(loc, found.error());
  placement = PlacementAttr::get(parser.getContext(), *found);
  return success();
}

void lowlp::printPlacementName(OpAsmPrinter &printer, Operation *,
                               PlacementAttr placement) {
  printer << '"' << placement->name() << '"';
}
