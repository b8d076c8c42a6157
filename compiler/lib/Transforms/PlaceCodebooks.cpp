//===- PlaceCodebooks.cpp - lowlp-place-codebooks -------------------------===//
//
// 1. A codebook and all values that it becomes: of switches, and of loops and
//    branches that hand it on. Loads that meet in one value are one codebook.
// 2. What its lookups are like: which books the lanes of a phase read.
// 3. The cache (CodebookPlacement.cpp), from what shared memory is free.
// 4. Types, tiles, and what is told.
//
//===----------------------------------------------------------------------===//
#include "CodebookPlacement.h"
#include "PassRemarks.h"

#include "lowlp/Analysis/SourceOp.h"
#include "lowlp/IR/Report.h"
#include "lowlp/Layout/Scratch.h"
#include "lowlp/Layout/WarpConversion.h"
#include "lowlp/Target/TargetInfo.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#include <set>

#define DEBUG_TYPE "lowlp-place-codebooks"

namespace lowlp {
#define GEN_PASS_DEF_PLACECODEBOOKS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// What a codebook becomes
//===----------------------------------------------------------------------===//

namespace {

/// A codebook, with all values that stand for it.
struct Codebook {
  llvm::SetVector<Value> values;
  SmallVector<LoadCodebookOp> loads;
  SmallVector<LookupVectorsOp> lookups;
};

} // namespace

/// Calls `add` for the values to which a use hands the codebook on.
static void followUse(OpOperand &use, function_ref<void(Value)> add) {
  Operation *op = use.getOwner();
  unsigned number = use.getOperandNumber();
  if (auto change = dyn_cast<SwitchCodebookOp>(op))
    add(change.getResult());
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    add(loop.getTiedLoopRegionIterArg(&use));
    add(loop.getTiedLoopResult(&use));
  }
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    add(loop.getBeforeArguments()[number]);
  if (auto condition = dyn_cast<scf::ConditionOp>(op)) {
    auto loop = cast<scf::WhileOp>(op->getParentOp());
    add(loop.getAfterArguments()[number - 1]);
    add(loop.getResult(number - 1));
  }
  if (isa<scf::YieldOp>(op)) {
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
      add(loop.getRegionIterArg(number));
    else if (auto outer = dyn_cast<scf::WhileOp>(op->getParentOp()))
      add(outer.getBeforeArguments()[number]);
    if (isa<scf::ForOp, scf::IfOp>(op->getParentOp()))
      add(op->getParentOp()->getResult(number));
  }
}

/// Calls `add` for the values that a value may stand for.
static void followValue(Value value, function_ref<void(Value)> add) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent)) {
      unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
      add(loop.getInitArgs()[number]);
      add(loop.getYieldedValues()[number]);
    }
    return;
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto change = dyn_cast<SwitchCodebookOp>(op))
    add(change.getCodebook());
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    add(branch.thenYield().getOperand(number));
    add(branch.elseYield().getOperand(number));
  }
  if (auto loop = dyn_cast<scf::ForOp>(op))
    add(loop.getYieldedValues()[number]);
}

static Codebook collect(LoadCodebookOp first) {
  Codebook codebook;
  codebook.values.insert(first.getCodebook());
  auto add = [&](Value value) { codebook.values.insert(value); };
  // The set grows as its members are followed.
  for (size_t i = 0; i < codebook.values.size(); ++i) {
    Value value = codebook.values[i];
    followValue(value, add);
    for (OpOperand &use : value.getUses())
      followUse(use, add);
    if (auto load = value.getDefiningOp<LoadCodebookOp>())
      codebook.loads.push_back(load);
    for (Operation *user : value.getUsers())
      if (auto lookup = dyn_cast<LookupVectorsOp>(user))
        codebook.lookups.push_back(lookup);
  }
  return codebook;
}

//===----------------------------------------------------------------------===//
// What is free, and what is asked for
//===----------------------------------------------------------------------===//

/// How many books the lanes of the first phase read; 1 if these lie side by
/// side in no different places of the banks.
static int64_t countBooksOfPhase(LookupVectorsOp lookup) {
  if (!lookup.getBookAlong() && !lookup.getStaggered())
    return 1;
  Layout layout = lookup.getPartLayout();
  int64_t lanes =
      getLanesPerPhase(lookup.getCodebook().getType().getEntryBytes());
  std::set<int64_t> books;
  for (int64_t lane = 0; lane < std::min(lanes, layout.numThreads()); ++lane)
    books.insert(lookup.getBookOf(layout.evaluate(lane, 0)));
  auto count = static_cast<int64_t>(books.size());
  std::set<int64_t> places;
  for (int64_t book : books)
    places.insert(book % count);
  return places.size() == books.size() ? count : 1;
}

/// The largest tile that may go through shared memory to another layout.
static int64_t getExchangedBytes(KernelOp kernel) {
  int64_t most = 0;
  kernel.walk([&](Operation *op) {
    if (!isa<ConvertLayoutOp, ReduceOp>(op))
      return;
    // What warps add up by themselves goes through no memory.
    if (auto reduce = dyn_cast<ReduceOp>(op);
        reduce && !splitAcrossWarps(reduce.getSource().getType().getLayout(),
                                    static_cast<int64_t>(reduce.getDim())))
      return;
    auto tile = cast<TileType>(op->getOperand(0).getType());
    int64_t bits = *getElementBits(tile.getElementType());
    most = std::max<int64_t>(most, tile.getLayout().numElements() *
                                       llvm::divideCeil(bits, 8));
    // With the padding that spreads its rows over the banks.
    if (auto convert = dyn_cast<ConvertLayoutOp>(op))
      most = std::max(most, planScratch(tile.getLayout(),
                                        convert.getType().getLayout(), bits)
                                .sizeInBytes());
  });
  return most;
}

/// What the blocks of a cluster store in each other's shared memory.
static int64_t getClusterBytes(KernelOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](ExchangeInClusterOp op) {
    if (!op.getShared())
      bytes += llvm::alignTo(op.getNeededShared().getSizeInBytes(),
                             AllocSharedOp::kAlignBytes);
  });
  return bytes;
}

/// The shared memory that tiles leave.
static int64_t getFreeBytes(KernelOp kernel, const TargetInfo *target) {
  int64_t bytes =
      target ? target->maxSharedBytesPerBlock : AllocSharedOp::kMaxBytes;
  // Of each block the hardware takes 1 KiB for itself (CUDA Programming Guide,
  // "Compute Capabilities").
  if (int64_t blocks = kernel.getScheduleOrDefault().getBlocksPerSm();
      target && blocks > 1)
    bytes = std::min(bytes, target->sharedBytesPerSM / blocks - 1024);
  bytes -= getExchangedBytes(kernel) + getClusterBytes(kernel);
  kernel.walk([&](AllocSharedOp alloc) {
    bytes -=
        llvm::alignTo(alloc.getType().getSizeInBytes(), alloc.getAlignBytes());
  });
  kernel.walk([&](AllocMbarriersOp alloc) {
    bytes -= llvm::alignTo(8 * alloc.getType().getCount(),
                           AllocSharedOp::kAlignBytes);
  });
  return std::max<int64_t>(bytes, 0);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// "2 x 256 entries of 16 bytes: 0 in registers, ..."
static std::string describe(CodebookType codebook, CacheEstimateAttr estimate) {
  int64_t registers = codebook.getRegisterEntries();
  int64_t shared =
      std::max<int64_t>(codebook.getSharedEntries() - registers, 0);
  int64_t global = codebook.getNumEntries() - registers - shared;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << codebook.getNumBooks() << " x " << codebook.getNumEntries()
     << " entries of " << codebook.getEntryBytes() << " bytes: " << registers
     << " in registers ("
     << codebook.getNumBooks() * registers * codebook.getEntryBytes()
     << " bytes a thread), " << shared << " in shared memory (";
  if (shared != 0)
    os << codebook.getCache().getCopies()
       << (codebook.getCache().getCopies() == 1 ? " copy, " : " copies, ")
       << codebook.getCache().getLineBytes() << " bytes apart, "
       << codebook.getSharedBytes() << " bytes), ";
  else
    os << "0 bytes), ";
  os << global << " in global memory ("
     << codebook.getNumBooks() * global * codebook.getEntryBytes()
     << " bytes); of 1000 lookups " << estimate.getRegisterHits()
     << " in registers, " << estimate.getSharedHits() << " in shared memory, "
     << estimate.getGlobalHits() << " in global memory; "
     << llvm::formatv("{0:f2}",
                      static_cast<double>(estimate.getBankPasses()) / 100)
     << " passes a phase; fills " << estimate.getFillBytes()
     << " bytes, gathers " << estimate.getGatherBytes()
     << " bytes in 1000 lookups; " << estimate.getReason().getValue();
  return text;
}

namespace {

struct PlaceCodebooks : lowlp::impl::PlaceCodebooksBase<PlaceCodebooks> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    const TargetInfo *target =
        arch.empty() ? nullptr : TargetInfo::lookupFor(kernel, arch);
    if (!target && !arch.empty())
      return signalPassFailure();
    SmallVector<LoadCodebookOp> loads;
    kernel.walk([&](LoadCodebookOp load) { loads.push_back(load); });
    std::vector<std::string> lines;
    for (LoadCodebookOp load : loads) {
      // One that another has met is placed already.
      if (load.getEstimate())
        continue;
      if (failed(place(collect(load), getFreeBytes(kernel, target), lines)))
        return signalPassFailure();
    }
    if (!lines.empty())
      setReport(kernel, "codebooks", lines);
  }

private:
  /// The cache that loads ask for, if one does.
  static FailureOr<CodebookCacheAttr> findWanted(const Codebook &codebook) {
    CodebookCacheAttr wanted;
    for (LoadCodebookOp load : codebook.loads) {
      CodebookCacheAttr cache = load.getCacheAttr();
      if (wanted && cache && cache != wanted)
        return load.emitOpError("asks for ")
               << cache << ", but a load that its codebook meets asks for "
               << wanted;
      if (cache)
        wanted = cache;
    }
    return wanted;
  }

  static CodebookDemand findDemand(Codebook &codebook, int64_t freeBytes) {
    CodebookDemand demand;
    demand.codebook = codebook.loads.front().getType();
    for (LoadCodebookOp load : codebook.loads)
      if (std::optional<ArrayRef<int64_t>> frequencies = load.getFrequencies())
        demand.frequencies = *frequencies;
    demand.spread =
        static_cast<int64_t>(codebook.loads.front().getSpread().value_or(0));
    demand.hasByteCodes = !codebook.lookups.empty();
    int64_t lanes = getLanesPerPhase(demand.codebook.getEntryBytes());
    demand.booksPerPhase = codebook.lookups.empty() ? 1 : lanes;
    for (LookupVectorsOp lookup : codebook.lookups) {
      demand.booksPerPhase =
          std::min(demand.booksPerPhase, countBooksOfPhase(lookup));
      demand.hasByteCodes &=
          lookup.getCodes().getType().getElementType().isUnsignedInteger(8);
    }
    // Each load has a tile of its own.
    demand.freeBytes = freeBytes / static_cast<int64_t>(codebook.loads.size());
    return demand;
  }

  LogicalResult place(Codebook codebook, int64_t freeBytes,
                      std::vector<std::string> &lines) {
    CodebookDemand demand = findDemand(codebook, freeBytes);
    LoadCodebookOp first = codebook.loads.front();
    FailureOr<CodebookCacheAttr> wanted = findWanted(codebook);
    if (failed(wanted))
      return failure();
    CodebookChoice choice{*wanted, "asked for"};
    if (!*wanted) {
      Result<CodebookChoice> found = chooseCache(
          demand, getOperation().getScheduleOrDefault().getCodebooks());
      if (!found)
        return first.emitOpError(found.error());
      choice = *found;
    }
    CacheEstimateAttr estimate = estimateCache(demand, choice);
    CodebookType type = demand.codebook.cloneWith(choice.cache);
    for (Value value : codebook.values)
      value.setType(type);
    for (LoadCodebookOp load : codebook.loads) {
      carryOut(load, type, estimate);
      lines.push_back(describePlace(load) + describe(type, estimate));
    }
    return success();
  }

  void carryOut(LoadCodebookOp load, CodebookType type,
                CacheEstimateAttr estimate) {
    load.setEstimateAttr(estimate);
    if (int64_t bytes = type.getSharedBytes()) {
      OpBuilder builder(load);
      auto tile = SharedType::get(
          &getContext(),
          IntegerType::get(&getContext(), 8, IntegerType::Unsigned),
          *SharedLayout::plain(Layout::local({bytes})));
      load.getTileMutable().assign(AllocSharedOp::create(
          builder, load.getLoc(), tile, /*offset=*/IntegerAttr()));
      numBytes += bytes;
    }
    if (type.getCache())
      ++numCodebooks;
    remarkDone(load, DEBUG_TYPE, "cache",
               [&] { return describe(type, estimate); });
  }

  static std::string describePlace(LoadCodebookOp load) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "codebook";
    if (FileLineColRange place = findSourcePlace(load.getLoc()))
      os << " at " << llvm::sys::path::filename(place.getFilename().getValue())
         << ":" << place.getStartLine();
    os << ": ";
    return text;
  }
};

} // namespace
