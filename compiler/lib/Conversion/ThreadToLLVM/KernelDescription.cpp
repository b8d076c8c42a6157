//===- KernelDescription.cpp - what a launch needs to know ----------------===//
//
// The machine level does not keep the attributes of a kernel, so they are
// gathered in one attribute of the module before any lowering.
//
//===----------------------------------------------------------------------===//
#include "KernelDescription.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace lowlp;

static constexpr llvm::StringLiteral prefix = "lowlp.";

/// Of one block (CUDA Programming Guide, "Compute Capabilities", table 30).
static constexpr int32_t kMaxThreads = 1024;

static FailureOr<DictionaryAttr> describe(gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> blockSize = kernel.getKnownBlockSize();
  if (!blockSize)
    return kernel.emitOpError("kernel must have known_block_size");
  int64_t numThreads = 1;
  for (int32_t extent : *blockSize)
    numThreads *= std::clamp(extent, 0, kMaxThreads + 1);
  if (numThreads < 1 || numThreads > kMaxThreads)
    return kernel.emitOpError("kernel must have a known_block_size of 1 to ")
           << kMaxThreads << " threads, but has " << ArrayRef(*blockSize);
  if (kernel.getNumWorkgroupAttributions() ||
      kernel.getNumPrivateAttributions())
    return kernel.emitOpError("kernel must have no attributions");
  Builder builder(kernel.getContext());
  NamedAttrList description;
  for (NamedAttribute attribute : kernel->getDiscardableAttrs()) {
    StringRef name = attribute.getName();
    if (name.consume_front(prefix))
      description.set(name, attribute.getValue());
  }
  description.set("block_size", builder.getDenseI32ArrayAttr(*blockSize));
  return description.getDictionary(kernel.getContext());
}

/// Takes lowlp's attributes off the kernel.
static void removeOwn(gpu::GPUFuncOp kernel) {
  for (NamedAttribute attribute :
       llvm::to_vector(kernel->getDiscardableAttrs()))
    if (attribute.getName().getValue().starts_with(prefix))
      kernel->removeDiscardableAttr(attribute.getName());
}

LogicalResult lowlp::describeKernels(ModuleOp module) {
  NamedAttrList kernels;
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    for (auto kernel : gpuModule.getOps<gpu::GPUFuncOp>()) {
      if (!kernel.isKernel())
        continue;
      FailureOr<DictionaryAttr> description = describe(kernel);
      if (failed(description))
        return failure();
      if (kernels.set(kernel.getNameAttr(), *description))
        return kernel.emitOpError("kernel '")
               << kernel.getName() << "' exists in another gpu.module";
      removeOwn(kernel);
    }
  if (!kernels.empty())
    module->setAttr(kKernelsAttrName,
                    kernels.getDictionary(module.getContext()));
  return success();
}
