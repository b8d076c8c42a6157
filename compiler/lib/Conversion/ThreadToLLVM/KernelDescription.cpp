//===- KernelDescription.cpp - what a launch needs to know ----------------===//
//
// The machine level keeps neither a kernel's types nor its attributes, so they
// are gathered in one attribute of the module before any lowering.
//
//===----------------------------------------------------------------------===//
#include "KernelDescription.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace lowlp;

static constexpr llvm::StringLiteral prefix = "lowlp.";

/// Adds the attributes of `from` that are lowlp's, without the prefix, to `to`.
static void addOwn(DictionaryAttr from, NamedAttrList &to) {
  if (!from)
    return;
  for (NamedAttribute attribute : from) {
    StringRef name = attribute.getName();
    if (name.consume_front(prefix))
      to.set(name, attribute.getValue());
  }
}

static DictionaryAttr describeArgument(gpu::GPUFuncOp kernel, unsigned index) {
  NamedAttrList description;
  description.set("type", TypeAttr::get(kernel.getArgumentTypes()[index]));
  addOwn(kernel.getArgAttrDict(index), description);
  return description.getDictionary(kernel.getContext());
}

static FailureOr<DictionaryAttr> describe(gpu::GPUFuncOp kernel) {
  std::optional<ArrayRef<int32_t>> blockSize = kernel.getKnownBlockSize();
  if (!blockSize)
    return kernel.emitOpError("kernel must have known_block_size");
  if (kernel.getNumWorkgroupAttributions() || kernel.getNumPrivateAttributions())
    return kernel.emitOpError("kernel must have no attributions");
  Builder builder(kernel.getContext());
  SmallVector<Attribute> arguments;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    arguments.push_back(describeArgument(kernel, index));
  NamedAttrList description;
  addOwn(kernel->getDiscardableAttrDictionary(), description);
  description.set("block_size", builder.getDenseI32ArrayAttr(*blockSize));
  description.set("arguments", builder.getArrayAttr(arguments));
  return description.getDictionary(kernel.getContext());
}

/// Takes lowlp's attributes off the kernel and its arguments.
static void removeOwn(gpu::GPUFuncOp kernel) {
  for (NamedAttribute attribute :
       llvm::to_vector(kernel->getDiscardableAttrs()))
    if (attribute.getName().getValue().starts_with(prefix))
      kernel->removeDiscardableAttr(attribute.getName());
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    for (NamedAttribute attribute :
         llvm::to_vector(function_interface_impl::getArgAttrs(kernel, index)))
      if (attribute.getName().getValue().starts_with(prefix))
        kernel.removeArgAttr(index, attribute.getName());
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
    module->setAttr(kKernelsAttrName, kernels.getDictionary(module.getContext()));
  return success();
}
