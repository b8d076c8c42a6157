//===- LowlpBarrierOps.cpp - mbarriers ------------------------------------===//
#include "lowlp/IR/LowlpRings.h"

using namespace mlir;
using namespace lowlp;

LogicalResult
MbarriersType::verify(function_ref<InFlightDiagnostic()> emitError,
                      int64_t count) {
  if (count < 1 || count > 1024)
    return emitError() << "there must be 1 to 1024 mbarriers, but are "
                       << count;
  return success();
}

LogicalResult AllocMbarriersOp::verify() {
  // PTX ISA, "Contents of the mbarrier object".
  constexpr int64_t maxArrivals = (1 << 20) - 1;
  if (int64_t arrivals = getArrivals(); arrivals < 1 || arrivals > maxArrivals)
    return emitOpError("arrivals must be 1 to ")
           << maxArrivals << ", but are " << arrivals;
  if (!isa<KernelOp>((*this)->getParentOp()))
    return emitOpError("must stand in the body of the kernel itself, but is "
                       "in a ")
           << (*this)->getParentOp()->getName();
  if (int64_t blocks = MulticastAttr::countBlocks(*this);
      blocks > 1 && (!getByWarps() || getArrivals() % blocks != 0))
    return emitOpError("mbarriers of ")
           << blocks
           << " blocks must be by_warps, with as many arrivals of each, but "
              "arrivals are "
           << getArrivals();
  if (getByWarps())
    for (Operation *user : getBarriers().getUsers())
      if (!isa<MbarrierArriveOp, MbarrierWaitOp>(user))
        return user->emitOpError("arrives as one thread at mbarriers that "
                                 "count warps");
  return success();
}

LogicalResult MbarrierExpectBytesOp::verify() {
  constexpr int64_t maxBytes = (1 << 20) - 1;
  if (int64_t bytes = getBytes(); bytes < 1 || bytes > maxBytes)
    return emitOpError("bytes must be 1 to ")
           << maxBytes << ", but are " << bytes;
  return success();
}
