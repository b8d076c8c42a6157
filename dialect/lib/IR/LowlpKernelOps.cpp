//===- LowlpKernelOps.cpp - kernels and their blocks ----------------------===//
#include "LowlpPackedAttrs.h"
#include "NearestName.h"

#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/StringExtras.h"

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
  SMLoc place = parser.getCurrentLocation();
  if (function_interface_impl::parseFunctionOp(
          parser, result, /*allowVariadic=*/false,
          getFunctionTypeAttrName(result.name), makeType,
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  // MLIR would leave out what is of another type.
  Attribute schedule = result.attributes.get(getScheduleAttrName(result.name));
  if (!schedule || isa<ScheduleAttr>(schedule))
    return success();
  return parser.emitError(place, "schedule must be a #lowlp.schedule, but is ")
         << schedule;
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

/// Checks that `lowlp.constant` says nothing but itself, and of a pointer.
static LogicalResult verifyConstant(KernelOp kernel, unsigned index) {
  Attribute constant =
      kernel.getArgAttr(index, LowlpDialect::kConstantAttrName);
  if (!constant || (isa<UnitAttr>(constant) &&
                    isa<PointerType>(kernel.getArgumentTypes()[index])))
    return success();
  return kernel.emitOpError("parameter ")
         << index << ": lowlp.constant must be given without a value, and on a "
         << "pointer";
}

static LogicalResult verifyArguments(KernelOp kernel) {
  llvm::SmallDenseMap<StringRef, unsigned> named;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    if (failed(verifyArgument(kernel, index, type)) ||
        failed(verifyConstant(kernel, index)))
      return failure();
    auto name =
        kernel.getArgAttrOfType<StringAttr>(index, LowlpDialect::kNameAttrName);
    if (!name)
      continue;
    auto [first, isNew] = named.try_emplace(name.getValue(), index);
    if (!isNew)
      return kernel.emitOpError("parameters ")
             << first->second << " and " << index << " are both called "
             << name;
  }
  return success();
}

ScheduleAttr KernelOp::getScheduleOrDefault() {
  ScheduleAttr schedule = getScheduleAttr();
  return schedule ? schedule : ScheduleAttr::getDefault(getContext());
}

void KernelOp::changeSchedule(ScheduleAttr schedule) {
  if (schedule == ScheduleAttr::getDefault(getContext()))
    removeScheduleAttr();
  else
    setScheduleAttr(schedule);
}

/// Checks the fields of the schedule that lean on the rest of the kernel.
static LogicalResult verifySchedule(KernelOp kernel) {
  ScheduleAttr schedule = kernel.getScheduleOrDefault();
  int64_t numThreads = static_cast<int64_t>(kernel.getNumThreads());
  if (schedule.getExchangeRegisters() && numThreads % kThreadsPerWarpgroup)
    return kernel.emitOpError("exchange_registers of its schedule needs whole "
                              "warpgroups of ")
           << kThreadsPerWarpgroup << " threads, but num_threads is "
           << numThreads;
  int64_t blocks = schedule.getCluster();
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
  if (failed(verifySchedule(*this)))
    return failure();
  return verifyArguments(*this);
}

/// The dialects whose ops a kernel may hold. `ub` has what folding makes of
/// values that no execution sees.
static constexpr StringLiteral kDialectsOfKernels[] = {"lowlp", "scf", "arith",
                                                       "math", "ub"};

/// Checks that the op means something to a whole block: what is of one thread
/// alone, `gpu.barrier` for example, would slip through to the thread level,
/// where passes before have not reckoned with it. Ops that MLIR does not know
/// are there only if it was asked to take such, by a test.
static LogicalResult verifyBelongs(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (llvm::is_contained(kDialectsOfKernels, dialect) || !op->isRegistered())
    return success();
  InFlightDiagnostic error = op->emitOpError("does not belong in a "
                                             "lowlp.kernel, whose ops are of ")
                             << llvm::join(ArrayRef(kDialectsOfKernels), ", ");
  if (op->getName().getStringRef() == "gpu.barrier")
    error << "; the barrier of a block is lowlp.synchronize";
  return error;
}

/// Checks that the op has no attribute of its own but those that it knows.
/// Those with a prefix are their dialects' matter, and the visibility is any
/// symbol's.
static LogicalResult verifyOwnAttributes(Operation *op) {
  for (NamedAttribute attribute : op->getDiscardableAttrs()) {
    StringRef name = attribute.getName();
    if (!name.split('.').second.empty() ||
        name == SymbolTable::getVisibilityAttrName())
      continue;
    InFlightDiagnostic error = op->emitOpError("has no attribute '")
                               << name << "'";
    SmallVector<StringRef> known;
    for (StringAttr one : op->getName().getAttributeNames())
      known.push_back(one.getValue());
    if (!known.empty())
      error << "; the nearest is '" << findNearestName(name, known) << "'";
    return error;
  }
  return success();
}

/// Checks that all threads of the block hold the tiles that the op makes.
static LogicalResult verifyThreads(Operation *op, int64_t numThreads) {
  for (Type type : op->getResultTypes())
    if (auto tile = dyn_cast<TileType>(type);
        tile && tile.getNumThreads() != numThreads)
      return op->emitOpError("makes a tile that is held by ")
             << tile.getNumThreads() << " threads, but a block has "
             << numThreads;
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (failed(verifyOwnAttributes(*this)))
    return failure();
  int64_t numThreads = static_cast<int64_t>(getNumThreads());
  WalkResult result = getBody().walk([&](Operation *op) {
    bool isOwn = isa_and_nonnull<LowlpDialect>(op->getDialect());
    return WalkResult(failure(failed(verifyBelongs(op)) ||
                              failed(verifyThreads(op, numThreads)) ||
                              (isOwn && failed(verifyOwnAttributes(op)))));
  });
  return failure(result.wasInterrupted());
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
