//===- LowlpKernelOps.cpp - kernels and their blocks ----------------------===//
#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, AffineMap grid, int64_t numThreads) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getGridAttrName(state.name), AffineMapAttr::get(grid));
  state.addAttribute(getNumThreadsAttrName(state.name),
                     builder.getI64IntegerAttr(numThreads));
  Block &body = state.addRegion()->emplaceBlock();
  for (Type argument : type.getInputs())
    body.addArgument(argument, state.location);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  auto makeType =
      [](Builder &builder, ArrayRef<Type> inputs, ArrayRef<Type> results,
         function_interface_impl::VariadicFlag, std::string &) -> Type {
    return builder.getFunctionType(inputs, results);
  };
  return function_interface_impl::parseFunctionOp(
      parser, result, /*allowVariadic=*/false,
      getFunctionTypeAttrName(result.name), makeType,
      getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void KernelOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(
      printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
      getArgAttrsAttrName(), getResAttrsAttrName());
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (auto [index, argument] : llvm::enumerate(region.getArguments()))
    if (auto name =
            getArgAttrOfType<StringAttr>(index, LowlpDialect::kNameAttrName))
      setName(argument, name.getValue());
}

/// The number that `attribute` promises; only an i64 promises one.
static std::optional<int64_t> getPromise(Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  if (!number || !number.getType().isSignlessInteger(64))
    return std::nullopt;
  return number.getInt();
}

/// Checks the promises that argument `index` of type `type` carries.
static LogicalResult verifyArgument(KernelOp kernel, unsigned index,
                                    Type type) {
  if (!isa<PointerType>(type) && !type.isSignlessInteger(32) &&
      !type.isSignlessInteger(64) && !type.isF32())
    return kernel.emitOpError("parameter ")
           << index << " must be !lowlp.ptr, i32, i64 or f32, but is " << type;
  Attribute name = kernel.getArgAttr(index, LowlpDialect::kNameAttrName);
  if (name && !isa<StringAttr>(name))
    return kernel.emitOpError("parameter ")
           << index << ": lowlp.name must be a string";
  if (Attribute attribute =
          kernel.getArgAttr(index, LowlpDialect::kAlignAttrName)) {
    std::optional<int64_t> align = getPromise(attribute);
    if (!isa<PointerType>(type) || !align || *align < 1 ||
        !llvm::isPowerOf2_64(*align))
      return kernel.emitOpError("parameter ")
             << index << ": lowlp.align must be a power of two on a pointer";
  }
  if (Attribute attribute =
          kernel.getArgAttr(index, LowlpDialect::kDivisibleByAttrName)) {
    std::optional<int64_t> divisor = getPromise(attribute);
    if (!isa<IntegerType>(type) || !divisor || *divisor < 1)
      return kernel.emitOpError("parameter ")
             << index
             << ": lowlp.divisible_by must be a positive number on an integer";
  }
  return success();
}

int64_t KernelOp::getCluster() {
  auto cluster =
      (*this)->getAttrOfType<IntegerAttr>(LowlpDialect::kClusterAttrName);
  return cluster ? cluster.getInt() : 1;
}

/// Of any architecture (CUDA C++ Programming Guide, "Technical Specifications
/// per Compute Capability").
static constexpr int64_t kMostBlocksPerSM = 32;

/// Whether an attribute of the kernel, if it is there, is a number of blocks.
static LogicalResult verifyBlocks(KernelOp kernel, StringRef name,
                                  int64_t least, int64_t most) {
  Attribute attribute = kernel->getAttr(name);
  if (!attribute)
    return success();
  std::optional<int64_t> blocks = getPromise(attribute);
  if (blocks && *blocks >= least && *blocks <= most)
    return success();
  return kernel.emitOpError()
         << name << " must be a number of " << least << " to " << most
         << " blocks, but is " << attribute;
}

static LogicalResult verifyCluster(KernelOp kernel) {
  if (failed(verifyBlocks(kernel, LowlpDialect::kClusterAttrName, /*least=*/2,
                          KernelOp::kMaxCluster)))
    return failure();
  int64_t blocks = kernel.getCluster();
  AffineMap grid = kernel.getGrid();
  if (blocks == 1 ||
      (grid.getNumResults() == 1 && grid.getResult(0).isMultipleOf(blocks)))
    return success();
  return kernel.emitOpError("with clusters of ")
         << blocks
         << " blocks: the grid must have one extent, a multiple of it, but is "
         << AffineMapAttr::get(grid);
}

LogicalResult KernelOp::verify() {
  if (getBody().empty())
    return emitOpError("must have a body");
  // Passes take every argument of a block of the kernel for a parameter.
  if (!getBody().hasOneBlock())
    return emitOpError("must have one block, but has ")
           << getBody().getBlocks().size() << ": control flow is scf's";
  if (getFunctionType().getNumResults() != 0)
    return emitOpError("has no results, but its type names ")
           << getFunctionType().getNumResults();
  int64_t numThreads = getNumThreads();
  if (numThreads < 32 || numThreads > 1024 || numThreads % 32 != 0)
    return emitOpError(
               "num_threads must be a multiple of 32 up to 1024, but is ")
           << numThreads;
  AffineMap grid = getGrid();
  if (grid.getNumResults() < 1 || grid.getNumResults() > 3)
    return emitOpError("grid must have 1 to 3 extents, but has ")
           << grid.getNumResults();
  unsigned numIntegers = llvm::count_if(
      getArgumentTypes(), [](Type type) { return isa<IntegerType>(type); });
  if (grid.getNumInputs() != numIntegers || grid.getNumSymbols() != 0)
    return emitOpError("grid must have one dimension for each of the ")
           << numIntegers << " integer parameters, but has "
           << grid.getNumDims() << " dimensions and " << grid.getNumSymbols()
           << " symbols";
  if (failed(verifyCluster(*this)) ||
      failed(verifyBlocks(*this, LowlpDialect::kBlocksPerSMAttrName,
                          /*least=*/1, kMostBlocksPerSM)))
    return failure();
  for (auto [index, type] : llvm::enumerate(getArgumentTypes()))
    if (failed(verifyArgument(*this, index, type)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// BlockIndicesOp
//===----------------------------------------------------------------------===//

LogicalResult BlockIndicesOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!kernel)
    return emitOpError("must lie in a lowlp.kernel");
  if (kernel.getGrid().getNumResults() != getNumResults())
    return emitOpError("has ")
           << getNumResults() << " results, but the grid has "
           << kernel.getGrid().getNumResults() << " extents";
  return success();
}

#define GET_OP_CLASSES
#include "lowlp/IR/LowlpOps.cpp.inc"
