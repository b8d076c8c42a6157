//===- LowlpToThread.h - from what a block does to what a thread does -----===//
//
// The parts of the pass lowlp-convert-to-thread, one file a topic. All of them
// share how a tile lies in a thread's registers:
//
//   elements of at most 8 bits   vector<W x i32>, W = ceil(locals * bits / 32):
//                                packed without gaps, low bits first
//   f16, bf16, f32               vector<locals x element>
//   si16, ui16, si32, ui32       vector<locals x i16> or <locals x i32>
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_H
#define LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_H

#include "DotPlan.h"

#include "lowlp/Analysis/TrailingZeros.h"
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/WarpConversion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace lowlp {

//===----------------------------------------------------------------------===//
// Registers (Registers.cpp)
//===----------------------------------------------------------------------===//

/// True for the element types that a thread holds packed in 32-bit words.
bool isPacked(mlir::Type elementType);

/// What a thread holds of an element that is not packed: a float, or an integer
/// that has no sign, as those of arith have none.
mlir::Type getThreadElementType(mlir::Type elementType);

/// The registers that one thread gives to a tile.
mlir::VectorType getRegisterType(TileType tile);

/// Maps tiles to registers, accumulators in flight to `!simt.accumulators`,
/// pointers and views to `!simt.ptr<global>`, and shared tiles and mbarriers to
/// `!simt.ptr<shared>`.
class ThreadTypeConverter : public mlir::TypeConverter {
public:
  ThreadTypeConverter();
};

/// Bits of a thread's registers as 32-bit words, read and written by position.
class PackedBits {
public:
  /// All zero.
  PackedBits(mlir::OpBuilder &builder, mlir::Location loc, int64_t numBits);
  /// The words of a `vector<? x i32>`.
  PackedBits(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value vector);

  /// The `width` bits (at most 32) from `position` on, as an i32 whose other
  /// bits are zero.
  mlir::Value extract(int64_t position, int64_t width);
  /// The same bits from bit `target` of the i32 on, by at most one shift and
  /// one AND where they lie in one word.
  mlir::Value move(int64_t position, int64_t width, int64_t target);
  /// Sets bits that are zero so far. The bits of the i32 `value` above `width`
  /// must be zero.
  void insert(int64_t position, int64_t width, mlir::Value value);
  /// All words as a `vector<? x i32>`.
  mlir::Value getVector();

private:
  mlir::Value constant(int64_t value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  /// Null stands for zero.
  llvm::SmallVector<mlir::Value> words;
};

/// The registers of a tile as a vector of 32-bit words; the last one is padded
/// with zeros.
mlir::Value toWords(mlir::OpBuilder &builder, mlir::Location loc, TileType tile,
                    mlir::Value registers);

/// The inverse of `toWords`.
mlir::Value fromWords(mlir::OpBuilder &builder, mlir::Location loc,
                      TileType tile, mlir::Value words);

/// The elements of a thread's share of an integer tile, each as an i32: with
/// the sign spread over its upper bits, or with zeros there.
llvm::SmallVector<mlir::Value> unpackIntegers(mlir::OpBuilder &builder,
                                              mlir::Location loc, TileType tile,
                                              mlir::Value registers);

/// The registers of a tile of integers whose elements are the low bits of the
/// i32 `values`.
mlir::Value packIntegers(mlir::OpBuilder &builder, mlir::Location loc,
                         TileType tile, llvm::ArrayRef<mlir::Value> values);

/// A location that also names the block op, for the CPU target's reports.
mlir::Location getNamedLoc(mlir::Operation *op);

//===----------------------------------------------------------------------===//
// Threads (Registers.cpp)
//===----------------------------------------------------------------------===//

inline constexpr int64_t kThreadsPerWarp = 32;
/// Of a gpu.func: how many threads it is launched with beside those that hold
/// tiles. They are the warp, or the warpgroup, that the producer is in.
inline constexpr llvm::StringLiteral kProducerThreadsAttrName =
    "lowlp.producer_threads";

/// The threads that hold tiles: all but those of the producer.
int64_t getNumWorkers(mlir::gpu::GPUFuncOp kernel);

/// A barrier of these threads.
void emitBarrier(mlir::OpBuilder &builder, mlir::Location loc);

//===----------------------------------------------------------------------===//
// Casts (Casts.cpp)
//===----------------------------------------------------------------------===//

/// The f32 value of the code in the low bits of the i32 `code`; exact.
/// Requires: a float.
mlir::Value decodeToF32(mlir::OpBuilder &builder, mlir::Location loc,
                        const ScalarFormat &format, mlir::Value code);

/// The code, in the low bits of an i32, nearest to the f32 `value`.
mlir::Value encodeFromF32(mlir::OpBuilder &builder, mlir::Location loc,
                          const ScalarFormat &format, mlir::Value value);

//===----------------------------------------------------------------------===//
// Casts from and to integers (IntegerCasts.cpp)
//===----------------------------------------------------------------------===//

/// The integer of type `to` nearest to the i32 `value`, an integer of type
/// `from`, as an i32.
mlir::Value saturateInteger(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::IntegerType from, mlir::IntegerType to,
                            mlir::Value value);

/// The i32 `value`, an integer of type `from`, as an f32. Where f32 cannot hold
/// it, it becomes a neighbour that rounds to `to` as the integer does.
mlir::Value convertIntegerToF32(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::IntegerType from, mlir::Type to,
                                mlir::Value value);

/// The integer of the wide type `to` nearest to the f32 `value`, as an i32; 0
/// for NaN.
mlir::Value convertF32ToInteger(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::IntegerType to, mlir::Value value);

//===----------------------------------------------------------------------===//
// Where a thread's elements are in the tile (Iota.cpp)
//===----------------------------------------------------------------------===//

/// What the thread index contributes to the index along `dim`, as an i32.
mlir::Value buildThreadPart(mlir::OpBuilder &builder, mlir::Location loc,
                            const Layout &layout, int64_t dim);

/// Whether this thread is the first of those that hold its elements; null when
/// every element is held once.
mlir::Value buildIsFirstOwner(mlir::OpBuilder &builder, mlir::Location loc,
                              const Layout &layout);

//===----------------------------------------------------------------------===//
// Values in f32 (Math.cpp)
//===----------------------------------------------------------------------===//

/// The elements of a vector of f16, bf16 or f32, each as an f32.
llvm::SmallVector<mlir::Value> extractAsF32(mlir::OpBuilder &builder,
                                            mlir::Location loc,
                                            mlir::Value registers);

/// A vector of `type`, of f16, bf16 or f32, each element rounded from an f32.
mlir::Value packFromF32(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::VectorType type,
                        llvm::ArrayRef<mlir::Value> values);

//===----------------------------------------------------------------------===//
// Patterns, by topic
//===----------------------------------------------------------------------===//

/// How many elements each access moves at once; decided before the conversion,
/// while loops and views are still what the user wrote.
using AccessWidths = llvm::DenseMap<mlir::Operation *, int64_t>;

/// The bytes to which global allocations are aligned.
inline constexpr int64_t kAllocGlobalAlignBytes = 256;

/// The bytes to which every pointer to such elements is aligned.
int64_t getNaturalAlignBytes(mlir::Type elementType);

/// Finds the widest legal access for every load and store below `root`.
AccessWidths planAccessWidths(mlir::Operation *root);

/// Fails with a diagnostic for each reduction below `root` along a dimension
/// that is spread over several warps.
mlir::LogicalResult verifyReductions(mlir::Operation *root);

/// Fails with a diagnostic where a kernel below `root` that waits for the
/// launch before it touches, in front of that, memory which is not constant;
/// where it waits in a branch or loop; and where it writes to constants.
mlir::LogicalResult verifyDependencies(mlir::Operation *root);

/// How each lowlp.convert_layout moves its elements within warps.
using ConversionPlans = llvm::DenseMap<mlir::Operation *, WarpConversion>;

/// Finds the plan of every lowlp.convert_layout below `root`; fails with a
/// diagnostic for each one that moves elements from warp to warp.
mlir::FailureOr<ConversionPlans> planConversions(mlir::Operation *root);

/// The widest legal access of the view `source` by groups of neighbours within
/// runs of `run` elements, of a tile that `layout` holds. Nothing is known of
/// the index along dimension `gatheredDim` of the view, if that is not -1.
int64_t findGlobalWidth(mlir::Value source, mlir::OperandRange offsets,
                        const Layout &layout, int64_t run, bool isInBounds,
                        int64_t gatheredDim = -1);

/// What a thread holds of a tile of integers, as indices.
llvm::SmallVector<mlir::Value> unpackIndices(mlir::OpBuilder &builder,
                                             mlir::Location loc,
                                             TileType indices,
                                             mlir::Value registers);

/// Finds the widest legal access for every gather and scatter below `root`.
void planGatherWidths(mlir::Operation *root, AccessWidths &widths);

/// What the CPU target says of a broken promise.
inline constexpr llvm::StringLiteral kOutside =
    "the access promises in_bounds, but an element lies outside of the view";

class TilePositions;

/// Loads the tile whose elements lie at `positions` past `base`, `width` at
/// once; the result is its registers. Elements outside are zero, or promised
/// not to be if `isInBounds`.
mlir::Value emitTileLoad(mlir::ConversionPatternRewriter &rewriter,
                         mlir::Location loc, mlir::Value base, TileType tile,
                         int64_t width, TilePositions &positions,
                         bool isInBounds);

/// The mirror of `emitTileLoad`.
void emitTileStore(mlir::ConversionPatternRewriter &rewriter,
                   mlir::Location loc, mlir::Value registers, mlir::Value base,
                   TileType tile, int64_t width, TilePositions &positions,
                   bool isInBounds);

/// One group of neighbours on its way from memory to memory.
struct GroupCopy {
  mlir::Value source, sourcePosition;
  mlir::Value destination, destinationPosition;
  mlir::Type elementType;
  int64_t width;
  /// Whether the group exists at the source; null where that is promised.
  mlir::Value isInside = {};
};

/// Copies from global to shared memory, asynchronously where the group has 4, 8
/// or 16 bytes. A group that does not exist arrives as zero.
void emitGroupCopy(mlir::ConversionPatternRewriter &rewriter,
                   mlir::Location loc, const GroupCopy &copy);

struct SharedMemoryPlan;
struct TensorMapPlan;
struct WorkspacePlan;

void populateAccessPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const AccessWidths &widths);
void populateBroadcastPatterns(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
void populateCastPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateComparePatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateConvertLayoutPatterns(const mlir::TypeConverter &converter,
                                   mlir::RewritePatternSet &patterns,
                                   const ConversionPlans &plans);
void populateControlPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateDotPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns,
                         const DotPlans &plans);
void populateElementwisePatterns(const mlir::TypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
void populateEncodePatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateGatherPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const AccessWidths &widths);
void populateIntegerPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateIotaPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populateKernelPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns,
                            const SharedMemoryPlan &plan,
                            const WorkspacePlan &workspace,
                            const TensorMapPlan &tensorMaps);
void populateAddLookupsPattern(const mlir::TypeConverter &converter,
                               mlir::RewritePatternSet &patterns);
void populateLookupPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateMathPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);
void populatePackedPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateRowConstantsPatterns(const mlir::TypeConverter &converter,
                                  mlir::RewritePatternSet &patterns);
void populateReducePatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateRescalePatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateWarpPatterns(const mlir::TypeConverter &converter,
                          mlir::RewritePatternSet &patterns);

} // namespace lowlp

#endif // LOWLP_LIB_CONVERSION_LOWLPTOTHREAD_H
