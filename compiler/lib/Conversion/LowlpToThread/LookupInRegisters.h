//===- LookupInRegisters.h - tables of two entries --------------*- C++ -*-===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_LOOKUPINREGISTERS_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_LOOKUPINREGISTERS_H

#include "LowlpToThread.h"

namespace lowlp {

/// Whether codes choose between the two first entries of a plain table of
/// halves.
bool canLookUpInRegisters(SharedType table, TileType codes);

/// The entries of the table at `base` that the codes name, as a vector of
/// `type`. Requires: `canLookUpInRegisters`.
mlir::Value lookUpInRegisters(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value base, TileType codes,
                              mlir::Value registers, mlir::VectorType type);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_LOOKUPINREGISTERS_H
