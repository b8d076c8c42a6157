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
                                RingCopies copies, ArrayRef<Type> tiles,
                                ArrayRef<int64_t> multicast) {
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
  if (!multicast.empty() && copies != RingCopies::ProducerWarp)
    return emitError() << "multicast needs a producer_warp, but copies are "
                          "made by "
                       << stringifyRingCopies(copies);
  int64_t least = 0;
  for (int64_t ring : multicast) {
    if (ring < least || ring >= static_cast<int64_t>(tiles.size()))
      return emitError() << "multicast must list numbers of the "
                         << tiles.size() << " rings in ascending order, but is "
                         << "[" << multicast << "]";
    least = ring + 1;
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

MulticastAttr MulticastAttr::of(Operation *op) {
  return op->getAttrOfType<MulticastAttr>(kName);
}

int64_t MulticastAttr::countBlocks(Operation *op) {
  MulticastAttr multicast = of(op);
  return multicast ? multicast.getBlocks() : 1;
}

LogicalResult
MulticastAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t blocks) {
  if (blocks >= 2 && blocks <= ScheduleAttr::kMaxCluster)
    return success();
  return emitError() << "multicast must go to 2 to "
                     << ScheduleAttr::kMaxCluster << " blocks, but goes to "
                     << blocks;
}
