//===- WarpgroupProducts.h - which products warpgroups make -----*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_WARPGROUPPRODUCTS_H
#define LOWLP_LIB_TRANSFORMS_WARPGROUPPRODUCTS_H

#include "lowlp/IR/Lowlp.h"

#include <string>

namespace lowlp {

/// Why warpgroups cannot make a product; empty if they can.
std::string findObstacle(DotOp dot);

/// The load of shared memory that operand b of a product is, turned.
/// Requires: `findObstacle` finds none.
LoadSharedOp getLoadOfB(DotOp dot);

/// Puts a fence before the barrier after which a product reads what threads
/// have stored. Fails where there is no barrier in the product's block.
/// Requires: `findObstacle` finds none.
bool orderStores(DotOp dot);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_WARPGROUPPRODUCTS_H
