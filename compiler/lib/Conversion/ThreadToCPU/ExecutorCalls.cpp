//===- ExecutorCalls.cpp - calls of the CPU executor ----------------------===//
//
// The name of an op in reports is that of the block op it was made from, with
// its place: "lowlp.dot at k.py:7:3".
//
//===----------------------------------------------------------------------===//
#include "ExecutorCalls.h"

#include "lowlp/Analysis/SourceOp.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Names of ops
//===----------------------------------------------------------------------===//

std::string lowlp::describeSite(Operation *op) {
  std::string text = getSourceOpName(op).str();
  FileLineColRange place = findSourcePlace(op->getLoc());
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
  LLVM::LLVMFuncOp &callee = callees[name];
  if (!callee) {
    auto module = op->getParentOfType<ModuleOp>();
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
  return getPlace(rewriter, op, index, /*bytes=*/16);
}

Value ExecutorCalls::getAccumulatorsScratch(ConversionPatternRewriter &rewriter,
                                            Operation *op) {
  constexpr unsigned index = 1000; // Beyond all that getScratch is asked for.
  return getPlace(rewriter, op, index, /*bytes=*/512);
}

Value ExecutorCalls::getPlace(ConversionPatternRewriter &rewriter,
                              Operation *op, unsigned index, int32_t bytes) {
  auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
  Value &place = scratch[{kernel, index}];
  if (place)
    return place;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  Value size = getI32(rewriter, kernel.getLoc(), bytes);
  place = LLVM::AllocaOp::create(rewriter, kernel.getLoc(), pointerType,
                                 rewriter.getI8Type(), size, scratchAlignment);
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
