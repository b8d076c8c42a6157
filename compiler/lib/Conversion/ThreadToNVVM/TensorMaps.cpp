//===- TensorMaps.cpp - tensor maps among a kernel's parameters -----------===//
//
// A copy reads its tensor map first. Where the place that it copies from is
// known early, nothing is won by fetching the map before. A kernel that has to
// load the place, after the launch before has ended, waits for memory anyway.
//
//===----------------------------------------------------------------------===//
#include "TensorMaps.h"

#include "lowlp/IR/Simt.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace lowlp;

void lowlp::markTensorMaps(LLVM::LLVMFuncOp kernel, size_t numMaps) {
  Builder builder(kernel.getContext());
  Type map = LLVM::LLVMArrayType::get(builder.getI8Type(), 128);
  for (unsigned i = kernel.getNumArguments() - numMaps;
       i < kernel.getNumArguments(); ++i) {
    kernel.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(map));
    kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(64));
    kernel.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                      builder.getUnitAttr());
  }
}

static bool loadsShared(Operation *op) {
  auto load = dyn_cast<simt::LoadOp>(op);
  return load &&
         load.getBase().getType().getSpace() == simt::MemorySpace::Shared;
}

/// Whether a number loaded from shared memory is among what `value` is computed
/// from, loops that carry it left out.
static bool isLoaded(Value value) {
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  (void)getBackwardSlice(value, &slice, options);
  return llvm::any_of(slice, loadsShared);
}

SmallVector<unsigned> lowlp::findLateTensorMaps(gpu::GPUFuncOp kernel) {
  llvm::SmallSetVector<unsigned, 8> found;
  kernel.walk([&](simt::CopyTensorOp copy) {
    auto map = dyn_cast<BlockArgument>(copy.getMap());
    if (map && llvm::any_of(copy.getOffsets(), isLoaded))
      found.insert(map.getArgNumber());
  });
  SmallVector<unsigned> arguments = found.takeVector();
  llvm::sort(arguments);
  return arguments;
}

void lowlp::prefetchTensorMaps(LLVM::LLVMFuncOp kernel,
                               ArrayRef<unsigned> arguments) {
  if (arguments.empty())
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  std::string text = "{\n.reg .pred first;\n.reg .b32 thread;\n"
                     "mov.u32 thread, %tid.x;\n"
                     "setp.eq.u32 first, thread, 0;\n";
  std::string constraints;
  SmallVector<Value> maps;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    text += "@first prefetch.tensormap [$" + std::to_string(number) + "];\n";
    constraints += "l,";
    maps.push_back(kernel.getArgument(argument));
  }
  LLVM::InlineAsmOp::create(
      builder, kernel.getLoc(), /*res=*/Type(), maps, text + "}",
      constraints + "~{memory}", /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}
