//===- Packed.cpp - codes and fragments out of packed words ---------------===//
//
// A thread's words of a unit become its weights: bit by bit from the placement
// (lowlp.unpack), or by the steps of a plan (lowlp.decode). Where warps take
// different tiles of 16 rows from the same words, they first move these so far
// that all have the code of the first tile (findTileShift). Only where tiles do
// not lie alike (in units narrower than 64) each tile has code of its own, and
// a warp branches to its tile's.
//
//===----------------------------------------------------------------------===//
#include "LowlpToThread.h"

#include "lowlp/Decode/DecodePlan.h"
#include "lowlp/Decode/PackedTile.h"
#include "lowlp/IR/Simt.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace lowlp;

using Words = SmallVector<SmallVector<Value>>;

/// The words of each unit that a thread holds.
static Words extractWords(OpBuilder &builder, Location loc,
                          const PackedTile &tile, Value registers) {
  Words units;
  for (const std::vector<int> &locals : tile.wordLocals) {
    SmallVector<Value> &words = units.emplace_back();
    for (int local : locals)
      words.push_back(vector::ExtractOp::create(builder, loc, registers,
                                                static_cast<int64_t>(local)));
  }
  return units;
}

namespace {
/// What the threads of warps that share units make of them: warp w has tile w
/// mod R of 16 rows.
class SharedUnits {
public:
  SharedUnits(OpBuilder &builder, Location loc, const Placement &placement)
      : builder(builder), loc(loc), placement(placement) {
    Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
    Value warp = arith::DivUIOp::create(builder, loc, thread,
                                        index(FragmentFamily::lanes));
    tile = arith::RemUIOp::create(builder, loc, warp,
                                  index(placement.getNumRowTiles()));
  }

  /// The words as if the warp's tile were the first of its units, of which no
  /// other weights may be taken.
  void moveToFirst(Words &units, TileShift shift) {
    for (SmallVector<Value> &words : units)
      words = rotate(select(words, shift.words), shift.bits);
  }

  /// The registers that `make` builds for the slots of the warp's tile, by code
  /// of its own for each tile.
  Value branch(VectorType type,
               function_ref<Value(OpBuilder &, int slotOffset)> make) {
    int numTiles = placement.getNumRowTiles();
    auto cases = llvm::to_vector(llvm::seq<int64_t>(1, numTiles));
    auto choice = scf::IndexSwitchOp::create(builder, loc, type, tile, cases,
                                             cases.size());
    auto fill = [&](Region &region, int64_t which) {
      OpBuilder::InsertionGuard guard(builder);
      builder.createBlock(&region);
      int offset = getSlotsOfTile(placement, static_cast<int>(which)).front();
      scf::YieldOp::create(builder, loc, make(builder, offset));
    };
    for (auto [region, which] : llvm::zip(choice.getCaseRegions(), cases))
      fill(region, which);
    fill(choice.getDefaultRegion(), 0);
    return choice.getResult(0);
  }

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  /// Word i of tile 0, which is word i + t * distance of tile t.
  SmallVector<Value> select(ArrayRef<Value> words, int distance) {
    SmallVector<Value> found(words);
    if (!distance)
      return found;
    auto numWords = static_cast<int>(words.size());
    int last = placement.getNumRowTiles() - 1;
    for (int which = 1; which <= last; ++which) {
      Value isIt = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                         tile, index(which));
      for (int word = 0; word + last * distance < numWords; ++word)
        found[word] = arith::SelectOp::create(
            builder, loc, isIt, words[word + which * distance], found[word]);
    }
    return found;
  }

  /// The words t * bits to the right.
  SmallVector<Value> rotate(SmallVector<Value> words, int bits) {
    if (!bits)
      return words;
    Type word = builder.getI32Type();
    Value amount = arith::IndexCastOp::create(
        builder, loc, word,
        arith::MulIOp::create(builder, loc, tile, index(bits)));
    for (Value &value : words)
      value = simt::FunnelShiftOp::create(builder, loc, word, value, value,
                                          amount, /*right=*/true);
    return words;
  }

  OpBuilder &builder;
  Location loc;
  const Placement &placement;
  Value tile;
};
} // namespace

/// The registers that `make` builds of the words of this thread's units for the
/// slots of its warp: those of `tile`, and so many more.
static Value buildOfWords(
    OpBuilder &builder, Location loc, const PackedTile &tile,
    const Placement &placement, Value registers, VectorType type,
    function_ref<Value(OpBuilder &, const Words &, int slotOffset)> make) {
  Words words = extractWords(builder, loc, tile, registers);
  if (!tile.areUnitsShared)
    return make(builder, words, 0);
  SharedUnits shared(builder, loc, placement);
  if (std::optional<TileShift> shift = findTileShift(placement)) {
    shared.moveToFirst(words, *shift);
    return make(builder, words, 0);
  }
  return shared.branch(type, [&](OpBuilder &inner, int slotOffset) {
    return make(inner, words, slotOffset);
  });
}

//===----------------------------------------------------------------------===//
// Bit by bit
//===----------------------------------------------------------------------===//

namespace {

struct UnpackPattern : OpConversionPattern<UnpackOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(UnpackOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType codes = op.getCodes().getType();
    const Placement &placement = *op.getPlacement();
    std::optional<int> book;
    if (op.getBook())
      book = static_cast<int>(*op.getBook());
    PackedTile tile = *matchPackedTile(codes.getLayout(), placement,
                                       static_cast<int>(op.getStep()), book);
    auto make = [&](OpBuilder &builder, const Words &units, int slotOffset) {
      return unpack(builder, loc, op, placement, tile, slotOffset, units);
    };
    rewriter.replaceOp(op, buildOfWords(rewriter, loc, tile, placement,
                                        adaptor.getWords(),
                                        getRegisterType(codes), make));
    return success();
  }

private:
  static Value unpack(OpBuilder &builder, Location loc, UnpackOp op,
                      const Placement &placement, const PackedTile &tile,
                      int slotOffset, ArrayRef<SmallVector<Value>> units) {
    TileType codes = op.getCodes().getType();
    int64_t numBits = codes.getBitsPerThread();
    int64_t codeBits = *getElementBits(codes.getElementType());
    // Codes of 9 to 16 bits are held as numbers of 16, the upper bits zero.
    int64_t usedBits =
        std::min<int64_t>(codeBits, placement.getFormat().bits -
                                        static_cast<int64_t>(op.getBit()));
    auto isUsed = [&](int64_t position) {
      return position < numBits && position % codeBits < usedBits;
    };
    /// Where the words have a bit of the result.
    auto getSource = [&](int64_t position) {
      const PackedTile::Place &place = tile.places[position / codeBits];
      auto bit =
          static_cast<int>(op.getBit()) + static_cast<int>(position % codeBits);
      return std::pair(place.unit, placement.getPlace(place.slot + slotOffset,
                                                      place.part, bit));
    };
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(builder, loc,
                                       builder.getI32IntegerAttr(value));
    };
    PackedBits result(builder, loc, numBits);
    for (int64_t position = 0; position < numBits;) {
      if (!isUsed(position)) {
        ++position;
        continue;
      }
      auto [unit, first] = getSource(position);
      int width = 1;
      while (isUsed(position + width) &&
             getSource(position + width) ==
                 std::pair(unit, BitPlace{first.word, first.bit + width}))
        ++width;
      Value run = units[unit][first.word];
      if (first.bit)
        run = arith::ShRUIOp::create(builder, loc, run, constant(first.bit));
      if (first.bit + width < 32)
        run = arith::AndIOp::create(builder, loc, run,
                                    constant((int64_t(1) << width) - 1));
      result.insert(position, width, run);
      position += width;
    }
    Value registers = result.getVector();
    // Signed codes are stored with the sign bit turned over.
    if (codes.getElementType().isSignedInteger())
      registers = arith::XOrIOp::create(builder, loc, registers,
                                        buildSigns(builder, loc, codes));
    // Codes of more than 8 bits are elements of their own.
    return fromWords(builder, loc, codes, registers);
  }

  /// The registers of a tile whose codes have the sign bit alone.
  static Value buildSigns(OpBuilder &builder, Location loc, TileType codes) {
    int64_t codeBits = *getElementBits(codes.getElementType());
    VectorType type = getRegisterType(codes);
    APInt signs(32 * type.getNumElements(), 0);
    for (int64_t i = 1; i <= codes.getNumLocals(); ++i)
      signs.setBit(i * codeBits - 1);
    SmallVector<APInt> words;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      words.push_back(signs.extractBits(32, 32 * i));
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, words));
  }
};

//===----------------------------------------------------------------------===//
// By a plan
//===----------------------------------------------------------------------===//

/// Carries out the steps of a plan on one thread's words.
class PlanBuilder {
public:
  PlanBuilder(OpBuilder &builder, Location loc, Type compute)
      : builder(builder), loc(loc), compute(compute) {}

  /// The registers that `results` name, of a unit's words and the plan's
  /// parameters, of which those that the results need are there.
  SmallVector<Value> run(const DecodePlan &plan, ArrayRef<Value> words,
                         ArrayRef<Value> parameters, ArrayRef<int> results) {
    // Only what the results need.
    std::vector<bool> isNeeded(plan.getFirstResult() + plan.steps.size());
    for (int result : results)
      isNeeded[result] = true;
    for (int i = static_cast<int>(plan.steps.size()) - 1; i >= 0; --i) {
      const DecodeStep &step = plan.steps[i];
      if (isNeeded[plan.getFirstResult() + i])
        for (int k = 0; k < step.getNumOperands(); ++k)
          if (!step.operands[k].isImmediate)
            isNeeded[step.operands[k].value] = true;
    }
    registers.assign(words.begin(), words.end());
    registers.append(parameters.begin(), parameters.end());
    for (const DecodeStep &step : plan.steps)
      registers.push_back(isNeeded[registers.size()] ? build(step) : Value());
    SmallVector<Value> found;
    for (int result : results)
      found.push_back(registers[result]);
    return found;
  }

private:
  Value constant(uint32_t value) {
    return arith::ConstantOp::create(
        builder, loc, builder.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value read(const DecodeOperand &operand) {
    return operand.isImmediate ? constant(operand.value)
                               : registers[operand.value];
  }

  Value build(const DecodeStep &step) {
    Value a = read(step.operands[0]);
    Value b = step.getNumOperands() > 1 ? read(step.operands[1]) : Value();
    Value c = step.getNumOperands() > 2 ? read(step.operands[2]) : Value();
    switch (step.kind) {
    case DecodeStep::Kind::Lop3:
      // Of all bits, none of them flipped: the assembler would keep it.
      if (isIdentity(step))
        return a;
      // Of two operands, arith has it, and says more to who reads it.
      if (isAnd(step))
        return arith::AndIOp::create(builder, loc, a, b);
      return simt::Lop3Op::create(builder, loc, builder.getI32Type(), a, b, c,
                                  step.imm);
    case DecodeStep::Kind::Prmt:
      return simt::PrmtOp::create(builder, loc, builder.getI32Type(), a, b,
                                  step.imm);
    case DecodeStep::Kind::Rotate:
      return simt::FunnelShiftOp::create(builder, loc, builder.getI32Type(), a,
                                         a, constant(step.imm),
                                         /*right=*/true);
    case DecodeStep::Kind::Fma:
      return buildFma(step, a, b, c);
    case DecodeStep::Kind::Mul32:
      return fromF32(arith::MulFOp::create(builder, loc, toF32(a), toF32(b)));
    case DecodeStep::Kind::Round: {
      // The second operand is the low half.
      Value pair = vector::FromElementsOp::create(
          builder, loc, VectorType::get(2, builder.getF32Type()),
          ValueRange{toF32(b), toF32(a)});
      return fromHalves(arith::TruncFOp::create(
          builder, loc, VectorType::get(2, compute), pair));
    }
    case DecodeStep::Kind::Mad: {
      Value product = arith::MulIOp::create(builder, loc, a, b);
      if (step.operands[2] == DecodeOperand::imm(0))
        return product;
      return arith::AddIOp::create(builder, loc, product, c);
    }
    }
    llvm_unreachable("unknown kind of step");
  }

  /// A product alone where -0 is added, which changes no number.
  Value buildFma(const DecodeStep &step, Value a, Value b, Value c) {
    Value first = toHalves(a), second = toHalves(b);
    if (step.operands[2] == DecodeOperand::imm(0x80008000))
      return fromHalves(arith::MulFOp::create(builder, loc, first, second));
    return fromHalves(
        math::FmaOp::create(builder, loc, first, second, toHalves(c)));
  }

  /// (a & b) ^ 0 with all bits of b set.
  static bool isIdentity(const DecodeStep &step) {
    return step.imm == 0x6a && step.operands[1] == DecodeOperand::imm(~0u) &&
           step.operands[2] == DecodeOperand::imm(0);
  }

  /// a & b, or (a & b) | 0.
  static bool isAnd(const DecodeStep &step) {
    return step.imm == 0xc0 ||
           (step.imm == 0xea && step.operands[2] == DecodeOperand::imm(0));
  }

  Value bitcast(Value value, VectorType type) {
    return vector::BitCastOp::create(builder, loc, type, value);
  }
  Value toHalves(Value word) {
    return bitcast(asVector(word), VectorType::get(2, compute));
  }
  Value fromHalves(Value halves) {
    Value word = bitcast(halves, VectorType::get(1, builder.getI32Type()));
    return vector::ExtractOp::create(builder, loc, word, int64_t(0));
  }
  Value asVector(Value word) {
    return vector::BroadcastOp::create(
        builder, loc, VectorType::get(1, word.getType()), word);
  }
  Value toF32(Value word) {
    return arith::BitcastOp::create(builder, loc, builder.getF32Type(), word);
  }
  Value fromF32(Value number) {
    return arith::BitcastOp::create(builder, loc, builder.getI32Type(), number);
  }

  OpBuilder &builder;
  Location loc;
  Type compute;
  SmallVector<Value> registers;
};

struct DecodePattern : OpConversionPattern<DecodeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(DecodeOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = getNamedLoc(op);
    TileType fragments = op.getFragments().getType();
    const DecodePlan &plan = op.getPlan().getPlan();
    const Placement &placement = **Placement::find(plan.placement);
    if (Result<bool> proof = plan.prove(placement); !proof)
      return op.emitOpError(proof.error());
    PackedTile tile = *matchPackedTile(fragments.getLayout(), placement,
                                       static_cast<int>(op.getStep()));
    VectorType type = getRegisterType(fragments);
    auto make = [&](OpBuilder &builder, const Words &units, int slotOffset) {
      Words parameters = buildParameters(builder, op, adaptor, plan, placement,
                                         tile, slotOffset);
      return decode(builder, loc, type, plan, tile, slotOffset, units,
                    parameters);
    };
    rewriter.replaceOp(op, buildOfWords(rewriter, loc, tile, placement,
                                        adaptor.getWords(), type, make));
    return success();
  }

private:
  /// For each unit the parameters of the plan: of each row of slots that the
  /// tile takes the scale and minus the zero, in both halves of a word.
  static Words buildParameters(OpBuilder &builder, DecodeOp op,
                               OpAdaptor adaptor, const DecodePlan &plan,
                               const Placement &placement,
                               const PackedTile &tile, int slotOffset) {
    Words parameters(tile.getNumUnits(),
                     SmallVector<Value>(plan.getNumParameters()));
    if (plan.ending != DecodeEnding::Weights)
      return parameters;
    Location loc = getNamedLoc(op);
    const Layout &fragments = op.getFragments().getType().getLayout();
    Value negated = arith::NegFOp::create(builder, loc, adaptor.getZeros());
    auto fill = [&](Value rows, TileType type, int which) {
      int64_t slices = type.getShape()[0] / fragments.shape()[0];
      std::vector<int64_t> locals =
          *broadcastLocals(type.getLayout(), *stackSlices(fragments, slices));
      for (auto [place, local] : llvm::zip_equal(tile.places, locals)) {
        int row = placement.getRowOfSlot(place.slot + slotOffset);
        Value &word = parameters[place.unit][2 * row + which];
        if (!word)
          word = repeat(builder, loc, rows, local);
      }
    };
    fill(adaptor.getScales(), op.getScales().getType(), 0);
    fill(negated, op.getZeros().getType(), 1);
    return parameters;
  }

  /// The number at `local` in both halves of a word.
  static Value repeat(OpBuilder &builder, Location loc, Value rows,
                      int64_t local) {
    Value pair = vector::ShuffleOp::create(builder, loc, rows, rows,
                                           ArrayRef<int64_t>{local, local});
    Value word = vector::BitCastOp::create(
        builder, loc, VectorType::get(1, builder.getI32Type()), pair);
    return vector::ExtractOp::create(builder, loc, word, int64_t(0));
  }

  static Value decode(OpBuilder &builder, Location loc, VectorType type,
                      const DecodePlan &plan, const PackedTile &tile,
                      int slotOffset, ArrayRef<SmallVector<Value>> units,
                      ArrayRef<SmallVector<Value>> parameters) {
    std::vector<int> slots = tile.getSlots();
    SmallVector<int> results;
    for (int slot : slots) {
      auto index =
          llvm::find(plan.slots, slot + slotOffset) - plan.slots.begin();
      results.push_back(plan.results[index]);
    }
    Words decoded;
    for (auto [words, ofRows] : llvm::zip_equal(units, parameters))
      decoded.push_back(PlanBuilder(builder, loc, type.getElementType())
                            .run(plan, words, ofRows, results));
    // Neighbours among a thread's weights are the parts of one register.
    SmallVector<Value> words;
    for (const PackedTile::Place &place : tile.places) {
      if (place.part)
        continue;
      auto slot = llvm::find(slots, place.slot) - slots.begin();
      words.push_back(decoded[place.unit][slot]);
    }
    auto wordType = VectorType::get(static_cast<int64_t>(words.size()),
                                    builder.getI32Type());
    Value all = vector::FromElementsOp::create(builder, loc, wordType, words);
    return vector::BitCastOp::create(builder, loc, type, all);
  }
};

} // namespace

void lowlp::populatePackedPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<UnpackPattern, DecodePattern>(converter, patterns.getContext());
}
