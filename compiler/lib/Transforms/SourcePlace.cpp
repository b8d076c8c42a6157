//===- SourcePlace.cpp - where in the user's program an op is -------------===//
#include "SourcePlace.h"

#include "lowlp/Analysis/SourceOp.h"

#include "llvm/Support/Path.h"

using namespace mlir;

std::string lowlp::describePlace(Location loc, StringRef name) {
  std::string text = name.str();
  if (FileLineColRange place = findSourcePlace(loc))
    text += " at " + llvm::sys::path::filename(place.getFilename()).str() +
            ":" + std::to_string(place.getStartLine());
  return text;
}
