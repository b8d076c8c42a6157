//===- LowlpPackedAttrs.h - text of what packed weights mean ----*- C++ -*-===//
#ifndef LOWLP_LIB_IR_LOWLPPACKEDATTRS_H
#define LOWLP_LIB_IR_LOWLPPACKEDATTRS_H

#include "lowlp/IR/Lowlp.h"

#include "mlir/IR/DialectImplementation.h"

namespace lowlp {

/// The parts of the dialect's own parser, which begin at the attribute's name.
mlir::Attribute parseCodec(mlir::DialectAsmParser &parser);
mlir::Attribute parsePlacement(mlir::DialectAsmParser &parser);
mlir::Attribute parsePlan(mlir::DialectAsmParser &parser);
/// Prints any of the three.
void printPackedAttribute(mlir::Attribute attribute,
                          mlir::DialectAsmPrinter &printer);

/// How ops write a placement: by its name, `"int6.f16"`.
mlir::ParseResult parsePlacementName(mlir::OpAsmParser &parser,
                                     PlacementAttr &placement);
void printPlacementName(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                        PlacementAttr placement);

} // namespace lowlp

#endif // LOWLP_LIB_IR_LOWLPPACKEDATTRS_H
