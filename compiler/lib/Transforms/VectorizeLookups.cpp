//===- VectorizeLookups.cpp - lowlp-vectorize-lookups ---------------------===//
//
// For each table of shared memory and each width of the codes looked up in it:
//
//   1. where to fill another table from it: before the op of the innermost
//      block around all uses that holds the first lookup, if all writes of the
//      table come before;
//   2. what other table: pairs or single entries, and in how many copies;
//   3. fill it there, and look the codes up in it.
//
//===----------------------------------------------------------------------===//
#include "PassRemarks.h"

#include "lowlp/Analysis/ByteIndices.h"
#include "lowlp/Analysis/SourceOp.h"
#include "lowlp/Decode/Placement.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/Report.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

#define DEBUG_TYPE "lowlp-vectorize-lookups"

namespace lowlp {
#define GEN_PASS_DEF_VECTORIZELOOKUPS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Where to fill
//===----------------------------------------------------------------------===//

namespace {

/// Where another table can be filled from a plain one.
struct FillPlace {
  /// The op in front of it.
  Operation *before;
  /// Whether a barrier must stand between the writes of the plain table and it.
  bool needsBarrier;
};

} // namespace

/// The innermost block that holds all of the ops, maybe in regions of its ops.
static Block *findCommonBlock(ArrayRef<Operation *> ops) {
  Block *block = ops.front()->getBlock();
  while (!llvm::all_of(
      ops, [&](Operation *op) { return block->findAncestorOpInBlock(*op); }))
    block = block->getParentOp()->getBlock();
  return block;
}

/// Where a table may be filled from `alloc` for all of `lookups`; else why not.
static FailureOr<FillPlace>
findPlace(AllocSharedOp alloc, ArrayRef<LookupOp> lookups, StringRef &reason) {
  SmallVector<Operation *> writers;
  for (Operation *user : alloc.getShared().getUsers()) {
    auto expand = dyn_cast<ExpandTableOp>(user);
    if (isa<StoreSharedOp, CopyAsyncOp>(user)) {
      writers.push_back(user);
    } else if (!isa<LookupOp, LoadSharedOp, LoadScalarOp>(user) &&
               (!expand || expand.getExpanded() == alloc.getShared())) {
      reason = "other ops use the table";
      return failure();
    }
  }
  SmallVector<Operation *> ops(writers);
  for (LookupOp lookup : lookups)
    ops.push_back(lookup);
  Block *block = findCommonBlock(ops);
  auto isEarlier = [&](Operation *a, Operation *b) {
    return block->findAncestorOpInBlock(*a)->isBeforeInBlock(
        block->findAncestorOpInBlock(*b));
  };
  Operation *first = *llvm::min_element(lookups, isEarlier);
  FillPlace place{block->findAncestorOpInBlock(*first), /*needsBarrier=*/true};
  if (writers.empty()) {
    reason = "nothing writes the table";
    return failure();
  }
  Operation *last =
      block->findAncestorOpInBlock(**llvm::max_element(writers, isEarlier));
  if (!last->isBeforeInBlock(place.before)) {
    reason = "the table is written again after the first lookup";
    return failure();
  }
  bool hasArrived = llvm::none_of(
      writers, [](Operation *writer) { return isa<CopyAsyncOp>(writer); });
  for (Operation *op = last->getNextNode(); op != place.before;
       op = op->getNextNode()) {
    if (auto wait = dyn_cast<CopyAsyncWaitOp>(op))
      hasArrived |= wait.getN() == 0;
    if (isa<SynchronizeOp>(op) && hasArrived)
      place.needsBarrier = false;
  }
  if (!hasArrived) {
    reason = "the copy into the table has not arrived before the first lookup";
    return failure();
  }
  return place;
}

//===----------------------------------------------------------------------===//
// What to fill
//===----------------------------------------------------------------------===//

static constexpr int64_t kMaxPairedBits = 6;
/// What a schedule or an option may ask for.
static constexpr int64_t kMaxCopies = 32;
static constexpr int64_t kNumBanks = 32;
/// Of entries, so that each lane has a word of its own; and of entries or pairs
/// in lines of 256 bytes, so that an index is a byte of the address.
static constexpr int64_t kCopiesInWords = 64;
static constexpr int64_t kLineBytes = 256;
/// What tables may take together where the pass chooses the copies: what every
/// device gives a block without being asked.
static constexpr int64_t kMaxTableBytes = int64_t(48) * 1024;

namespace {

/// What is looked up in one table, by a thread.
struct Demand {
  int64_t bits;
  bool holdsPairs;
  /// Of codes, over the whole run of the kernel.
  double numPairs;
  /// The bits of the slices in which the codes lie, as far as that is known.
  SmallVector<int64_t> slices;
  /// The fewest codes of a lookup.
  int64_t numCodes;
  /// Whether the bits of a code are bits of an address of the plain table.
  bool hasBits;
  int64_t numThreads;
};

enum class Form { Pairs, Entries, Registers };

struct Choice {
  Form form;
  int64_t copies;
  /// Of the new table; 0 for the plain one.
  int64_t bytes;
  /// Of filling it and of all lookups, in cycles of a warp.
  double cost;
};

} // namespace

/// The passes of the banks that a warp takes, at random codes, for a table of
/// `words` words that lie `copies` times side by side.
static double estimatePasses(int64_t words, int64_t copies) {
  // The most of 32 / C lanes that meet in one of 32 / C banks, in the worst of
  // C groups of lanes: averages over random tables, by the logarithm of C.
  static constexpr double crowds[] = {3.5, 3.4, 3.3, 2.9, 2.0, 1.0};
  if (copies >= kNumBanks)
    return 1;
  double wordsPerBank =
      std::max(1.0, static_cast<double>(words * copies) / kNumBanks);
  return std::min(wordsPerBank, crowds[llvm::Log2_64(copies)]);
}

/// Cycles of a warp for the address of an index of `codesPerIndex` codes, which
/// has it from bit `target` on; or with bit 0 apart, where there is no such.
/// Two instructions of the ALU take one.
static double estimateAddress(const Demand &demand, int64_t codesPerIndex,
                              std::optional<int64_t> target) {
  SmallVector<int64_t> widths;
  for (int64_t width : demand.slices)
    widths.push_back(codesPerIndex * width);
  if (std::optional<ByteIndices> bytes =
          ByteIndices::get(widths, demand.numCodes / codesPerIndex, target))
    return (bytes->countInstructions() + (target ? 0 : 2)) / 2;
  return static_cast<double>(widths.size() + (target ? 0 : 1));
}

/// Rounds in which every thread reads two entries and stores a word in up to
/// four copies.
static double estimateFill(int64_t bytes, int64_t copies, int64_t numThreads) {
  constexpr double cyclesPerRound = 12;
  int64_t bytesPerRound = 4 * std::min<int64_t>(copies, 4) * numThreads;
  return cyclesPerRound *
         static_cast<double>(llvm::divideCeil(bytes, bytesPerRound));
}

static Choice choosePairs(const Demand &demand, int64_t copies) {
  int64_t words = int64_t(1) << 2 * demand.bits;
  int64_t bytes = 4 * words * copies;
  double cycles = estimatePasses(words, copies) +
                  estimateAddress(demand, 2, llvm::Log2_64(4 * copies));
  return {Form::Pairs, copies, bytes,
          estimateFill(bytes, copies, demand.numThreads) +
              demand.numPairs * cycles};
}

static Choice chooseEntries(const Demand &demand, int64_t copies) {
  constexpr double joinCycles = 0.5;
  int64_t words = int64_t(1) << (demand.bits - 1);
  int64_t bytes = copies == 1 && demand.hasBits ? 0 : 4 * words * copies;
  // Two entries share a word of up to 32 copies.
  std::optional<int64_t> target;
  if (copies == 1 || copies >= kCopiesInWords)
    target = llvm::Log2_64(2 * copies);
  else if (demand.bits == 1)
    target = 1;
  double cycles =
      2 * (estimatePasses(words, copies) + estimateAddress(demand, 1, target)) +
      joinCycles;
  return {Form::Entries, copies, bytes,
          estimateFill(bytes, copies, demand.numThreads) +
              demand.numPairs * cycles};
}

/// Of two entries, which lowlp-convert-to-thread keeps in registers.
static Choice chooseRegisters(const Demand &demand) {
  constexpr double cyclesPerPair = 1.25;
  return {Form::Registers, 1, 0, demand.numPairs * cyclesPerPair};
}

/// How often `op` runs each time that `block` does.
static double estimateTrips(Operation *op, Block *block) {
  constexpr double unknownTrips = 32;
  double trips = 1;
  while (op->getBlock() != block) {
    op = op->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      std::optional<APInt> known = loop.getStaticTripCount();
      trips *= known ? known->roundToDouble() : unknownTrips;
    } else if (isa<scf::WhileOp>(op)) {
      trips *= unknownTrips;
    }
  }
  return trips;
}

/// The type of a table for the choice.
static SharedType getTableType(const Choice &choice, int64_t bits,
                               Type element) {
  int64_t numCodes = int64_t(1) << bits;
  Layout layout = Layout::local({numCodes, choice.copies});
  if (choice.form == Form::Pairs)
    layout = Layout::local({numCodes * numCodes, choice.copies, 2});
  else if (choice.copies > 1 && choice.copies <= kMaxCopies)
    layout = *compose(Layout::local({numCodes / 2, choice.copies}),
                      Layout::local({2, 1}));
  return SharedType::get(element.getContext(), element,
                         *SharedLayout::plain(layout));
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The width of the codes, or why no other table can serve the lookup.
static Result<int64_t> getServedBits(LookupOp lookup) {
  SharedType table = lookup.getTable().getType();
  Type element = table.getElementType();
  Type code =
      cast<TileType>(lookup.getSlices().front().getType()).getElementType();
  if (lookup.getSlices().size() != 1)
    return Error{"its codes come in several slices"};
  if (table.getRank() != 1)
    return Error{"the table has more than one dimension"};
  if (!element.isF16() && !element.isBF16())
    return Error{"the table holds neither f16 nor bf16"};
  if (!code.isUnsignedInteger() || !getScalarFormat(code))
    return Error{"codes are no unsigned integers of up to 8 bits"};
  int64_t bits = code.getIntOrFloatBitWidth();
  if (table.getShape()[0] < int64_t(1) << bits)
    return Error{"the table has not an entry for every code"};
  return bits;
}

/// The bits of the slices in which the codes are packed, as far as that is
/// known: lowlp-decompose-bit-slices has the lookups take them so.
static SmallVector<int64_t> findSlices(LookupOp lookup, int64_t bits) {
  SmallVector<int64_t> slices;
  if (auto unpack = lookup.getSlices().front().getDefiningOp<UnpackOp>())
    llvm::append_range(slices, (*unpack.getPlacement()).findSlices());
  if (llvm::sum_of(slices, int64_t(0)) != bits)
    return {bits};
  return slices;
}

namespace {

struct VectorizeLookups : lowlp::impl::VectorizeLookupsBase<VectorizeLookups> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // What the kernel's own schedule says comes first.
    wantedForm = form;
    wantedCopies = copies;
    ScheduleAttr schedule = kernel.getScheduleOrDefault();
    if (schedule.getTableForm() != TableForm::Auto)
      wantedForm = stringifyTableForm(schedule.getTableForm()).str();
    if (schedule.getTableCopies() != 0)
      wantedCopies = schedule.getTableCopies();
    if (wantedForm != "auto" && wantedForm != "pair" && wantedForm != "entry" &&
        wantedForm != "register") {
      kernel.emitError("form must be pair, entry, register or auto, but is ")
          << wantedForm;
      return signalPassFailure();
    }
    if (wantedCopies != 0 &&
        (!llvm::isPowerOf2_64(wantedCopies) || wantedCopies > kMaxCopies)) {
      kernel.emitError("copies must be 0 or a power of two up to ")
          << kMaxCopies << ", but is " << wantedCopies;
      return signalPassFailure();
    }
    tableBytes = sharedBytes = 0;
    decisions.clear();
    SmallVector<AllocSharedOp> allocs;
    kernel.walk([&](AllocSharedOp alloc) {
      allocs.push_back(alloc);
      sharedBytes += alloc.getType().getSizeInBytes();
    });
    for (AllocSharedOp alloc : allocs)
      serve(alloc);
    if (decisions.empty())
      return;
    setReport(kernel, "lookups", decisions);
  }

private:
  /// Serves all lookups in the tile, by the width of their codes.
  void serve(AllocSharedOp alloc) {
    llvm::MapVector<int64_t, SmallVector<LookupOp>> byBits;
    // Users are listed from the last one on.
    SmallVector<Operation *> users(alloc.getShared().getUsers());
    for (Operation *user : llvm::reverse(users))
      if (auto lookup = dyn_cast<LookupOp>(user)) {
        if (Result<int64_t> bits = getServedBits(lookup))
          byBits[*bits].push_back(lookup);
        else
          decline(lookup, bits.error());
      }
    for (auto &[bits, lookups] : byBits)
      serve(alloc, bits, lookups);
  }

  void serve(AllocSharedOp alloc, int64_t bits, ArrayRef<LookupOp> lookups) {
    StringRef reason;
    FailureOr<FillPlace> place = findPlace(alloc, lookups, reason);
    std::optional<Choice> choice;
    if (succeeded(place)) {
      Demand demand{bits,
                    true,
                    0,
                    {},
                    std::numeric_limits<int64_t>::max(),
                    llvm::isPowerOf2_64(alloc.getType().getShape()[0]),
                    static_cast<int64_t>(getOperation().getNumThreads())};
      for (LookupOp lookup : lookups) {
        SmallVector<int64_t> slices = findSlices(lookup, bits);
        if (slices.size() > demand.slices.size())
          demand.slices = slices;
        int64_t numCodes = lookup.getType().getNumLocals();
        demand.numCodes = std::min(demand.numCodes, numCodes);
        demand.holdsPairs &= numCodes % 2 == 0;
        demand.numPairs += static_cast<double>(numCodes) / 2 *
                           estimateTrips(lookup, place->before->getBlock());
      }
      choice = choose(demand);
      if (!choice)
        reason = wantedForm == "register" ? "registers hold two entries"
                 : bits > kMaxPairedBits  ? "pairs have codes of up to 6 bits"
                 : !demand.holdsPairs ? "threads hold an odd number of codes"
                                      : "no table fits";
    }
    for (LookupOp lookup : lookups) {
      decisions.push_back(describe(lookup, bits, choice, reason));
      if (!choice)
        decline(lookup, reason);
    }
    if (choice && choice->bytes != 0)
      rewrite(alloc, bits, lookups, *place, *choice);
  }

  static void decline(LookupOp lookup, StringRef reason) {
    LDBG() << lookup << " stays as it is: " << reason;
    remarkDeclined(lookup, DEBUG_TYPE, "table", [&] { return reason.str(); });
  }

  /// The best of what the options allow; nothing if that is nothing.
  std::optional<Choice> choose(const Demand &demand) const {
    SmallVector<Choice> choices;
    for (int64_t count = 1; 2 * count <= kLineBytes; count *= 2) {
      if (wantedCopies != 0 && wantedCopies != count)
        continue;
      if ((wantedForm == "auto" || wantedForm == "pair") && demand.holdsPairs &&
          demand.bits <= kMaxPairedBits && 4 * count <= kLineBytes)
        choices.push_back(choosePairs(demand, count));
      // Two entries in a plain table are chosen in registers anyway.
      if ((wantedForm == "auto" || wantedForm == "entry") &&
          (demand.bits > 1 || count > 1))
        choices.push_back(chooseEntries(demand, count));
    }
    if ((wantedForm == "auto" || wantedForm == "register") && demand.bits == 1)
      choices.push_back(chooseRegisters(demand));
    int64_t maxBytes =
        std::min(wantedCopies == 0 ? kMaxTableBytes - tableBytes
                                   : AllocSharedOp::kMaxBytes,
                 AllocSharedOp::kMaxBytes - sharedBytes - tableBytes);
    llvm::erase_if(choices, [&](const Choice &choice) {
      return choice.bytes > std::max<int64_t>(maxBytes, 0);
    });
    if (choices.empty())
      return std::nullopt;
    auto costs = llvm::map_range(
        choices, [](const Choice &choice) { return choice.cost; });
    double limit = 1.1 * *llvm::min_element(costs);
    llvm::erase_if(choices,
                   [&](const Choice &choice) { return choice.cost > limit; });
    return *llvm::min_element(choices, [](const Choice &a, const Choice &b) {
      return std::pair(a.bytes, a.cost) < std::pair(b.bytes, b.cost);
    });
  }

  static std::string describe(LookupOp lookup, int64_t bits,
                              const std::optional<Choice> &choice,
                              StringRef reason) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "lookup";
    if (FileLineColRange place = findSourcePlace(lookup.getLoc()))
      os << " at " << llvm::sys::path::filename(place.getFilename().getValue())
         << ":" << place.getStartLine();
    os << ": ";
    if (!choice) {
      os << "left as it is: " << reason;
      return text;
    }
    os << (choice->form == Form::Pairs ? "pairs" : "entries") << " of " << bits
       << (bits == 1 ? " bit, " : " bits, ");
    if (choice->form == Form::Registers)
      os << "in registers";
    else if (choice->bytes == 0)
      os << "in the plain table";
    else
      os << choice->copies << (choice->copies == 1 ? " copy, " : " copies, ")
         << choice->bytes << " bytes";
    return text;
  }

  void rewrite(AllocSharedOp alloc, int64_t bits, ArrayRef<LookupOp> lookups,
               const FillPlace &place, const Choice &choice) {
    OpBuilder builder(place.before);
    LookupOp first = lookups.front();
    Location loc = first.getLoc();
    SharedType type =
        getTableType(choice, bits, alloc.getType().getElementType());
    if (place.needsBarrier)
      SynchronizeOp::create(builder, loc);
    Value table = AllocSharedOp::create(builder, loc, type,
                                        /*offset=*/IntegerAttr());
    ExpandTableOp::create(builder, loc, alloc.getShared(), table,
                          /*slices=*/DenseI64ArrayAttr());
    SynchronizeOp::create(builder, loc);
    for (LookupOp lookup : lookups) {
      builder.setInsertionPoint(lookup);
      Value codes = lookup.getSlices().front(), values;
      if (choice.form == Form::Pairs)
        values = LookupPairsOp::create(builder, lookup.getLoc(),
                                       lookup.getType(), table, codes);
      else
        values = LookupOp::create(builder, lookup.getLoc(), lookup.getType(),
                                  table, codes);
      lookup.replaceAllUsesWith(values);
      lookup.erase();
    }
    (choice.form == Form::Pairs ? numPairs : numCopied) += lookups.size();
    numBytes += choice.bytes;
    tableBytes += choice.bytes;
  }

  /// The bytes of the tables made so far, and of all other tiles.
  /// Of the kernel's schedule, or of the options.
  std::string wantedForm;
  int64_t wantedCopies = 0;
  int64_t tableBytes = 0, sharedBytes = 0;
  std::vector<std::string> decisions;
};

} // namespace
