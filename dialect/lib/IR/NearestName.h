//===- NearestName.h - what a misspelt name was to be -----------*- C++ -*-===//
#ifndef LOWLP_LIB_IR_NEARESTNAME_H
#define LOWLP_LIB_IR_NEARESTNAME_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace lowlp {

/// Of `names`, of which there is one at least, the one that takes the fewest
/// edits to become `name`; the first of several.
template <typename Names>
llvm::StringRef findNearestName(llvm::StringRef name, const Names &names) {
  return *llvm::min_element(names, [&](llvm::StringRef a, llvm::StringRef b) {
    return name.edit_distance(a) < name.edit_distance(b);
  });
}

} // namespace lowlp

#endif // LOWLP_LIB_IR_NEARESTNAME_H
