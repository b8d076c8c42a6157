//===- Workspace.cpp - where global allocations lie -----------------------===//
//
// The workspace pointer divides the memory. Towards lower addresses lies what
// is zero between launches, so that kernels may share it, and from the pointer
// on what nobody expects anything of; each at a multiple of 256 bytes:
//
//       ... | zeroed 1 | zeroed 0 | scratch 0 | scratch 1 | ...
//                                 ^ workspace pointer
//
// Sizes depend on parameters, so places are computed in the kernel. The run
// time computes the same (runtime/lowlp_runtime/description.py).
//
//===----------------------------------------------------------------------===//
#include "Order.h"

#include "lowlp/Analysis/SourceOp.h"
#include "lowlp/IR/Simt.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include "llvm/Support/Path.h"

using namespace mlir;
using namespace lowlp;

WorkspacePlan lowlp::planWorkspace(Operation *root) {
  WorkspacePlan plan;
  root->walk([&](AllocGlobalOp alloc) {
    plan.allocs[alloc->getParentOfType<KernelOp>()].push_back(alloc);
  });
  for (auto &[kernel, allocs] : plan.allocs) {
    auto type = PointerType::get(
        root->getContext(),
        IntegerType::get(root->getContext(), 8, IntegerType::Unsigned));
    auto op = cast<KernelOp>(kernel);
    LogicalResult inserted = op.insertArgument(op.getNumArguments(), type,
                                               DictionaryAttr(), op.getLoc());
    (void)inserted;
    assert(succeeded(inserted) && "a kernel takes one more pointer");
  }
  return plan;
}

/// "lowlp.alloc_global at k.py:12:8". The file's name without its folder: saved
/// kernels are the same wherever their source lies, and do not tell where.
static std::string describe(AllocGlobalOp alloc) {
  std::string text = alloc->getName().getStringRef().str();
  if (FileLineColRange place = findSourcePlace(alloc.getLoc()))
    text += " at " +
            llvm::sys::path::filename(place.getFilename().getValue()).str() +
            ":" + std::to_string(place.getStartLine()) + ":" +
            std::to_string(place.getStartColumn());
  return text;
}

ArrayAttr lowlp::describeWorkspace(const WorkspacePlan &plan, KernelOp kernel) {
  Builder builder(kernel.getContext());
  SmallVector<Attribute> parts;
  for (AllocGlobalOp alloc : plan.allocs.lookup(kernel)) {
    NamedAttrList part;
    part.set("name", builder.getStringAttr(describe(alloc)));
    part.set("shape", alloc.getShapeAttr());
    part.set("element_bits",
             builder.getI64IntegerAttr(*getElementBits(
                 alloc.getPointer().getType().getElementType())));
    if (alloc.getZeroed())
      part.set("zeroed", builder.getUnitAttr());
    parts.push_back(part.getDictionary(kernel.getContext()));
  }
  return builder.getArrayAttr(parts);
}

namespace {

/// Emits sizes and places of allocations at one place of a kernel.
class Places {
public:
  Places(OpBuilder &builder, Location loc, gpu::GPUFuncOp kernel)
      : builder(builder), loc(loc) {
    for (BlockArgument argument : kernel.getArguments())
      if (argument.getType().isInteger())
        parameters.push_back(arith::IndexCastOp::create(
            builder, loc, builder.getIndexType(), argument));
  }

  /// The bytes of `alloc` with what it takes to fill up its last unit.
  Value getAlignedBytes(AllocGlobalOp alloc) {
    Value elements;
    for (AffineExpr extent : alloc.getShape().getResults()) {
      Value value = affine::expandAffineExpr(builder, loc, extent, parameters,
                                             /*symbolValues=*/{});
      elements = elements ? make<arith::MulIOp>(elements, value) : value;
    }
    int64_t bits =
        *getElementBits(alloc.getPointer().getType().getElementType());
    Value units =
        make<arith::CeilDivUIOp>(make<arith::MulIOp>(elements, index(bits)),
                                 index(8 * kAllocGlobalAlignBytes));
    return make<arith::MulIOp>(units, index(kAllocGlobalAlignBytes));
  }

  /// Bytes from the workspace pointer to `alloc`, one of `all`.
  Value getOffset(AllocGlobalOp alloc, ArrayRef<AllocGlobalOp> all) {
    bool zeroed = alloc.getZeroed();
    Value offset = index(0);
    for (AllocGlobalOp other : all) {
      bool isAlloc = other == alloc;
      if (isAlloc && !zeroed)
        break;
      if (other.getZeroed() != zeroed)
        continue;
      Value bytes = getAlignedBytes(other);
      offset = zeroed ? make<arith::SubIOp>(offset, bytes)
                      : make<arith::AddIOp>(offset, bytes);
      if (isAlloc)
        break;
    }
    return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                      offset);
  }

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  template <typename Op> Value make(Value a, Value b) {
    return Op::create(builder, loc, a, b);
  }

  OpBuilder &builder;
  Location loc;
  SmallVector<Value> parameters; ///< the integer ones, as index
};

struct AllocGlobalPattern : OpConversionPattern<AllocGlobalOp> {
  AllocGlobalPattern(const TypeConverter &converter, MLIRContext *context,
                     const WorkspacePlan &plan)
      : OpConversionPattern(converter, context) {
    // The kernels are other ops when the pattern comes to be applied.
    for (const auto &[kernel, allocs] : plan.allocs)
      for (AllocGlobalOp alloc : allocs)
        neighbours[alloc] = allocs;
  }

  LogicalResult
  matchAndRewrite(AllocGlobalOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
    if (!kernel)
      return rewriter.notifyMatchFailure(op, "its kernel comes first");
    Location loc = getNamedLoc(op);
    Places places(rewriter, loc, kernel);
    Value offset = places.getOffset(op, neighbours.at(op));
    // Tensor maps are the only arguments after the workspace pointer.
    auto maps = kernel->getAttrOfType<ArrayAttr>("lowlp.tensor_maps");
    size_t numMaps = maps ? maps.size() : 0;
    Value workspace = kernel.getArguments().drop_back(numMaps).back();
    rewriter.replaceOpWithNewOp<simt::OffsetOp>(op, workspace, offset);
    return success();
  }

  llvm::DenseMap<Operation *, SmallVector<AllocGlobalOp>> neighbours;
};

} // namespace

void lowlp::populateWorkspacePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      const WorkspacePlan &plan) {
  patterns.add<AllocGlobalPattern>(converter, patterns.getContext(), plan);
}
