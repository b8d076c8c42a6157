//===- MatrixAccess.cpp - tiles that ldmatrix and stmatrix move -----------===//
//
// Tilus, appendix C: an instruction fits where the layout of the tile divides
// by what the instruction gives a warp. One matrix, a register of 32 bits in
// each lane, is along dimensions p and q, with e elements in 32 bits,
//
//   tile = outer . matrix,   matrix = lanes (p: 8, q: 4), elements (q: e)
//
// and its rows of 16 bytes lie in shared memory along
//
//   q   8 rows of 4 e elements      ldmatrix
//   p   8 rows of 8 elements        ldmatrix.trans, for e = 2
//
// outer maps (warp, register) to the place of a matrix. Instruction n of a warp
// moves registers C n to C n + C - 1, C being 1, 2 or 4, and lane 8 m + r gives
// the address of row r of the matrix in register C n + m. So addresses are
// those of a layout in which that lane holds that row:
//
//   rows = threads (warp, 4 / C replicas, m: C, r: 8), locals (n, row)
//
//===----------------------------------------------------------------------===//
#include "MatrixAccess.h"

#include "LowlpToThread.h"
#include "TileBounds.h"
#include "TilePositions.h"

#include "lowlp/IR/Simt.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

static constexpr int64_t kRowBits = 128;
static constexpr int64_t kRowsPerMatrix = 8;
static constexpr int64_t kLanesPerRow = 4;
static constexpr int64_t kMostMatrices = 4;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// What one register of a warp holds of a matrix whose elements lie in
/// registers along `inRegister`, and in lanes along `across` and `inRegister`.
static Layout getMatrixLayout(int64_t rank, int64_t across, int64_t inRegister,
                              int64_t elements) {
  std::vector<std::vector<int64_t>> extents(rank);
  extents[across] = {kRowsPerMatrix};
  extents[inRegister] = {kLanesPerRow, elements};
  int first = across < inRegister ? 1 : 0;
  Digit slow{across < inRegister ? 0 : 2, kRowsPerMatrix};
  Digit fast{first, kLanesPerRow};
  return *Layout::fromModes(extents, {slow, fast},
                            {Digit{first + 1, elements}});
}

namespace {

/// A layout's modes with those of the local index cut into factors of 2, which
/// may then be dealt out one by one.
struct CutModes {
  explicit CutModes(const Layout &layout);
  /// Adds a mode inside of all others of `dim`, and gives its digit.
  Digit append(int64_t dim, int64_t extent);
  Result<Layout> build() const;

  /// By dimension, as numbers of `extents`, outermost first.
  std::vector<std::vector<int>> modesOfDim;
  std::vector<int64_t> extents;
  std::vector<Digit> threads, locals;
};

} // namespace

CutModes::CutModes(const Layout &layout) : modesOfDim(layout.rank()) {
  std::vector<std::vector<int>> parts;
  for (const Mode &mode : layout.modes()) {
    int number = static_cast<int>(parts.size());
    bool isLocal = llvm::any_of(layout.localDigits(), [&](const Digit &digit) {
      return digit.mode == number;
    });
    std::vector<int64_t> factors = {mode.extent};
    while (isLocal && factors.front() % 2 == 0 && factors.front() > 2) {
      factors.front() /= 2;
      factors.push_back(2);
    }
    parts.emplace_back();
    for (int64_t factor : factors) {
      parts.back().push_back(static_cast<int>(extents.size()));
      modesOfDim[mode.dim].push_back(static_cast<int>(extents.size()));
      extents.push_back(factor);
    }
  }
  auto cut = [&](const std::vector<Digit> &digits, std::vector<Digit> &into) {
    for (const Digit &digit : digits) {
      if (digit.isReplica()) {
        into.push_back(digit);
        continue;
      }
      for (int part : parts[digit.mode])
        into.push_back({part, extents[part]});
    }
  };
  cut(layout.threadDigits(), threads);
  cut(layout.localDigits(), locals);
}

Digit CutModes::append(int64_t dim, int64_t extent) {
  int mode = static_cast<int>(extents.size());
  modesOfDim[dim].push_back(mode);
  extents.push_back(extent);
  return {mode, extent};
}

Result<Layout> CutModes::build() const {
  // Modes count through all dimensions.
  std::vector<std::vector<int64_t>> extentsOfDim;
  std::vector<int> number(extents.size());
  int next = 0;
  for (const std::vector<int> &modes : modesOfDim) {
    extentsOfDim.emplace_back();
    for (int mode : modes) {
      extentsOfDim.back().push_back(extents[mode]);
      number[mode] = next++;
    }
  }
  auto renumber = [&](std::vector<Digit> digits) {
    for (Digit &digit : digits)
      if (!digit.isReplica())
        digit.mode = number[digit.mode];
    return digits;
  };
  return Layout::fromModes(extentsOfDim, renumber(threads), renumber(locals));
}

/// `access.rows`, and how many matrices an instruction moves.
static void planRows(MatrixAccess &access, const Layout &outer, int64_t rowDim,
                     int64_t inRowDim) {
  CutModes modes(outer);
  std::vector<Digit> matrices;
  access.matricesPerOp = 1;
  while (!modes.locals.empty() && modes.locals.back().extent == 2 &&
         access.matricesPerOp < kMostMatrices) {
    matrices.insert(matrices.begin(), modes.locals.back());
    modes.locals.pop_back();
    access.matricesPerOp *= 2;
  }
  modes.threads.push_back(Digit::replica(kMostMatrices / access.matricesPerOp));
  llvm::append_range(modes.threads, matrices);
  modes.threads.push_back(modes.append(rowDim, kRowsPerMatrix));
  modes.locals.push_back(modes.append(inRowDim, access.rowElements));
  access.rows = *modes.build();
}

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

namespace {

/// One access of shared memory, a load or a store.
struct SharedAccess {
  SharedType shared;
  OperandRange offsets;
  TileType tile;
  bool promisesInside;

  /// Whether rows of `elements` along `dim` of the tile lie in one piece, at
  /// multiples of their size.
  bool keepsRows(int64_t dim, int64_t elements) const {
    const SharedLayout &addresses = shared.getLayout();
    int64_t sharedDim = addresses.rank() - tile.getRank() + dim;
    return addresses.contiguousAddresses(sharedDim) % elements == 0 &&
           getPowerOf2Divisor(offsets[sharedDim]) % elements == 0;
  }
};

} // namespace

static std::optional<MatrixAccess> planAccess(const SharedAccess &access) {
  const Layout &layout = access.tile.getLayout();
  int64_t bits = *getElementBits(access.tile.getElementType());
  if (32 % bits != 0 || layout.numThreads() % 32 != 0)
    return std::nullopt;
  int64_t perRegister = 32 / bits;
  for (int64_t across = 0; across < layout.rank(); ++across)
    for (int64_t inRegister = 0; inRegister < layout.rank(); ++inRegister) {
      if (across == inRegister)
        continue;
      Result<Layout> outer =
          divideRight(layout, getMatrixLayout(layout.rank(), across, inRegister,
                                              perRegister));
      if (!outer)
        continue;
      MatrixAccess plan;
      plan.rowElements = kRowBits / bits;
      plan.trans = !access.keepsRows(inRegister, plan.rowElements);
      if (plan.trans &&
          (bits != 16 || !access.keepsRows(across, plan.rowElements)))
        continue;
      planRows(plan, *outer, plan.trans ? inRegister : across,
               plan.trans ? across : inRegister);
      return plan;
    }
  return std::nullopt;
}

MatrixAccesses lowlp::planMatrixAccesses(Operation *root, bool hasStMatrix) {
  MatrixAccesses plans;
  auto add = [&](Operation *op, const SharedAccess &access) {
    ArrayRef<int64_t> shape = access.shared.getShape();
    if (!mayBeInside(shape, access.tile.getShape()))
      return;
    std::optional<MatrixAccess> plan = planAccess(access);
    if (!plan)
      return;
    plan->isInside = access.promisesInside ||
                     isInside(access.offsets, shape, access.tile.getShape());
    plans.try_emplace(op, std::move(*plan));
  };
  root->walk([&](LoadSharedOp load) {
    add(load, {load.getSource().getType(), load.getOffsets(),
               load.getTile().getType(), load.getInBounds()});
  });
  root->walk([&](StoreSharedOp store) {
    TileType tile = store.getTile().getType();
    if (hasStMatrix && !tile.getLayout().hasReplicas())
      add(store, {store.getDestination().getType(), store.getOffsets(), tile,
                  store.getInBounds()});
  });
  return plans;
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// The byte at which the row begins whose address this lane gives to
/// instruction `n`.
static Value getRowOffset(OpBuilder &builder, Location loc,
                          TilePositions &positions, TileType tile, int64_t n,
                          const MatrixAccess &access) {
  auto i64 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 64);
  };
  Value position = positions.getElementPosition(n * access.rowElements);
  int64_t bits = *getElementBits(tile.getElementType());
  if (bits % 8 == 0)
    return arith::MulIOp::create(builder, loc, position, i64(bits / 8));
  return arith::DivUIOp::create(builder, loc, position, i64(8 / bits));
}

Value lowlp::emitMatrixLoad(ConversionPatternRewriter &rewriter, Location loc,
                            Value base, TileType tile,
                            const SharedLayout &addresses, ValueRange offsets,
                            const MatrixAccess &access) {
  SharedPositions positions(rewriter, loc, addresses, offsets, access.rows);
  auto type = VectorType::get({access.matricesPerOp}, rewriter.getI32Type());
  SmallVector<Value> words;
  for (int64_t n = 0; n < access.numOps(); ++n) {
    Value loaded = simt::LdMatrixOp::create(
        rewriter, loc, type, base,
        getRowOffset(rewriter, loc, positions, tile, n, access), access.trans);
    for (int64_t m = 0; m < access.matricesPerOp; ++m)
      words.push_back(vector::ExtractOp::create(rewriter, loc, loaded, m));
  }
  Value all = vector::FromElementsOp::create(
      rewriter, loc,
      VectorType::get({static_cast<int64_t>(words.size())},
                      rewriter.getI32Type()),
      words);
  VectorType registers = getRegisterType(tile);
  if (all.getType() == registers)
    return all;
  return vector::BitCastOp::create(rewriter, loc, registers, all);
}

void lowlp::emitMatrixStore(ConversionPatternRewriter &rewriter, Location loc,
                            Value registers, Value base, TileType tile,
                            const SharedLayout &addresses, ValueRange offsets,
                            const MatrixAccess &access) {
  SharedPositions positions(rewriter, loc, addresses, offsets, access.rows);
  int64_t numWords = access.numOps() * access.matricesPerOp;
  auto words = VectorType::get({numWords}, rewriter.getI32Type());
  if (registers.getType() != words)
    registers = vector::BitCastOp::create(rewriter, loc, words, registers);
  for (int64_t n = 0; n < access.numOps(); ++n) {
    Value part = registers;
    if (access.numOps() > 1)
      part = vector::ExtractStridedSliceOp::create(
          rewriter, loc, registers, ArrayRef<int64_t>{n * access.matricesPerOp},
          ArrayRef<int64_t>{access.matricesPerOp}, ArrayRef<int64_t>{1});
    simt::StMatrixOp::create(
        rewriter, loc, part, base,
        getRowOffset(rewriter, loc, positions, tile, n, access), access.trans);
  }
}
