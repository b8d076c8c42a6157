//===- LowlpCodebookOps.cpp - vectors named by codes ----------------------===//
//
// A switch writes over what the codebook before has in the cache, so a codebook
// is handed on: no use of a value may come after the op that takes it, whether
// that is a switch or a loop which carries it on.
//
//===----------------------------------------------------------------------===//
#include "Part.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/LayoutText.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

/// Of the bits of an index that books are exchanged by.
static constexpr int64_t kMaxStaggerMask = 255;

//===----------------------------------------------------------------------===//
// Loading and switching
//===----------------------------------------------------------------------===//

/// Whether books lie side by side in the view, entry by entry.
static bool areInLines(ViewGlobalOp view, CodebookType codebook) {
  ArrayRef<int64_t> shape = codebook.getShape();
  if (!view || shape.size() != 3 || shape.front() == 1)
    return false;
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  ArrayRef<OpFoldResult> last = ArrayRef(strides).take_back(shape.size());
  return getConstantIntValue(last[0]) == shape[2] &&
         getConstantIntValue(last[1]) == shape[0] * shape[2] &&
         getConstantIntValue(last[2]) == 1;
}

/// Checks that the last dimensions of the view are a codebook whose entries lie
/// side by side, those of a book or those of all books.
static LogicalResult verifySource(Operation *op, Value source,
                                  size_t numOffsets, CodebookType codebook,
                                  bool mayBeInLines = false) {
  auto view = source.getDefiningOp<ViewGlobalOp>();
  if (!view)
    return op->emitOpError("the source must be a result of lowlp.view_global");
  GlobalType type = view.getView().getType();
  ArrayRef<int64_t> shape = codebook.getShape();
  if (type.getElementType() != codebook.getElementType())
    return op->emitOpError("element types must match: the view holds ")
           << type.getElementType() << ", the codebook "
           << codebook.getElementType();
  if (type.getShape().take_back(shape.size()) != shape)
    return op->emitOpError("the last extents of the view must be ")
           << llvm::interleaved(shape, "x") << ", but the view is " << type;
  size_t leading = type.getRank() - shape.size();
  if (numOffsets != leading)
    return op->emitOpError("expected one offset for each of the ")
           << leading << " dimensions in front of the codebook, found "
           << numOffsets;
  if (mayBeInLines && areInLines(view, codebook))
    return success();
  int64_t expected = 1;
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  for (size_t dim = type.getRank(); dim-- > leading;) {
    if (getConstantIntValue(strides[dim]) != expected)
      return op->emitOpError("entries must lie side by side: along dimension ")
             << dim << " of the view the stride must be " << expected;
    expected *= type.getShape()[dim];
  }
  return success();
}

/// Whether all of what `user` does with a codebook keeps it where it is known
/// to be.
static bool isKnownUse(Operation *user) {
  return isa<LookupVectorsOp, SwitchCodebookOp, scf::ForOp, scf::WhileOp,
             scf::YieldOp, scf::ConditionOp>(user);
}

/// Whether `user` takes the codebook, so that it must not be used after.
static bool takes(Operation *user) { return !isa<LookupVectorsOp>(user); }

/// The region of `op` that holds `inner`.
static Region *getRegionOf(Operation *op, Operation *inner) {
  for (Region &region : op->getRegions())
    if (region.findAncestorOpInRegion(*inner))
      return &region;
  return nullptr;
}

/// Whether `use` may run after `taker` has.
static bool mayFollow(Operation *taker, Operation *use) {
  Block *block = taker->getBlock();
  while (!block->findAncestorOpInBlock(*use))
    block = block->getParentOp()->getBlock();
  Operation *first = block->findAncestorOpInBlock(*taker);
  Operation *second = block->findAncestorOpInBlock(*use);
  if (first != second)
    return first->isBeforeInBlock(second);
  // One of two branches.
  if (isa<scf::IfOp>(first))
    return getRegionOf(first, taker) == getRegionOf(first, use);
  return true;
}

/// Whether a loop that the codebook comes from outside of repeats `taker`.
static bool isRepeated(Operation *taker, Value codebook) {
  Region *home = codebook.getParentRegion();
  for (Region *region = taker->getParentRegion(); region != home;
       region = region->getParentRegion())
    if (isa<scf::ForOp, scf::WhileOp>(region->getParentOp()))
      return true;
  return false;
}

/// Checks that nothing uses `codebook` after it was switched.
static LogicalResult verifyUses(Operation *op, Value codebook) {
  for (Operation *taker : codebook.getUsers()) {
    if (!isKnownUse(taker))
      return op->emitOpError("the codebook is used by ")
             << taker->getName()
             << "; only lookups, switches, loops and branches use codebooks";
    if (!takes(taker))
      continue;
    if (!isa<scf::YieldOp, scf::ConditionOp>(taker) &&
        isRepeated(taker, codebook))
      return op->emitOpError("the codebook is taken again by each iteration of "
                             "a loop: the loop must carry it");
    for (Operation *use : codebook.getUsers())
      if (use != taker && mayFollow(taker, use)) {
        InFlightDiagnostic error = op->emitOpError(
            "the codebook is used after another has taken its place");
        error.attachNote(use->getLoc()) << "used here";
        error.attachNote(taker->getLoc()) << "taken here";
        return error;
      }
  }
  return success();
}

bool LoadCodebookOp::isInLines() {
  return areInLines(getSource().getDefiningOp<ViewGlobalOp>(), getType());
}

/// Checks what books that lie side by side, or arrive later, need.
static LogicalResult verifyLines(LoadCodebookOp op) {
  if (!op.isInLines()) {
    if (op.getAsynchronous())
      return op.emitOpError("asynchronous copies take books that lie side by "
                            "side: strides of the view must be [values, books "
                            "* values, 1]");
    return success();
  }
  CodebookCacheAttr cache = op.getCacheAttr();
  if (!cache || cache.getShared() != op.getType().getNumEntries() ||
      cache.getRegisters() != 0)
    return op.emitOpError("books that lie side by side take a cache that has "
                          "all of their ")
           << op.getType().getNumEntries() << " entries in shared memory";
  return success();
}

LogicalResult LoadCodebookOp::verify() {
  CodebookType codebook = getType();
  if (failed(verifySource(*this, getSource(), getOffsets().size(), codebook,
                          /*mayBeInLines=*/true)) ||
      failed(verifyLines(*this)))
    return failure();
  if (bool(getTile()) != (codebook.getSharedEntries() != 0))
    return emitOpError("a codebook has a shared tile where its type has "
                       "entries in shared memory, of which there are ")
           << codebook.getSharedEntries();
  if (getTile()) {
    SharedType tile = cast<SharedType>(getTile().getType());
    int64_t bytes = codebook.getSharedBytes();
    if (!tile.getElementType().isUnsignedInteger(8) || tile.getRank() != 1 ||
        tile.getShape()[0] != bytes)
      return emitOpError("the shared tile must be !lowlp.shared<")
             << bytes << "xui8>, but is " << tile;
  }
  if (CodebookCacheAttr cache = getCacheAttr()) {
    if (codebook.getCache() && codebook.getCache() != cache)
      return emitOpError("asks for ")
             << cache << ", but the codebook has " << codebook.getCache();
    if (!CodebookType::getChecked([&] { return emitOpError(); }, getContext(),
                                  codebook.getShape(),
                                  codebook.getElementType(), cache))
      return failure();
  }
  if (std::optional<ArrayRef<int64_t>> frequencies = getFrequencies()) {
    if (static_cast<int64_t>(frequencies->size()) != codebook.getNumEntries())
      return emitOpError("expected the frequency of each of the ")
             << codebook.getNumEntries() << " entries, found "
             << frequencies->size();
    if (frequencies->back() < 0 || frequencies->front() == 0 ||
        !llvm::is_sorted(*frequencies, std::greater<int64_t>()))
      return emitOpError("frequencies must begin above 0, not increase, and "
                         "stay at least 0: entries are stored most frequent "
                         "first");
  }
  if (std::optional<uint64_t> spread = getSpread(); spread && *spread < 100)
    return emitOpError("spread must be at least 100, hundredths of a pass, but "
                       "is ")
           << *spread;
  return verifyUses(*this, getCodebook());
}

/// Checks entries that were loaded before.
static LogicalResult verifyEntries(SwitchCodebookOp op) {
  CodebookType codebook = op.getType();
  auto tile = cast<TileType>(op.getEntries().getType());
  int64_t values = codebook.getVectorLength();
  int64_t rows = codebook.getNumBooks() * codebook.getNumEntries();
  if (tile.getElementType() != codebook.getElementType() ||
      tile.getRank() != 2 || tile.getShape()[1] != values ||
      tile.getShape()[0] < rows)
    return op.emitOpError("entries must be a tile of at least ")
           << rows << "x" << values << "x" << codebook.getElementType()
           << ", but are " << tile;
  if (!divideRight(tile.getLayout(), Layout::local({1, values})))
    return op.emitOpError("each thread must hold entries whole: their layout "
                          "must end in local(1, ")
           << values << "), but is '" << str(tile.getLayout()) << "'";
  return success();
}

LogicalResult SwitchCodebookOp::verify() {
  if (failed(verifySource(*this, getSource(), getOffsets().size(), getType())))
    return failure();
  if (getEntries() && failed(verifyEntries(*this)))
    return failure();
  // Of an argument of a loop, which no op of ours has made.
  if (failed(verifyUses(*this, getCodebook())))
    return failure();
  return verifyUses(*this, getResult());
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

/// The layout of the vectors of codes held as `codes`.
static Layout getVectors(const Layout &codes, int64_t length, int64_t dim) {
  std::vector<int64_t> vector(codes.rank(), 1);
  vector[dim] = length;
  return codes * Layout::local(vector);
}

int64_t LookupVectorsOp::getBookOf(ArrayRef<int64_t> index) {
  auto book = static_cast<int64_t>(getBook());
  std::optional<uint64_t> dim = getBookAlong();
  int64_t exchanged = 0;
  if (std::optional<ArrayRef<int64_t>> staggered = getStaggered())
    for (auto [bit, mask] : llvm::enumerate(staggered->drop_front())) {
      auto chosen = static_cast<uint64_t>(index[staggered->front()] & mask);
      exchanged |= static_cast<int64_t>(llvm::popcount(chosen) % 2) << bit;
    }
  return dim ? book + (index[*dim] ^ exchanged) : book ^ exchanged;
}

Layout LookupVectorsOp::getPartLayout() {
  return *findPart(getCodes().getType().getLayout(),
                   getPart() ? static_cast<int64_t>(getPart()->size()) : 0);
}

SmallVector<int64_t> LookupVectorsOp::getPartLocals() {
  ArrayRef<int64_t> part = getPart().value_or(ArrayRef<int64_t>());
  return llvm::to_vector(
      lowlp::getPartLocals(getCodes().getType().getLayout(), part.vec()));
}

/// Checks by what the books of codes of the shape are exchanged.
static LogicalResult verifyStagger(LookupVectorsOp op,
                                   const std::vector<int64_t> &shape) {
  std::optional<ArrayRef<int64_t>> staggered = op.getStaggered();
  if (!staggered)
    return success();
  std::optional<uint64_t> along = op.getBookAlong();
  if (staggered->size() < 2)
    return op.emitOpError("staggered must name a dimension and at least one "
                          "mask, but has ")
           << staggered->size() << " numbers";
  int64_t dim = staggered->front();
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()) ||
      (along && dim == static_cast<int64_t>(*along)))
    return op.emitOpError("staggered must name another dimension than "
                          "book_along, at least 0 and less than ")
           << shape.size() << ", but names " << dim;
  for (int64_t mask : staggered->drop_front())
    if (mask < 1 || mask > kMaxStaggerMask)
      return op.emitOpError("masks of staggered must be 1 to ")
             << kMaxStaggerMask << ", but one is " << mask;
  int64_t exchanged = int64_t(1) << (staggered->size() - 1);
  int64_t books = op.getCodebook().getType().getNumBooks();
  if (!along && books % exchanged != 0)
    return op.emitOpError("staggered exchanges ")
           << exchanged << " neighbours, which do not divide the " << books
           << " books";
  if (along && shape[*along] % exchanged != 0)
    return op.emitOpError("staggered exchanges the books of ")
           << exchanged << " neighbours, which do not divide the "
           << shape[*along] << " along book_along";
  return success();
}

/// Checks which books codes of the shape are looked up in.
static LogicalResult verifyBooks(LookupVectorsOp op,
                                 const std::vector<int64_t> &shape) {
  int64_t books = op.getCodebook().getType().getNumBooks();
  auto first = static_cast<int64_t>(op.getBook()), last = first;
  if (std::optional<uint64_t> dim = op.getBookAlong()) {
    if (*dim >= shape.size())
      return op.emitOpError("book_along must be at least 0 and less than ")
             << shape.size() << ", but is " << static_cast<int64_t>(*dim);
    last += shape[*dim] - 1;
  }
  if (failed(verifyStagger(op, shape)))
    return failure();
  if (first < 0 || last >= books)
    return op.emitOpError("looks up in books ")
           << first << " to " << last << ", but there are " << books;
  return success();
}

namespace {

/// A tile of values as matrices of 8 rows of an entry each, and who finds
/// these.
struct MatricesOfEntries {
  /// Of (warp, register) the place of the matrix; of (thread, local) the code.
  Layout matrices, codes;
  /// The dimension of the codes along which a matrix has 8 of them.
  int64_t dim;

  /// Whether lanes 8 m to 8 m + 7 of every warp have the codes of matrix m from
  /// register `first` on in local `local`.
  bool areFoundBy(int64_t local, int64_t first, int64_t count) const {
    constexpr int64_t lanesPerWarp = 32, rows = 8;
    for (int64_t w = 0; w < matrices.numThreads(); ++w)
      for (int64_t lane = 0; lane < rows * count; ++lane) {
        std::vector<int64_t> code = matrices.evaluate(w, first + lane / rows);
        code[dim] = rows * code[dim] + lane % rows;
        if (codes.evaluate(w * lanesPerWarp + lane, local) != code)
          return false;
      }
    return true;
  }
};

} // namespace

std::optional<SmallVector<int64_t>>
LookupVectorsOp::findMatrices(const Layout &result) {
  constexpr int64_t entryBytes = 16;
  CodebookType codebook = getCodebook().getType();
  Layout part = getPartLayout();
  auto along = static_cast<int64_t>(getAlong());
  bool isWhole = codebook.getRegisterEntries() == 0 &&
                 codebook.getSharedEntries() == codebook.getNumEntries();
  if (codebook.getEntryBytes() != entryBytes || getVectorLength() != 8 ||
      !isWhole || part.rank() != 2 || along > 1 ||
      getVectors(part, getVectorLength(), along).shape() != result.shape() ||
      part.numThreads() != result.numThreads())
    return std::nullopt;
  Layout unit = along == 1
                    ? Layout::spatial({8, 4}) * Layout::local({1, 2})
                    : Layout::columnSpatial({4, 8}) * Layout::local({2, 1});
  Result<Layout> matrices = divideRight(result, unit);
  if (!matrices)
    return std::nullopt;
  MatricesOfEntries entries{*matrices, part, 1 - along};
  for (int64_t count : {4, 2, 1}) {
    SmallVector<int64_t> found;
    if (matrices->numLocals() % count != 0)
      continue;
    for (int64_t i = 0; i < matrices->numLocals(); i += count)
      for (int64_t local = 0; local < part.numLocals(); ++local)
        if (entries.areFoundBy(local, i, count)) {
          found.push_back(local);
          break;
        }
    if (static_cast<int64_t>(found.size()) * count == matrices->numLocals())
      return found;
  }
  return std::nullopt;
}

LogicalResult LookupVectorsOp::verify() {
  TileType codes = getCodes().getType();
  CodebookType codebook = getCodebook().getType();
  Type code = codes.getElementType(), entry = codebook.getElementType();
  if (!code.isUnsignedInteger())
    return emitOpError("codes must be unsigned integers, but are ") << code;
  FailureOr<Layout> part = verifyPart(*this, "the codes", codes,
                                      getPart().value_or(ArrayRef<int64_t>()));
  if (failed(part) || failed(verifyBooks(*this, part->shape())))
    return failure();
  auto along = static_cast<int64_t>(getAlong());
  if (along < 0 || along >= part->rank())
    return emitOpError("along must be at least 0 and less than ")
           << part->rank() << ", but is " << along;
  if (getType().getElementType() != entry)
    return emitOpError("values must have the type of the entries, ")
           << entry << ", but are " << getType().getElementType();
  Layout expected = getVectors(*part, getVectorLength(), along);
  if (getType().getLayout() != expected && !findMatrices(getType().getLayout()))
    return emitOpError("the layout of the result must be '")
           << str(expected) << "', but is '" << str(getType().getLayout())
           << "'";
  return success();
}

std::optional<SmallVector<Layout>>
LookupVectorsOp::getOperandLayouts(const Layout &result) {
  if (getPart())
    return std::nullopt;
  std::vector<int64_t> vector(result.rank(), 1);
  vector[getAlong()] = getVectorLength();
  Result<Layout> codes = divideRight(result, Layout::local(vector));
  if (!codes)
    return std::nullopt;
  return SmallVector<Layout>{*codes};
}

std::optional<Layout> LookupVectorsOp::getResultLayout(unsigned,
                                                       const Layout &operand) {
  if (getPart())
    return std::nullopt;
  return getVectors(operand, getVectorLength(),
                    static_cast<int64_t>(getAlong()));
}
