//===- LowlpRings.cpp - what lowlp-choose-rings hands over ----------------===//
#include "lowlp/IR/LowlpRings.h"

using namespace mlir;
using namespace lowlp;

#include "lowlp/IR/LowlpRingsEnums.cpp.inc"

static constexpr int64_t kMinStages = 2;
/// copy_async_wait knows of 7 groups in flight.
static constexpr int64_t kMaxStages = 9;

int64_t RingsAttr::getNumStages() const {
  return cast<SharedType>(getTiles().front()).getShape().front();
}

LogicalResult RingsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                RingCopies, ArrayRef<Type> tiles) {
  assert(!tiles.empty() && "a loop without rings has no such attribute");
  int64_t numStages = 0;
  for (Type type : tiles) {
    auto tile = dyn_cast<SharedType>(type);
    if (!tile || tile.getRank() < 2)
      return emitError() << "a ring must be a shared tile of at least 2 "
                            "dimensions, but is "
                         << type;
    int64_t places = tile.getShape().front();
    if (places < kMinStages || places > kMaxStages)
      return emitError() << "a ring must have " << kMinStages << " to "
                         << kMaxStages << " places, but " << type << " has "
                         << places;
    if (numStages != 0 && places != numStages)
      return emitError() << "rings must have the same number of places: "
                         << numStages << ", but " << type << " has " << places;
    numStages = places;
  }
  return success();
}

LogicalResult RingAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t ring, ArrayRef<int64_t> position) {
  if (ring < 0)
    return emitError() << "the number of a ring must be at least 0, but is "
                       << ring;
  if (position.empty() ||
      llvm::any_of(position, [](int64_t along) { return along < 0; }))
    return emitError() << "a position must have a number of at least 0 for "
                          "each dimension, but is ["
                       << position << "]";
  return success();
}
