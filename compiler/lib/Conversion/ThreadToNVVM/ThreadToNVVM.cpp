//===- ThreadToNVVM.cpp - from the thread level to llvm and nvvm ----------===//
//
// 1. Check that the architecture has what the program needs.
// 2. Describe the kernels on the module, since the machine level forgets them.
// 3. Move operands out of loops that leave them alone, and lower `scf` to
//    blocks.
// 4. Lower everything else in one conversion in which whatever has no lowering
//    is an error.
// 5. Fix the size of a block (`.reqntid`): upstream only bounds it. Fetch
//    tensor maps that are not needed before memory has answered.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/KernelDescription.h"
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"
#include "Requirements.h"
#include "TensorMaps.h"

#include "lowlp/Conversion/Passes.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/Simt.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace lowlp {
#define GEN_PASS_DEF_CONVERTTHREADTONVVM
#include "lowlp/Conversion/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

static LogicalResult convert(gpu::GPUModuleOp module, const TargetInfo &info) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context, getLoweringOptions(context));
  configureGpuToNVVMTypeConverter(converter);
  addSimtTypeConversions(converter);

  RewritePatternSet patterns(context);
  populateThreadToLLVMPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  populateSimtMemoryToNVVMPatterns(converter, patterns);
  populateSimtAsyncToNVVMPatterns(converter, patterns);
  populateSimtAtomicsToNVVMPatterns(converter, patterns);
  populateSimtBitsToNVVMPatterns(converter, patterns, info);
  populateSimtMmaToNVVMPatterns(converter, patterns, info);
  populateSimtMatrixMovesToNVVMPatterns(converter, patterns);
  populateSimtWgmmaToNVVMPatterns(converter, patterns);
  populateSimtWarpToNVVMPatterns(converter, patterns);
  populateMathToNVVMPatterns(converter, patterns);

  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

/// Turns the bound on the size of a block into its size, and drops what only
/// the gpu dialect reads.
static void fixBlockSize(LLVM::LLVMFuncOp kernel) {
  StringRef bound = NVVM::NVVMDialect::getMaxntidAttrName();
  if (Attribute size = kernel->removeAttr(bound))
    kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
  kernel->removeAttr(gpu::GPUDialect::getKernelFuncAttrName());
  kernel->removeAttr(gpu::GPUDialect::KnownBlockSizeAttrHelper::getNameStr());
}

/// The number that the description of a kernel has under the name of an
/// attribute of the block level, if any.
static std::optional<int32_t> findNumber(DictionaryAttr description,
                                         StringRef name) {
  name.consume_front("lowlp.");
  auto number = description.getAs<IntegerAttr>(name);
  if (!number)
    return std::nullopt;
  return static_cast<int32_t>(number.getInt());
}

/// The schedule of the kernel that is described, if it has one.
static ScheduleAttr findSchedule(DictionaryAttr description) {
  StringRef name = LowlpDialect::kScheduleAttrName;
  name.consume_front("lowlp.");
  return description.getAs<ScheduleAttr>(name);
}

/// Bounds the registers of threads: to what they begin with, if they set that
/// anew, or else to what so many blocks leave them. Left alone, the assembler
/// has heuristics, by which it spills or serialises rather than use what a
/// block that has a multiprocessor of its own may have.
static void fixRegisters(LLVM::LLVMFuncOp kernel, DictionaryAttr description) {
  Builder builder(kernel.getContext());
  ScheduleAttr schedule = findSchedule(description);
  if (auto registers =
          findNumber(description, simt::SimtDialect::kLaunchRegistersAttrName))
    kernel->setAttr(NVVM::NVVMDialect::getMaxnregAttrName(),
                    builder.getI32IntegerAttr(*registers));
  else if (schedule && schedule.getBlocksPerSm() > 0)
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(
                        static_cast<int32_t>(schedule.getBlocksPerSm())));
}

/// Makes clusters of neighbouring blocks (PTX ISA, `.reqnctapercluster`).
static void fixCluster(LLVM::LLVMFuncOp kernel, DictionaryAttr description) {
  ScheduleAttr schedule = findSchedule(description);
  if (!schedule || schedule.getCluster() == 1)
    return;
  auto blocks = static_cast<int32_t>(schedule.getCluster());
  kernel->setAttr(
      NVVM::NVVMDialect::getClusterDimAttrName(),
      Builder(kernel.getContext()).getDenseI32ArrayAttr({blocks, 1, 1}));
}

/// The description of a kernel; empty for another function.
static DictionaryAttr findDescription(ModuleOp module, StringRef function) {
  auto kernels = module->getAttrOfType<DictionaryAttr>(kKernelsAttrName);
  auto found = kernels ? kernels.getAs<DictionaryAttr>(function) : nullptr;
  return found ? found : DictionaryAttr::get(module.getContext());
}

/// How many tensor maps the description of a kernel names.
static size_t countTensorMaps(DictionaryAttr description) {
  auto maps = description.getAs<ArrayAttr>("tensor_maps");
  return maps ? maps.size() : 0;
}

/// Moves the memory that gpu.printf passes its values in to the entry of the
/// kernel: elsewhere the stack would grow with every iteration of a loop.
static void hoistAllocas(LLVM::LLVMFuncOp kernel) {
  if (kernel.getBody().empty())
    return;
  Block &entry = kernel.getBody().front();
  kernel.walk([&](LLVM::AllocaOp place) {
    auto size = place.getArraySize().getDefiningOp<LLVM::ConstantOp>();
    if (!size)
      return;
    place->moveBefore(&entry, entry.begin());
    Operation *copy = size->clone();
    entry.push_front(copy);
    place.getArraySizeMutable().assign(copy->getResult(0));
  });
}

/// Without such launches there is nothing to wait for.
static void eraseDependencies(ModuleOp module) {
  module.walk([](Operation *op) {
    if (isa<simt::WaitForDependenciesOp, simt::LaunchDependentsOp>(op))
      op->erase();
  });
}

namespace {

struct ConvertThreadToNVVM
    : lowlp::impl::ConvertThreadToNVVMBase<ConvertThreadToNVVM> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const TargetInfo *info = TargetInfo::lookupFor(module, arch);
    if (!info)
      return signalPassFailure();
    for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
      if (failed(verifyRequirements(gpuModule, *info)))
        return signalPassFailure();
    if (failed(describeKernels(module)))
      return signalPassFailure();
    if (!info->getSupport(Feature::GridDependencyControl).isNative())
      eraseDependencies(module);
    llvm::StringMap<SmallVector<unsigned>> lateMaps;
    for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
      for (auto kernel : gpuModule.getOps<gpu::GPUFuncOp>())
        lateMaps[kernel.getName()] = findLateTensorMaps(kernel);
    auto target = NVVM::NVVMTargetAttr::get(&getContext(), /*optLevel=*/3,
                                            "nvptx64-nvidia-cuda", arch);
    for (auto gpuModule : module.getOps<gpu::GPUModuleOp>()) {
      if (failed(verifyVectorSizes(gpuModule)))
        return signalPassFailure();
      hoistOperandsOfProducts(gpuModule);
      if (failed(lowerStructuredControlFlow(gpuModule)) ||
          failed(convert(gpuModule, *info)))
        return signalPassFailure();
      gpuModule.setTargetsAttr(ArrayAttr::get(&getContext(), {target}));
      for (auto function : gpuModule.getOps<LLVM::LLVMFuncOp>()) {
        DictionaryAttr description =
            findDescription(module, function.getName());
        fixBlockSize(function);
        fixRegisters(function, description);
        fixCluster(function, description);
        markTensorMaps(function, countTensorMaps(description));
        prefetchTensorMaps(function, lateMaps.lookup(function.getName()));
        hoistAllocas(function);
      }
    }
  }
};

} // namespace
