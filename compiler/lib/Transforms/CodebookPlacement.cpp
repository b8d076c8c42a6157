//===- CodebookPlacement.cpp - what goes where, and why -------------------===//
#include "CodebookPlacement.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kPhaseBytes = 128;
/// In a line of so many bytes a code of 8 bits is a byte of the address.
static constexpr int64_t kByteLine = 256;
/// What global memory is read in.
static constexpr int64_t kSectorBytes = 32;

int64_t lowlp::getLanesPerPhase(int64_t entryBytes) {
  return kPhaseBytes / std::clamp<int64_t>(entryBytes, 4, 16);
}

/// Passes of a phase in hundredths, at random entries, where `slots` places of
/// the banks hold copies of one entry or entries of different books: averages
/// over random entries, by the logarithm of the slots.
static int64_t getPasses(int64_t entryBytes, int64_t slots) {
  static constexpr int64_t of16[] = {254, 237, 194, 100};
  static constexpr int64_t of8[] = {292, 287, 264, 200, 100};
  static constexpr int64_t of4[] = {315, 327, 322, 293, 200, 100};
  int64_t lanes = getLanesPerPhase(entryBytes);
  ArrayRef<int64_t> passes(of4);
  if (lanes == 8)
    passes = of16;
  else if (lanes == 16)
    passes = of8;
  int64_t found = passes[llvm::Log2_64(std::min(lanes, slots))];
  // Entries of 32 bytes are read by halves, which lie 32 bytes apart.
  return entryBytes > 16 ? std::max<int64_t>(found, 200) : found;
}

/// How many copies the lanes of a phase want.
static int64_t getWantedCopies(const CodebookDemand &demand) {
  int64_t lanes = getLanesPerPhase(demand.codebook.getEntryBytes());
  return llvm::bit_ceil(
      static_cast<uint64_t>(llvm::divideCeil(lanes, demand.booksPerPhase)));
}

/// Without conflicts books lie within lines, in different banks; else entries
/// are spread over all banks.
static int64_t getPasses(const CodebookDemand &demand, int64_t copies) {
  int64_t bytes = demand.codebook.getEntryBytes();
  if (demand.spread != 0 && copies == 1)
    return demand.spread;
  return getPasses(bytes, copies >= getWantedCopies(demand)
                              ? getLanesPerPhase(bytes)
                              : copies);
}

/// The bytes that an entry of all books takes with so many copies.
static int64_t getEntryOfBooks(const CodebookDemand &demand, int64_t copies) {
  return demand.codebook.getNumBooks() * copies *
         demand.codebook.getEntryBytes();
}

/// `shared` entries in `copies`, in lines of at least `leastLine` bytes.
static CodebookCacheAttr makeCache(const CodebookDemand &demand,
                                   int64_t registers, int64_t shared,
                                   int64_t copies = 1, int64_t leastLine = 0) {
  MLIRContext *context = demand.codebook.getContext();
  if (shared == 0 && registers == 0)
    return {};
  if (shared == 0)
    return CodebookCacheAttr::get(context, registers, 0, 1, 0, 0);
  int64_t copiesBytes = copies * demand.codebook.getEntryBytes();
  bool hasBooks = demand.codebook.getNumBooks() > 1;
  if (copies >= getWantedCopies(demand))
    return CodebookCacheAttr::get(
        context, registers, shared, copies,
        std::max(leastLine, getEntryOfBooks(demand, copies)),
        hasBooks ? copiesBytes : 0);
  return CodebookCacheAttr::get(context, registers, shared, copies, copiesBytes,
                                hasBooks ? shared * copiesBytes : 0);
}

/// Entries that get more accesses than the mean and three standard deviations
/// (VQ-LLM, section V).
static int64_t countHot(ArrayRef<int64_t> frequencies) {
  if (frequencies.empty())
    return 0;
  double sum = 0, squares = 0;
  for (int64_t frequency : frequencies) {
    auto value = static_cast<double>(frequency);
    sum += value;
    squares += value * value;
  }
  auto count = static_cast<double>(frequencies.size());
  double mean = sum / count;
  double limit = mean + 3 * std::sqrt(squares / count - mean * mean);
  int64_t hot = llvm::count_if(frequencies, [&](int64_t frequency) {
    return static_cast<double>(frequency) > limit;
  });
  return std::min(hot, CodebookCacheAttr::kMaxRegisterEntries);
}

/// Of 1000 accesses, those of the first `count` entries.
static int64_t getHits(const CodebookDemand &demand, int64_t count) {
  int64_t entries = demand.codebook.getNumEntries();
  if (demand.frequencies.empty())
    return 1000 * count / entries;
  double all = 0, first = 0;
  for (auto [e, frequency] : llvm::enumerate(demand.frequencies)) {
    all += static_cast<double>(frequency);
    if (static_cast<int64_t>(e) < count)
      first += static_cast<double>(frequency);
  }
  return std::llround(1000 * first / all);
}

/// Whether more copies take so much fewer passes that blocks which share an SM
/// should have the less memory for them: by a twentieth.
static bool isWorthCopies(int64_t passes, int64_t passesOfFewer) {
  return 20 * passes <= 19 * passesOfFewer;
}

/// All entries in shared memory once, as codes were chosen for it.
static std::optional<CodebookChoice>
chooseSpread(const CodebookDemand &demand) {
  int64_t entries = demand.codebook.getNumEntries();
  if (entries * getEntryOfBooks(demand, 1) > demand.freeBytes)
    return std::nullopt;
  return CodebookChoice{
      makeCache(demand, 0, entries),
      llvm::formatv("codes are spread for 1 copy, which the {0} lanes of a "
                    "phase read in {1:F2} passes by the kernel's count",
                    getLanesPerPhase(demand.codebook.getEntryBytes()),
                    static_cast<double>(demand.spread) / 100)
          .str()};
}

/// All entries in shared memory, in the copies that take the fewest passes.
static std::optional<CodebookChoice> chooseAll(const CodebookDemand &demand) {
  if (demand.spread != 0)
    return chooseSpread(demand);
  int64_t entries = demand.codebook.getNumEntries();
  int64_t lanes = getLanesPerPhase(demand.codebook.getEntryBytes());
  int64_t wanted = getWantedCopies(demand);
  int64_t copies = 0;
  for (int64_t c = 1; c <= wanted; c *= 2)
    if (entries * getEntryOfBooks(demand, c) <= demand.freeBytes &&
        (copies == 0 ||
         isWorthCopies(getPasses(demand, c), getPasses(demand, copies))))
      copies = c;
  if (copies == 0)
    return std::nullopt;
  bool hasByteLines =
      demand.hasByteCodes && entries * kByteLine <= demand.freeBytes;
  CodebookChoice choice{
      makeCache(demand, 0, entries, copies, hasByteLines ? kByteLine : 0), ""};
  choice.reason =
      llvm::formatv("{0} lanes of a phase read {1} {2}, so that {3} {4} no "
                    "bank conflicts; {5} fit into {6} bytes",
                    lanes, demand.booksPerPhase,
                    demand.booksPerPhase == 1 ? "book" : "books", wanted,
                    wanted == 1 ? "copy has" : "copies have",
                    copies == wanted ? std::string("these")
                                     : std::to_string(copies),
                    demand.freeBytes)
          .str();
  return choice;
}

static CodebookChoice chooseAuto(const CodebookDemand &demand) {
  if (std::optional<CodebookChoice> all = chooseAll(demand))
    return *all;
  int64_t entries = demand.codebook.getNumEntries();
  int64_t line = getEntryOfBooks(demand, 1);
  int64_t fitting = std::min(entries, demand.freeBytes / line);
  std::string needs = llvm::formatv("{0} bytes do not fit into {1}",
                                    entries * line, demand.freeBytes)
                          .str();
  if (demand.frequencies.empty())
    return {{}, needs + ", and no frequencies are known: L1 is as fast"};
  int64_t hits = getHits(demand, fitting);
  std::string share =
      llvm::formatv("; the first {0} entries get {1} of 1000 accesses", fitting,
                    hits)
          .str();
  if (2 * hits * entries < 3000 * fitting)
    return {{}, needs + share + ", hardly more than others: L1 is as fast"};
  return {makeCache(demand, 0, fitting), needs + share};
}

Result<CodebookChoice> lowlp::chooseCache(const CodebookDemand &demand,
                                          CodebookPlacement placement) {
  int64_t entries = demand.codebook.getNumEntries();
  int64_t line = getEntryOfBooks(demand, 1);
  std::string name =
      "codebooks = " + stringifyCodebookPlacement(placement).str();
  switch (placement) {
  case CodebookPlacement::Auto:
    return chooseAuto(demand);
  case CodebookPlacement::GC:
    return CodebookChoice{{}, name};
  case CodebookPlacement::SC:
    if (entries * line > demand.freeBytes)
      return Error{
          llvm::formatv("{0} needs {1} bytes of shared memory, but {2} "
                        "are free",
                        name, entries * line, demand.freeBytes)
              .str()};
    return CodebookChoice{makeCache(demand, 0, entries), name};
  case CodebookPlacement::O1:
  case CodebookPlacement::O2:
  case CodebookPlacement::O3:
  case CodebookPlacement::O4:
    break;
  }
  int64_t registers =
      placement == CodebookPlacement::O1 ? 0 : countHot(demand.frequencies);
  int64_t fitting = std::min(entries, demand.freeBytes / line);
  return CodebookChoice{makeCache(demand, registers, fitting), name};
}

/// Passes of a phase with this cache. Where lines have an entry of all books,
/// lanes that read one book meet unless they read different copies.
static int64_t getPasses(const CodebookDemand &demand,
                         CodebookCacheAttr cache) {
  int64_t wanted = getWantedCopies(demand), copies = cache.getCopies();
  if (demand.codebook.getNumBooks() > 1 && cache.areBooksInLines() &&
      demand.booksPerPhase > 1 && copies < wanted)
    return 100 * wanted / copies;
  return getPasses(demand, copies);
}

CacheEstimateAttr lowlp::estimateCache(const CodebookDemand &demand,
                                       const CodebookChoice &choice) {
  CodebookType codebook = demand.codebook.cloneWith(choice.cache);
  int64_t registers = codebook.getRegisterEntries();
  int64_t shared = codebook.getSharedEntries();
  int64_t inRegisters = getHits(demand, registers);
  int64_t inShared = getHits(demand, std::max(registers, shared)) - inRegisters;
  int64_t inGlobal = 1000 - inRegisters - inShared;
  int64_t passes = shared == 0 ? 100 : getPasses(demand, choice.cache);
  int64_t entryBytes = codebook.getEntryBytes();
  MLIRContext *context = codebook.getContext();
  return CacheEstimateAttr::get(
      context, inRegisters, inShared, inGlobal, passes,
      codebook.getNumBooks() * (registers + shared) * entryBytes,
      inGlobal * static_cast<int64_t>(llvm::alignTo(entryBytes, kSectorBytes)),
      StringAttr::get(context, choice.reason));
}
