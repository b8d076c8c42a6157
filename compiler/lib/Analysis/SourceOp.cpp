//===- SourceOp.cpp - the block op behind an op ---------------------------===//
#include "lowlp/Analysis/SourceOp.h"

#include "mlir/IR/Operation.h"

using namespace mlir;
using namespace lowlp;

FileLineColRange lowlp::findSourcePlace(LocationAttr loc) {
  if (auto place = dyn_cast<FileLineColRange>(loc))
    return place;
  if (auto name = dyn_cast<NameLoc>(loc))
    return findSourcePlace(name.getChildLoc());
  if (auto opaque = dyn_cast<OpaqueLoc>(loc))
    return findSourcePlace(opaque.getFallbackLocation());
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    FileLineColRange place = findSourcePlace(call.getCallee());
    return place ? place : findSourcePlace(call.getCaller());
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (FileLineColRange place = findSourcePlace(part))
        return place;
  return {};
}

/// The name that a pass gave to `loc`, or nothing. Names within a call are
/// those of functions.
static StringRef findName(LocationAttr loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = findName(part); !name.empty())
        return name;
  return {};
}

StringRef lowlp::getSourceOpName(Operation *op) {
  StringRef name = findName(op->getLoc());
  return name.empty() ? op->getName().getStringRef() : name;
}

InFlightDiagnostic lowlp::emitErrorAtProgram(Operation *module) {
  Block &ops = module->getRegion(0).front();
  return emitError(ops.empty() ? module->getLoc() : ops.front().getLoc());
}
