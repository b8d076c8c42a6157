//===- PipelinedLoads.cpp - which loads of a loop get stages --------------===//
#include "PipelinedLoads.h"

#include "lowlp/Analysis/LinearForm.h"
#include "lowlp/Analysis/SameInCluster.h"
#include "lowlp/Analysis/TrailingZeros.h"
#include "lowlp/Analysis/ViewFormulas.h"
#include "lowlp/Analysis/WrittenMemory.h"
#include "lowlp/Layout/LayoutAlgebra.h"
#include "lowlp/Layout/Result.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace lowlp;

/// What tensor copies move at once, and where they may begin in shared memory.
static constexpr int64_t kChunkBytes = 16;
static constexpr int64_t kPlaceBytes = 128;
/// Of what they copy at once, but for rows, which `lowlp.copy_tensor` divides.
static constexpr int64_t kMaxExtent = 256;
static constexpr size_t kMaxRank = 5;
/// What the swizzle of tensor copies covers at most, and after how many rows it
/// begins anew.
static constexpr int64_t kSwizzledBytes = 128;
static constexpr int64_t kSwizzledRows = 8;

//===----------------------------------------------------------------------===//
// Rings
//===----------------------------------------------------------------------===//

static int64_t getElementBytes(LoadGlobalOp load) {
  return *getElementBits(load.getTile().getType().getElementType()) / 8;
}

int64_t StagedLoad::getBytes() const {
  LoadGlobalOp op = load;
  int64_t bits = *getElementBits(op.getTile().getType().getElementType());
  for (int64_t extent : shape)
    bits *= extent;
  return llvm::divideCeil(bits, 8);
}

int64_t PipelinedLoads::getStageBytes() const {
  int64_t bytes = 0;
  for (const StagedLoad &load : staged)
    bytes += load.getBytes();
  return bytes;
}

/// Whether a warp holds the tile in matrices of 8 rows of 16 bytes, of elements
/// of `bits`, with those of a register side by side along dimension
/// `inRegister`, the last one or that before it.
static bool holdsMatrices(TileType tile, int64_t inRegister, int64_t bits) {
  int64_t rank = tile.getRank();
  if (rank < 2 || *getElementBits(tile.getElementType()) != bits)
    return false;
  int64_t across = 2 * rank - 3 - inRegister;
  std::vector<int64_t> lanes(rank, 1), elements(rank, 1);
  lanes[across] = 8;
  lanes[inRegister] = 4;
  elements[inRegister] = 32 / bits;
  Layout threads = across < inRegister ? Layout::spatial(lanes)
                                       : Layout::columnSpatial(lanes);
  return bool(divideRight(tile.getLayout(), threads * Layout::local(elements)));
}

/// Whether `ldmatrix` reads rows of the tile along its last dimension.
static bool readsRows(TileType tile) {
  // Words are those of planes.
  return holdsMatrices(tile, tile.getRank() - 1, /*bits=*/16) ||
         holdsMatrices(tile, tile.getRank() - 1, /*bits=*/8) ||
         (tile.getElementType().isUnsignedInteger(32) &&
          holdsMatrices(tile, tile.getRank() - 1, /*bits=*/32));
}

/// Whether `ldmatrix.trans` does.
static bool readsRowsAcross(TileType tile) {
  return holdsMatrices(tile, tile.getRank() - 2, /*bits=*/16);
}

SharedType StagedLoad::getRingType(int64_t numStages) const {
  LoadGlobalOp op = load;
  TileType tile = op.getTile().getType();
  std::vector<int64_t> places = {numStages};
  // Places that are too small for a tensor copy to begin at the next one are
  // some apart.
  int64_t copies = kPlaceBytes / std::gcd(kPlaceBytes, getBytes());
  if (copies > 1)
    places.push_back(copies);
  llvm::append_range(places, shape);
  size_t rank = places.size();
  int64_t bits = *getElementBits(tile.getElementType());
  int64_t rowBytes = places.back() * bits / 8;
  auto make = [&](const SharedLayout &layout) {
    return SharedType::get(op.getContext(), tile.getElementType(), layout);
  };
  // Longer rows are cut into panels, each of them whole periods of the swizzle.
  int64_t panelBytes = std::min(rowBytes, kSwizzledBytes);
  bool hasPanels =
      rowBytes % kSwizzledBytes == 0 &&
      (rowBytes == kSwizzledBytes || places[rank - 2] % kSwizzledRows == 0);
  bool isSwizzled = (readsRows(tile) || readsRowsAcross(tile)) &&
                    (rowBytes == 32 || rowBytes == 64 || hasPanels);
  if (!isSwizzled)
    return make(*SharedLayout::plain(Layout::local(places)));
  // PTX ISA, "Shared Memory Matrix Layout".
  std::vector<int64_t> outer(places), inner(rank, 1);
  outer[rank - 2] = 1;
  outer[rank - 1] = rowBytes / panelBytes;
  inner[rank - 1] = kChunkBytes * 8 / bits;
  int64_t logStep = panelBytes == 128 ? 0 : panelBytes == 64 ? 1 : 2;
  return make(*SharedLayout::swizzled(
      Layout::local(outer),
      Layout::local({places[rank - 2], panelBytes / kChunkBytes}),
      /*dim=*/1, logStep, Layout::local(inner)));
}

//===----------------------------------------------------------------------===//
// Which loads
//===----------------------------------------------------------------------===//

/// Adds to `ops` what of the body of `loop` computes `value`, if that is
/// arithmetic on the induction variable and on values from before the loop.
static bool collectAddress(Value value, scf::ForOp loop,
                           llvm::SetVector<Operation *> &ops) {
  if (value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getParentOp() != loop || op->getNumRegions() != 0 ||
      op->getNumResults() != 1 || !isMemoryEffectFree(op))
    return false;
  for (Value operand : op->getOperands())
    if (!collectAddress(operand, loop, ops))
      return false;
  ops.insert(op);
  return true;
}

/// How remarks call a parameter of the kernel.
static std::string getParameterName(KernelOp kernel, BlockArgument argument) {
  auto name = kernel.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  LowlpDialect::kNameAttrName);
  return name ? name.str()
              : "parameter " + std::to_string(argument.getArgNumber());
}

/// Why what lies after `pointer` may change while the loop runs; empty where
/// it is a parameter of the kernel through which it writes nothing.
static std::string findWriter(KernelOp kernel, Value pointer) {
  auto argument = dyn_cast<BlockArgument>(pointer);
  if (!argument || argument.getOwner() != &kernel.getBody().front())
    return "it reads memory that is no parameter of the kernel";
  if (isWritten(kernel, argument.getArgNumber()))
    return "the kernel may write to " + getParameterName(kernel, argument) +
           ", which it reads";
  return "";
}

Result<StagedLoad> lowlp::getStagedLoad(LoadGlobalOp load, scf::ForOp loop) {
  auto kernel = loop->getParentOfType<KernelOp>();
  auto view = load.getSource().getDefiningOp<ViewGlobalOp>();
  if (!view || !loop.isDefinedOutsideOfLoop(view))
    return Error{"its view is made in the loop"};
  if (std::string writer = findWriter(kernel, view.getSource());
      !writer.empty())
    return Error{writer};
  if (*getElementBits(load.getTile().getType().getElementType()) % 8 != 0)
    return Error{"its elements are no whole bytes"};
  StagedLoad staged;
  staged.load = load;
  ArrayRef<int64_t> extents = load.getTile().getType().getShape();
  size_t rank = load.getOffsets().size();
  staged.shape.assign(rank - extents.size(), 1);
  llvm::append_range(staged.shape, extents);
  staged.parts.push_back({load, SmallVector<int64_t>(rank, 0)});
  llvm::SetVector<Operation *> ops;
  for (Value offset : load.getOffsets())
    if (!collectAddress(offset, loop, ops))
      return Error{"its offsets do not follow from the induction variable and "
                   "what is known before the loop"};
  staged.addressOps = ops.takeVector();
  auto argument = cast<BlockArgument>(view.getSource());
  staged.isConstant = bool(kernel.getArgAttr(argument.getArgNumber(),
                                             LowlpDialect::kConstantAttrName));
  return staged;
}

//===----------------------------------------------------------------------===//
// Neighbours
//===----------------------------------------------------------------------===//

std::optional<SmallVector<int64_t>> lowlp::getDistance(LoadGlobalOp a,
                                                       LoadGlobalOp b) {
  if (a.getSource() != b.getSource() || a.getInBounds() != b.getInBounds() ||
      a.getTile().getType() != b.getTile().getType())
    return std::nullopt;
  SmallVector<int64_t> distance;
  for (auto [from, to] : llvm::zip_equal(a.getOffsets(), b.getOffsets())) {
    std::optional<int64_t> along =
        LinearForm::of(to).minus(LinearForm::of(from));
    if (!along)
      return std::nullopt;
    distance.push_back(*along);
  }
  return distance;
}

/// Whether two copies of such extents may be one along dimension `dim`.
static bool mayJoin(const StagedLoad &first, const StagedLoad &second,
                    size_t dim) {
  if (dim + 1 < first.shape.size())
    return first.shape[dim] + second.shape[dim] <= kMaxExtent;
  // Rows of 32, 64 and 128 bytes have a swizzle.
  LoadGlobalOp load = first.load;
  return readsRows(load.getTile().getType()) &&
         first.shape[dim] == second.shape[dim] &&
         2 * first.shape[dim] * getElementBytes(load) <= kSwizzledBytes;
}

/// Adds `second` to `first` if the two are one box of the view: the same, or
/// the second after the first along dimension `dim` if there is one.
static bool join(StagedLoad &first, const StagedLoad &second,
                 std::optional<size_t> dim) {
  std::optional<SmallVector<int64_t>> distance =
      getDistance(first.load, second.load);
  if (!distance)
    return false;
  for (size_t d = 0; d < first.shape.size(); ++d) {
    bool fits =
        d == dim ? (*distance)[d] == first.shape[d] && mayJoin(first, second, d)
                 : (*distance)[d] == 0 && first.shape[d] == second.shape[d];
    if (!fits)
      return false;
  }
  if (dim)
    first.shape[*dim] += second.shape[*dim];
  for (StagedLoad::Part part : second.parts) {
    for (auto [position, along] : llvm::zip_equal(part.position, *distance))
      position += along;
    first.parts.push_back(std::move(part));
  }
  return true;
}

/// Joins all that lie one after the other along the dimension `fromLast` from
/// the last, or that are the same for 0. Returns whether there were any.
static bool joinAlong(SmallVectorImpl<StagedLoad> &staged, size_t fromLast) {
  bool joined = false;
  for (auto *first = staged.begin(); first != staged.end(); ++first) {
    size_t rank = first->shape.size();
    std::optional<size_t> dim;
    if (fromLast > 0)
      dim = rank - fromLast;
    for (auto *second = first + 1;
         rank >= fromLast && second != staged.end();) {
      bool isOne = join(*first, *second, dim);
      second = isOne ? staged.erase(second) : second + 1;
      joined |= isOne;
    }
  }
  return joined;
}

/// Joins copies of the same part of a view, and of neighbouring ones; what lies
/// closest in memory first.
static void joinNeighbours(SmallVectorImpl<StagedLoad> &staged) {
  joinAlong(staged, 0);
  while (joinAlong(staged, 1)) {
  }
  for (size_t fromLast = 2; fromLast <= kMaxRank; ++fromLast)
    joinAlong(staged, fromLast);
}

/// Leaves out dimensions of extent 1 that the loaded tiles do not have.
static void trim(StagedLoad &staged) {
  size_t least = staged.load.getTile().getType().getShape().size();
  while (staged.shape.size() > least && staged.shape.front() == 1) {
    staged.shape.erase(staged.shape.begin());
    for (StagedLoad::Part &part : staged.parts)
      part.position.erase(part.position.begin());
  }
}

//===----------------------------------------------------------------------===//
// How they are copied
//===----------------------------------------------------------------------===//

std::string lowlp::findObstacle(LoadGlobalOp load) {
  auto kernel = load->getParentOfType<KernelOp>();
  auto view = load.getSource().getDefiningOp<ViewGlobalOp>();
  auto argument = cast<BlockArgument>(view.getSource());
  std::string pointer = getParameterName(kernel, argument);
  auto align = kernel.getArgAttrOfType<IntegerAttr>(
      argument.getArgNumber(), LowlpDialect::kAlignAttrName);
  if (!align || align.getInt() % kChunkBytes != 0)
    return pointer + " promises no alignment of 16 bytes";
  int64_t bytes = getElementBytes(load);
  if (view.getView().getType().getRank() > int64_t(kMaxRank))
    return "the view of " + pointer + " has more than 5 dimensions";
  SmallVector<OpFoldResult> strides = view.getMixedStrides();
  if (!view.isRowMajor() && getConstantIntValue(strides.back()) != 1)
    return "the last stride of " + pointer + " is not 1";
  ViewFormulas formulas = getViewFormulas(view, kernel);
  auto isKnown = [](AffineExpr formula) { return bool(formula); };
  if (!llvm::all_of(formulas.extents, isKnown) ||
      !llvm::all_of(formulas.strides, isKnown))
    return "extents and strides of " + pointer +
           " are no affine functions of the parameters";
  TrailingZeros zeros;
  for (unsigned stride : ArrayRef(zeros.ofStrides(view)).drop_back())
    if ((bytes << stride) % kChunkBytes != 0)
      return "a stride of " + pointer + " may be no multiple of 16 bytes";
  if (getPowerOf2Divisor(load.getOffsets().back()) * bytes % kChunkBytes != 0)
    return "an offset in " + pointer + " may be no multiple of 16 bytes";
  ArrayRef<int64_t> shape = load.getTile().getType().getShape();
  if (llvm::any_of(shape.drop_back(),
                   [](int64_t extent) { return extent > kMaxExtent; }))
    return "an extent of the part of " + pointer + " is more than " +
           std::to_string(kMaxExtent);
  if (shape.back() * bytes % kChunkBytes != 0)
    return "rows of the part of " + pointer + " are no multiples of 16 bytes";
  if (shape.back() > kMaxExtent && shape.back() * bytes % kPlaceBytes != 0)
    return "rows of the part of " + pointer + " have more than " +
           std::to_string(kMaxExtent) +
           " elements and are no multiples of 128 bytes";
  return "";
}

/// Whether a part of the shape divides among blocks as `lowlp.copy_tensor`
/// does.
static bool dividesAmong(const StagedLoad &staged, int64_t numBlocks) {
  ArrayRef<int64_t> shape = staged.shape;
  LoadGlobalOp load = staged.load;
  int64_t rowBytes = shape.back() * getElementBytes(load);
  if (rowBytes > kSwizzledBytes || shape.back() > kMaxExtent)
    return false;
  bool isSwizzled =
      bool(staged.getRingType(/*numStages=*/2).getLayout().swizzle());
  int64_t alignBytes = isSwizzled
                           ? std::max(kPlaceBytes, kSwizzledRows * rowBytes)
                           : kPlaceBytes;
  for (size_t d = 0; d + 1 < shape.size(); ++d)
    if (shape[d] % numBlocks == 0) {
      int64_t bytes = getElementBytes(load) * shape[d] / numBlocks;
      for (int64_t extent : shape.drop_front(d + 1))
        bytes *= extent;
      return bytes % alignBytes == 0;
    }
  return false;
}

std::string lowlp::findMulticastObstacle(const StagedLoad &staged,
                                         scf::ForOp loop, int64_t numBlocks) {
  SameInCluster same(numBlocks);
  auto has = [&](Value value) { return same.has(value); };
  // Places of the ring must be filled in the same order too.
  for (auto around = loop; around;
       around = dyn_cast<scf::ForOp>(around->getParentOp()))
    if (!has(around.getInductionVar()))
      return "the blocks of a cluster may make other iterations";
  LoadGlobalOp load = staged.load;
  if (!llvm::all_of(load.getOffsets(), has) || !has(load.getSource()))
    return "it is not the same for all blocks of a cluster";
  if (!dividesAmong(staged, numBlocks))
    return "it does not divide into parts for " + std::to_string(numBlocks) +
           " blocks";
  return "";
}

PipelinedLoads lowlp::findPipelinedLoads(scf::ForOp loop,
                                         bool hasTensorCopies) {
  PipelinedLoads loads;
  loop->walk([&](LoadGlobalOp load) {
    if (load->getBlock() != loop.getBody())
      loads.left.emplace_back(
          load, "it stands in a " +
                    load->getParentOp()->getName().getStringRef().str() +
                    " of the loop");
    else if (Result<StagedLoad> staged = getStagedLoad(load, loop))
      loads.staged.push_back(*staged);
    else
      loads.left.emplace_back(load, staged.error());
  });
  loads.byTensorCopies = hasTensorCopies;
  for (const StagedLoad &staged : loads.staged)
    if (loads.byTensorCopies) {
      loads.whyNotTensorCopies = findObstacle(staged.load);
      loads.byTensorCopies = loads.whyNotTensorCopies.empty();
    }
  joinNeighbours(loads.staged);
  llvm::for_each(loads.staged, trim);
  return loads;
}
