//===- UncodedProducts.h - why packed weights have no form ------*- C++ -*-===//
#ifndef LOWLP_LIB_TRANSFORMS_UNCODEDPRODUCTS_H
#define LOWLP_LIB_TRANSFORMS_UNCODEDPRODUCTS_H

#include "CodedProducts.h"

#include <string>

namespace lowlp {

/// Why operand a of a product, which is made of packed codes, has none of the
/// forms that `getWeights` knows, and what to write instead; empty where it is
/// made of no codes. Requires: `getWeights` found none.
std::string explainUncoded(Product product);

} // namespace lowlp

#endif // LOWLP_LIB_TRANSFORMS_UNCODEDPRODUCTS_H
