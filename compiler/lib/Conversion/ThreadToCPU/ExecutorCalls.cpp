//===- ExecutorCalls.cpp - calls of the CPU executor ----------------------===//
//
// The name of an op in reports comes from its location. Passes above wrap the
// place of a block op in a NameLoc that holds the op's name; a front end may
// have wrapped the place in the calls that led to it, of which the innermost is
// where the op was written:
//
//   NameLoc("lowlp.dot", CallSiteLoc(callee "k.py":7:3, caller "main.py":2:1))
//     ->  "lowlp.dot at k.py:7:3"
//
//===----------------------------------------------------------------------===//
#include "ExecutorCalls.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Names of ops
//===----------------------------------------------------------------------===//

/// The place where something was written that has the location `loc`, or null.
static FileLineColRange findPlace(LocationAttr loc) {
  if (auto place = dyn_cast<FileLineColRange>(loc))
    return place;
  if (auto name = dyn_cast<NameLoc>(loc))
    return findPlace(name.getChildLoc());
  if (auto opaque = dyn_cast<OpaqueLoc>(loc))
    return findPlace(opaque.getFallbackLocation());
  if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    FileLineColRange place = findPlace(call.getCallee());
    return place ? place : findPlace(call.getCaller());
  }
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (FileLineColRange place = findPlace(part))
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

std::string lowlp::describeSite(Operation *op) {
  StringRef name = findName(op->getLoc());
  std::string text = (name.empty() ? op->getName().getStringRef() : name).str();
  FileLineColRange place = findPlace(op->getLoc());
  if (!place)
    return text + " at an unknown place";
  return text + " at " + place.getFilename().str() + ":" +
         std::to_string(place.getStartLine()) + ":" +
         std::to_string(place.getStartColumn());
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

ExecutorCalls::ExecutorCalls(MLIRContext *context)
    : pointerType(LLVM::LLVMPointerType::get(context)) {}

Value ExecutorCalls::call(ConversionPatternRewriter &rewriter, Operation *op,
                          StringRef name, Type resultType,
                          ArrayRef<Value> operands) {
  auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
  SmallVector<Value> all = {kernel.getArgument(0)};
  llvm::append_range(all, operands);
  SmallVector<Type> types =
      llvm::map_to_vector(all, [](Value operand) { return operand.getType(); });
  auto module = op->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(
        resultType ? resultType : LLVM::LLVMVoidType::get(op->getContext()),
        types);
    callee = LLVM::LLVMFuncOp::create(rewriter, module.getLoc(), name, type);
  }
  auto call = LLVM::CallOp::create(rewriter, op->getLoc(), callee, all);
  return resultType ? call.getResult() : Value();
}

Value ExecutorCalls::getText(ConversionPatternRewriter &rewriter, Location loc,
                             StringRef text) {
  std::string name = "lowlp.site_" + std::to_string(numTexts++);
  return LLVM::createGlobalString(loc, rewriter, name, text.str() + '\0',
                                  LLVM::Linkage::Internal);
}

Value ExecutorCalls::getSite(ConversionPatternRewriter &rewriter,
                             Operation *op) {
  return getText(rewriter, op->getLoc(), describeSite(op));
}

Value ExecutorCalls::getScratch(ConversionPatternRewriter &rewriter,
                                Operation *op, unsigned index) {
  auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &place = scratch[{kernel, index}];
  if (place)
    return place;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  Value size = getI32(rewriter, kernel.getLoc(), 16);
  place = LLVM::AllocaOp::create(rewriter, kernel.getLoc(), pointerType,
                                 rewriter.getI8Type(), size, /*alignment=*/16);
  return place;
}

Value ExecutorCalls::getI32(ConversionPatternRewriter &rewriter, Location loc,
                            int32_t value) {
  return LLVM::ConstantOp::create(rewriter, loc,
                                  rewriter.getI32IntegerAttr(value));
}

Value ExecutorCalls::getI64(ConversionPatternRewriter &rewriter, Location loc,
                            int64_t value) {
  return LLVM::ConstantOp::create(rewriter, loc,
                                  rewriter.getI64IntegerAttr(value));
}
