//===- SimtDialect.cpp - the machine ops of the thread level --------------===//
#include "lowlp/IR/Simt.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp::simt;

#include "lowlp/IR/SimtDialect.cpp.inc"
#include "lowlp/IR/SimtEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "lowlp/IR/SimtTypes.cpp.inc"

#define GET_OP_CLASSES
#include "lowlp/IR/SimtOps.cpp.inc"

void SimtDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "lowlp/IR/SimtTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "lowlp/IR/SimtOps.cpp.inc"
      >();
}

int64_t lowlp::simt::getSizeInBytes(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
  return type.getIntOrFloatBitWidth() / 8;
}

static LogicalResult verifyAlignment(Operation *op, int64_t alignBytes) {
  if (alignBytes < 1 || alignBytes > 16 || !llvm::isPowerOf2_64(alignBytes))
    return op->emitOpError("align must be 1, 2, 4, 8 or 16 bytes, but is ")
           << alignBytes;
  return success();
}

LogicalResult SharedMemoryOp::verify() {
  if (getAddress().getType().getSpace() != MemorySpace::Shared)
    return emitOpError("the address must be in shared memory, but is ")
           << getAddress().getType();
  if (int64_t offset = getOffset(); offset < 0 || offset % 16 != 0)
    return emitOpError(
               "offset must be a multiple of 16 bytes from 0 on, but is ")
           << offset;
  return success();
}

LogicalResult MapSharedOp::verify() {
  if (getOwn().getType().getSpace() != MemorySpace::Shared ||
      getAddress().getType().getSpace() != MemorySpace::Cluster)
    return emitOpError("maps shared memory to that of the cluster, but maps ")
           << getOwn().getType() << " to " << getAddress().getType();
  return success();
}

LogicalResult StoreAsyncOp::verify() {
  if (getBase().getType().getSpace() != MemorySpace::Cluster)
    return emitOpError("stores to shared memory of the cluster, but is given ")
           << getBase().getType();
  return success();
}

LogicalResult LoadOp::verify() { return verifyAlignment(*this, getAlign()); }

LogicalResult StoreOp::verify() { return verifyAlignment(*this, getAlign()); }

LogicalResult AtomicRMWOp::verify() {
  if (getValue().getType().isInteger(32) || getKind() == AtomicKind::Add)
    return success();
  return emitOpError("kind must be add for floats, but is ")
         << stringifyAtomicKind(getKind());
}

static LogicalResult verifySemaphore(Operation *op, PtrType base) {
  if (base.getSpace() == MemorySpace::Global)
    return success();
  return op->emitOpError("the word must be in global memory, but is in ")
         << base;
}

LogicalResult AcquireOp::verify() {
  return verifySemaphore(*this, getBase().getType());
}

LogicalResult ReleaseOp::verify() {
  return verifySemaphore(*this, getBase().getType());
}

LogicalResult CopyAsyncOp::verify() {
  if (getSource().getType().getSpace() != MemorySpace::Global ||
      getDestination().getType().getSpace() != MemorySpace::Shared)
    return emitOpError(
               "must copy from global to shared memory, but copies from ")
           << getSource().getType() << " to " << getDestination().getType();
  if (int64_t bytes = getBytes(); bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError("bytes must be 4, 8 or 16, but is ") << bytes;
  return success();
}
