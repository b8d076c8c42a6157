//===- LowlpToThread.cpp - lowlp-convert-to-thread ------------------------===//
//
// Kernels move into one gpu.module; then a dialect conversion replaces tiles by
// the registers of one thread and block ops by what one thread does. What each
// access may move at once is decided before, on the program as it was written.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"
#include "Codebooks.h"
#include "Order.h"
#include "SharedMemory.h"
#include "TensorMaps.h"
#include "WgmmaPlan.h"

#include "lowlp/Analysis/WrittenMemory.h"
#include "lowlp/Conversion/Passes.h"
#include "lowlp/IR/Simt.h"
#include "lowlp/Target/RegisterShares.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace lowlp {
#define GEN_PASS_DEF_CONVERTTOTHREAD
#include "lowlp/Conversion/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

/// The bytes to which the address must be aligned. Elements narrower than a
/// byte are stored by atomics on words of 4 bytes.
static int64_t getRequiredAlignBytes(KernelOp kernel, unsigned index,
                                     Type elementType, bool isWritten) {
  int64_t alignBytes = getNaturalAlignBytes(elementType);
  if (isWritten && *getElementBits(elementType) < 8)
    alignBytes = 4;
  auto promise =
      kernel.getArgAttrOfType<IntegerAttr>(index, LowlpDialect::kAlignAttrName);
  return promise ? std::max(alignBytes, promise.getInt()) : alignBytes;
}

/// What a launch must know of parameter `index`, as a dictionary.
static DictionaryAttr describeParameter(KernelOp kernel, unsigned index) {
  Builder builder(kernel.getContext());
  Type type = kernel.getArgumentTypes()[index];
  auto name =
      kernel.getArgAttrOfType<StringAttr>(index, LowlpDialect::kNameAttrName);
  NamedAttrList fields;
  fields.set("name",
             name ? name
                  : builder.getStringAttr("arg" + std::to_string(index)));
  fields.set("type", TypeAttr::get(type));
  if (Attribute divisor =
          kernel.getArgAttr(index, LowlpDialect::kDivisibleByAttrName))
    fields.set("divisible_by", divisor);
  if (auto pointer = dyn_cast<PointerType>(type)) {
    bool written = isWritten(kernel, index);
    fields.set("align", builder.getI64IntegerAttr(getRequiredAlignBytes(
                            kernel, index, pointer.getElementType(), written)));
    if (written)
      fields.set("written", builder.getUnitAttr());
  }
  return fields.getDictionary(kernel.getContext());
}

namespace {

struct KernelPattern : OpConversionPattern<KernelOp> {
  KernelPattern(const TypeConverter &converter, MLIRContext *context,
                const SharedMemoryPlan &plan, const WorkspacePlan &workspace,
                const TensorMapPlan &tensorMaps)
      : OpConversionPattern(converter, context), plan(plan),
        workspace(workspace), tensorMaps(tensorMaps) {}

  LogicalResult
  matchAndRewrite(KernelOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const TypeConverter &converter = *getTypeConverter();
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (failed(
            converter.convertSignatureArgs(op.getArgumentTypes(), signature)))
      return rewriter.notifyMatchFailure(op, "a parameter has no thread type");
    SmallVector<Attribute> maps = tensorMaps.maps.lookup(op);
    signature.addInputs(SmallVector<Type>(
        maps.size(), simt::TensorMapType::get(op.getContext())));
    auto type = rewriter.getFunctionType(signature.getConvertedTypes(), {});
    SmallVector<Attribute> parameters;
    ArrayAttr parts = describeWorkspace(workspace, op);
    unsigned numHidden = parts.empty() ? 0 : 1;
    for (unsigned i = 0; i < op.getNumArguments() - numHidden; ++i)
      parameters.push_back(describeParameter(op, i));

    auto function =
        gpu::GPUFuncOp::create(rewriter, op.getLoc(), op.getSymName(), type);
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                      rewriter.getUnitAttr());
    int64_t numThreads = addProducer(op, function, rewriter);
    int32_t blockSize[] = {static_cast<int32_t>(numThreads), 1, 1};
    function.setKnownBlockSize(ArrayRef<int32_t>(blockSize));
    function->setAttr("lowlp.grid", op.getGridAttr());
    function->setAttr("lowlp.parameters", rewriter.getArrayAttr(parameters));
    if (!maps.empty())
      function->setAttr("lowlp.tensor_maps", rewriter.getArrayAttr(maps));
    if (int64_t bytes = plan.kernelBytes.lookup(op))
      function->setAttr("lowlp.shared_bytes",
                        rewriter.getI64IntegerAttr(bytes));
    if (!parts.empty())
      function->setAttr("lowlp.workspace", parts);
    passOn(op, function);
    rewriter.eraseBlock(&function.getBody().front());
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(),
                                function.getBody().end());
    if (failed(rewriter.convertRegionTypes(&function.getBody(), converter,
                                           &signature)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }

  /// Notes the threads of a producer, and the registers that these give away;
  /// the result is the number of all threads.
  static int64_t addProducer(KernelOp op, gpu::GPUFuncOp function,
                             Builder &builder) {
    int64_t numThreads = static_cast<int64_t>(op.getNumThreads());
    if (op.getBody().front().getOps<ProducerWarpOp>().empty())
      return numThreads;
    bool isWarpgroup = op.getScheduleOrDefault().getExchangeRegisters();
    int64_t others = isWarpgroup ? kThreadsPerWarpgroup : kThreadsPerWarp;
    function->setAttr(kProducerThreadsAttrName,
                      builder.getI64IntegerAttr(others));
    if (isWarpgroup)
      function->setAttr(
          simt::SimtDialect::kLaunchRegistersAttrName,
          builder.getI64IntegerAttr(getRegisterShares(numThreads).launch));
    return numThreads + others;
  }

  /// What passes before have decided, which is told to the user, and what a
  /// launch has to know of the body.
  static void passOn(KernelOp op, gpu::GPUFuncOp function) {
    if (Attribute report = op->getAttr(LowlpDialect::kReportAttrName))
      function->setAttr(LowlpDialect::kReportAttrName, report);
    if (ScheduleAttr schedule = op.getScheduleAttr())
      function->setAttr(LowlpDialect::kScheduleAttrName, schedule);
    WalkResult waits =
        op.walk([](WaitForDependenciesOp) { return WalkResult::interrupt(); });
    if (waits.wasInterrupted())
      function->setAttr("lowlp.dependent_launch",
                        UnitAttr::get(op.getContext()));
  }

  const SharedMemoryPlan &plan;
  const WorkspacePlan &workspace;
  const TensorMapPlan &tensorMaps;
};

struct ReturnPattern : OpConversionPattern<ReturnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(ReturnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<gpu::ReturnOp>(op);
    return success();
  }
};

struct BlockIndicesPattern : OpConversionPattern<BlockIndicesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(BlockIndicesOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    static constexpr gpu::Dimension dimensions[] = {
        gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z};
    SmallVector<Value> indices;
    for (unsigned d = 0; d < op.getNumResults(); ++d)
      indices.push_back(
          gpu::BlockIdOp::create(rewriter, getNamedLoc(op), dimensions[d]));
    rewriter.replaceOp(op, indices);
    return success();
  }
};

/// What the ops of all kernels become, decided before anything is rewritten.
struct Plans {
  AccessWidths widths;
  MatrixAccesses matrices;
  DotPlans dots;
  WgmmaPlans wgmmas;
  SharedMemoryPlan shared;
  TensorMapPlan tensorMaps;
  ConversionPlans conversions;
  WorkspacePlan workspace;
  EntryPlans entries;

  /// Fails with a diagnostic where a kernel has no thread program.
  static FailureOr<Plans> make(gpu::GPUModuleOp kernels, bool hasStMatrix) {
    AccessWidths widths = planAccessWidths(kernels);
    planSharedAccessWidths(kernels, widths);
    planCopyWidths(kernels, widths);
    planAtomicWidths(kernels, widths);
    MatrixAccesses matrices = planMatrixAccesses(kernels, hasStMatrix);
    planGatherWidths(kernels, widths);
    FailureOr<DotPlans> dots = planDots(kernels);
    FailureOr<WgmmaPlans> wgmmas = planWgmmas(kernels);
    FailureOr<SharedMemoryPlan> shared = planSharedMemory(kernels);
    FailureOr<TensorMapPlan> tensorMaps = planTensorMaps(kernels);
    FailureOr<ConversionPlans> conversions = planConversions(kernels);
    if (failed(dots) || failed(wgmmas) || failed(shared) ||
        failed(tensorMaps) || failed(conversions) ||
        failed(verifyReductions(kernels)) ||
        failed(verifyDependencies(kernels)))
      return failure();
    return Plans{
        std::move(widths),       std::move(matrices),    std::move(*dots),
        std::move(*wgmmas),      std::move(*shared),     std::move(*tensorMaps),
        std::move(*conversions), planWorkspace(kernels), planEntries(kernels)};
  }

  void populate(ThreadTypeConverter &converter, RewritePatternSet &patterns) {
    populateKernelPatterns(converter, patterns, shared, workspace, tensorMaps);
    populateAccessPatterns(converter, patterns, widths);
    populateSharedPatterns(converter, patterns, widths, matrices, shared);
    populateCopyPatterns(converter, patterns, widths);
    populateMbarrierPatterns(converter, patterns, shared);
    populateBulkCopyPatterns(converter, patterns, tensorMaps);
    populateAtomicPatterns(converter, patterns, widths);
    populateClusterPatterns(converter, patterns);
    populateSemaphorePatterns(converter, patterns);
    populateWorkspacePatterns(converter, patterns, workspace);
    populateGatherPatterns(converter, patterns, widths);
    populateLookupPatterns(converter, patterns);
    populateAddLookupsPattern(converter, patterns);
    populateCodebookPatterns(converter, patterns, entries);
    populateCastPatterns(converter, patterns);
    populateConvertLayoutPatterns(converter, patterns, conversions);
    populateDotPatterns(converter, patterns, dots);
    populateWgmmaPatterns(converter, patterns, wgmmas);
    populateElementwisePatterns(converter, patterns);
    populateEncodePatterns(converter, patterns);
    populateIntegerPatterns(converter, patterns);
    populateIotaPatterns(converter, patterns);
    populateMathPatterns(converter, patterns);
    populatePackedPatterns(converter, patterns);
    populateRowConstantsPatterns(converter, patterns);
    populateComparePatterns(converter, patterns);
    populateReducePatterns(converter, patterns);
    populateWarpPatterns(converter, patterns);
    populateControlPatterns(converter, patterns);
    populateBroadcastPatterns(converter, patterns);
    populateRescalePatterns(converter, patterns);
  }
};

struct ConvertToThread : lowlp::impl::ConvertToThreadBase<ConvertToThread> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    const TargetInfo *architecture =
        arch.empty() ? nullptr : TargetInfo::lookupFor(module, arch);
    if (!architecture && !arch.empty())
      return signalPassFailure();
    if (failed(verifyAllInKernels(module)) || failed(verifyTileSizes(module)))
      return signalPassFailure();
    gpu::GPUModuleOp kernels = gatherKernels(module);
    if (!kernels)
      return;
    bool hasStMatrix =
        architecture &&
        architecture->getSupport(Feature::StoreMatrix).isNative();
    FailureOr<Plans> plans = Plans::make(kernels, hasStMatrix);
    if (failed(plans))
      return signalPassFailure();
    ThreadTypeConverter converter;
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    target.addLegalDialect<arith::ArithDialect, gpu::GPUDialect,
                           math::MathDialect, vector::VectorDialect,
                           simt::SimtDialect>();
    target.addDynamicallyLegalOp<arith::SelectOp>(
        [&](arith::SelectOp op) { return converter.isLegal(op.getType()); });
    target.addIllegalDialect<LowlpDialect>();
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         target);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    plans->populate(converter, patterns);
    if (failed(applyPartialConversion(kernels, target, std::move(patterns))))
      signalPassFailure();
  }

  /// What lies elsewhere would stay as it is, unnoticed.
  static LogicalResult verifyAllInKernels(ModuleOp module) {
    WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<KernelOp>(op) && op->getParentOp() == module)
        return WalkResult::skip();
      if (!isa_and_nonnull<LowlpDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("must lie in a kernel at the top level of the module");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
    for (Operation &op : module.getOps())
      if (isa<FunctionOpInterface>(op) && !isa<KernelOp>(op))
        return op.emitOpError("stands beside kernels; a program holds kernels "
                              "alone");
    return success();
  }

  /// The values of a thread become straight code, of which there is a limit.
  static LogicalResult verifyTileSizes(ModuleOp module) {
    WalkResult result = module.walk([](Operation *op) {
      for (Type type : op->getResultTypes())
        if (auto tile = dyn_cast<TileType>(type);
            tile && tile.getNumLocals() > simt::kMaxElementsPerThread) {
          op->emitOpError("gives each thread ")
              << tile.getNumLocals() << " elements; at most "
              << simt::kMaxElementsPerThread << " are allowed";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Moves all kernels into a gpu.module; null when there are none.
  static gpu::GPUModuleOp gatherKernels(ModuleOp module) {
    SmallVector<KernelOp> kernels(module.getOps<KernelOp>());
    if (kernels.empty())
      return {};
    module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                    UnitAttr::get(module.getContext()));
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto container =
        gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
    for (KernelOp kernel : kernels)
      kernel->moveBefore(container.getBody(), container.getBody()->end());
    return container;
  }
};

} // namespace

void lowlp::populateKernelPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns,
                                   const SharedMemoryPlan &plan,
                                   const WorkspacePlan &workspace,
                                   const TensorMapPlan &tensorMaps) {
  patterns.add<KernelPattern>(converter, patterns.getContext(), plan, workspace,
                              tensorMaps);
  patterns.add<ReturnPattern, BlockIndicesPattern>(converter,
                                                   patterns.getContext());
}
