//===- Async.cpp - mbarriers and bulk copies on NVIDIA GPUs ---------------===//
//
// One instruction each, as inline PTX: what the NVVM dialect has of them takes
// generic addresses here and chooses forms that newer versions of PTX need.
// Each clobbers memory, so that LLVM moves no access across.
//
//===----------------------------------------------------------------------===//
#include "../ThreadToLLVM/ThreadToLLVM.h"
#include "Patterns.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Simt.h"

#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace lowlp;

namespace {

/// Writes PTX with operands at the insertion point.
class Assembly {
public:
  Assembly(ConversionPatternRewriter &rewriter, Location loc)
      : rewriter(rewriter), loc(loc) {}

  /// Adds the address `offset` bytes past `base`; returns how PTX calls it.
  std::string address(Value base, Value offset) {
    return "[" + add("l", getByteAddress(rewriter, loc, base, offset)) + "]";
  }
  std::string value64(Value value) { return add("l", value); }
  std::string value32(Value value) { return add("r", value); }
  std::string value16(Value value) { return add("h", value); }
  std::string number(int64_t value) {
    return value32(LLVM::ConstantOp::create(
        rewriter, loc,
        rewriter.getI32IntegerAttr(static_cast<int32_t>(value))));
  }

  void emit(const Twine &text) {
    LLVM::InlineAsmOp::create(
        rewriter, loc, /*res=*/Type(), operands, text.str(),
        constraints + "~{memory}", /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        LLVM::AsmDialectAttr::get(rewriter.getContext(),
                                  LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
  }

private:
  std::string add(StringRef constraint, Value value) {
    constraints += constraint.str() + ",";
    operands.push_back(value);
    return "$" + std::to_string(operands.size() - 1);
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  std::string constraints;
  SmallVector<Value> operands;
};

/// Barrier 0 is that of all threads.
struct BarrierLowering : ConvertOpToLLVMPattern<simt::BarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::BarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto i32 = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(
          rewriter, op.getLoc(),
          rewriter.getI32IntegerAttr(static_cast<int32_t>(value)));
    };
    NVVM::BarrierOp::create(rewriter, op.getLoc(), TypeRange(), i32(1),
                            i32(op.getThreads()), NVVM::BarrierReductionAttr(),
                            Value());
    rewriter.eraseOp(op);
    return success();
  }
};

/// All warps come here whole. Without an order of memory, for which the arrival
/// would wait until all stores to global memory are done too.
struct ClusterBarrierLowering : ConvertOpToLLVMPattern<simt::ClusterBarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::ClusterBarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto aligned = rewriter.getUnitAttr();
    NVVM::ClusterArriveRelaxedOp::create(rewriter, op.getLoc(), aligned);
    NVVM::ClusterWaitOp::create(rewriter, op.getLoc(), aligned);
    rewriter.eraseOp(op);
    return success();
  }
};

/// After it the thread may exit, while the barrier counts as many as before.
struct LeaveBarriersLowering : ConvertOpToLLVMPattern<simt::LeaveBarriersOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::LeaveBarriersOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    ptx.emit("barrier.cta.arrive 1, " + ptx.number(op.getThreads()) + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

struct SetRegistersLowering : ConvertOpToLLVMPattern<simt::SetRegistersOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::SetRegistersOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    using Action = NVVM::SetMaxRegisterAction;
    rewriter.replaceOpWithNewOp<NVVM::SetMaxRegisterOp>(
        op, static_cast<uint32_t>(op.getCount()),
        op.getTakes() ? Action::increase : Action::decrease);
    return success();
  }
};

/// After the barriers of the block, 0 and 1, each warpgroup has one for turns,
/// up to 7, and one of its own.
constexpr int64_t kFirstTurn = 2, kFirstOfWarpgroup = 8;

struct WarpgroupBarrierLowering
    : ConvertOpToLLVMPattern<simt::WarpgroupBarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::WarpgroupBarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    // The number is computed where it is used, so that no register holds it
    // through a loop.
    Assembly(rewriter, op.getLoc())
        .emit("{\n"
              ".reg .b32 number;\n"
              "mov.u32 number, %tid.x;\n"
              "div.u32 number, number, " +
              Twine(kThreadsPerWarpgroup) +
              ";\n"
              "add.u32 number, number, " +
              Twine(kFirstOfWarpgroup) +
              ";\n"
              "bar.sync number, " +
              Twine(kThreadsPerWarpgroup) +
              ";\n"
              "}");
    rewriter.eraseOp(op);
    return success();
  }
};

/// The warpgroup meets the one that gives it the turn.
template <typename Op> struct TurnLowering : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    bool gives = isa<simt::GiveTurnOp>(op);
    Location loc = op.getLoc();
    auto i32 = [&](int64_t value) -> Value {
      return LLVM::ConstantOp::create(
          rewriter, loc,
          rewriter.getI32IntegerAttr(static_cast<int32_t>(value)));
    };
    Value number =
        NVVM::ThreadIdXOp::create(rewriter, loc, rewriter.getI32Type());
    number =
        LLVM::UDivOp::create(rewriter, loc, number, i32(kThreadsPerWarpgroup));
    if (gives) {
      number = LLVM::AddOp::create(rewriter, loc, number, i32(1));
      number = LLVM::URemOp::create(rewriter, loc, number, i32(op.getGroups()));
    }
    number = LLVM::AddOp::create(rewriter, loc, number, i32(kFirstTurn));
    Assembly ptx(rewriter, loc);
    std::string barrier = ptx.value32(number);
    ptx.emit((gives ? "bar.arrive " : "bar.sync ") + barrier + ", " +
             ptx.number(2 * kThreadsPerWarpgroup) + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierInitLowering : ConvertOpToLLVMPattern<simt::MbarrierInitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::MbarrierInitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    std::string at = ptx.address(adaptor.getBase(), adaptor.getOffset());
    ptx.emit("mbarrier.init.shared::cta.b64 " + at + ", " +
             ptx.number(op.getArrivals()) + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

struct MbarrierArriveLowering : ConvertOpToLLVMPattern<simt::MbarrierArriveOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::MbarrierArriveOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    std::string at = ptx.address(adaptor.getBase(), adaptor.getOffset());
    if (std::optional<int64_t> bytes = op.getBytes())
      ptx.emit("mbarrier.arrive.expect_tx.shared::cta.b64 _, " + at + ", " +
               ptx.number(*bytes) + ";");
    else if (op.getByWarp())
      arriveOnce(ptx, StringRef(at).drop_front().drop_back(),
                 MulticastAttr::countBlocks(op), op.getLoadsEnded());
    else
      ptx.emit("mbarrier.arrive.shared::cta.b64 _, " + at + ";");
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// All lanes come together, and one arrives; or lane i at the mbarrier of
  /// block i, for which the other lanes have done what they do.
  ///
  /// What the warp arrives for is that a copy may overwrite what its lanes have
  /// read. Their loads may still be in flight, and those of lanes that do not
  /// arrive are ordered by nothing else: copies have been seen to overtake them
  /// (ADR 0081). So there is a fence, unless no load is in flight.
  static void arriveOnce(Assembly &ptx, StringRef at, int64_t blocks,
                         bool loadsEnded) {
    std::string meet = "{\n\t.reg .pred arrives;\n\t";
    if (!loadsEnded)
      meet += "fence.acq_rel.cta;\n\t";
    meet += "bar.warp.sync 0xffffffff;\n\t";
    if (blocks == 1)
      ptx.emit(meet +
               "elect.sync _|arrives, 0xffffffff;\n\t"
               "@arrives mbarrier.arrive.shared::cta.b64 _, [" +
               at + "];\n\t}");
    else
      ptx.emit(meet +
               ".reg .b32 lane;\n\t.reg .b64 there;\n\t"
               "mov.u32 lane, %laneid;\n\tsetp.lt.u32 arrives, lane, " +
               Twine(blocks) +
               ";\n\t@arrives mapa.shared::cluster.u64 there, " + at +
               ", lane;\n\t"
               "@arrives mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}");
  }
};

struct StoreAsyncLowering : ConvertOpToLLVMPattern<simt::StoreAsyncOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::StoreAsyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    std::string to = ptx.address(adaptor.getBase(), adaptor.getOffset());
    std::string barrier = ptx.address(adaptor.getBase(), adaptor.getBarrier());
    int64_t count = op.getValue().getType().getNumElements();
    SmallVector<std::string> words;
    for (int64_t i = 0; i < count; ++i)
      words.push_back(ptx.value32(LLVM::ExtractElementOp::create(
          rewriter, op.getLoc(), adaptor.getValue(),
          LLVM::ConstantOp::create(rewriter, op.getLoc(),
                                   rewriter.getI64IntegerAttr(i)))));
    std::string text = llvm::join(words, ", ");
    ptx.emit("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes." +
             (count > 1 ? "v" + std::to_string(count) + "." : std::string()) +
             "b32 " + to + ", " + (count > 1 ? "{" + text + "}" : text) + ", " +
             barrier + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

/// The instruction gives up after a while, so it stands in a loop.
struct MbarrierWaitLowering : ConvertOpToLLVMPattern<simt::MbarrierWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::MbarrierWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    std::string at = ptx.address(adaptor.getBase(), adaptor.getOffset());
    ptx.emit("{\n\t.reg .pred complete;\n"
             "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 complete, " +
             at + ", " + ptx.value32(adaptor.getParity()) +
             ";\n\t@complete bra done;\n\tbra again;\ndone:\n\t}");
    rewriter.eraseOp(op);
    return success();
  }
};

/// An op that is one instruction without operands.
template <typename Op> struct PlainLowering : ConvertOpToLLVMPattern<Op> {
  PlainLowering(const LLVMTypeConverter &converter, StringRef text)
      : ConvertOpToLLVMPattern<Op>(converter), text(text) {}

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly(rewriter, op.getLoc()).emit(text + ";");
    rewriter.eraseOp(op);
    return success();
  }

  StringRef text;
};

struct CopyBulkLowering : ConvertOpToLLVMPattern<simt::CopyBulkOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyBulkOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    std::string to =
        ptx.address(adaptor.getDestination(), adaptor.getDestinationOffset());
    std::string from =
        ptx.address(adaptor.getSource(), adaptor.getSourceOffset());
    std::string bytes = ptx.number(op.getBytes());
    std::string barrier =
        ptx.address(adaptor.getBarrier(), adaptor.getBarrierOffset());
    ptx.emit("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
             "bytes " +
             to + ", " + from + ", " + bytes + ", " + barrier + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkToGlobalLowering
    : ConvertOpToLLVMPattern<simt::CopyBulkToGlobalOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyBulkToGlobalOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly ptx(rewriter, op.getLoc());
    std::string to =
        ptx.address(adaptor.getDestination(), adaptor.getDestinationOffset());
    std::string from =
        ptx.address(adaptor.getSource(), adaptor.getSourceOffset());
    ptx.emit("cp.async.bulk.global.shared::cta.bulk_group " + to + ", " + from +
             ", " + ptx.number(op.getBytes()) + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyBulkWaitLowering : ConvertOpToLLVMPattern<simt::CopyBulkWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyBulkWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Assembly(rewriter, op.getLoc())
        .emit(StringRef("cp.async.bulk.wait_group") +
              (op.getRead() ? ".read " : " ") + Twine(op.getN()) + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

/// Coordinates count from the innermost dimension, in 32 bits.
struct CopyTensorLowering : ConvertOpToLLVMPattern<simt::CopyTensorOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(simt::CopyTensorOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Assembly ptx(rewriter, loc);
    std::string to =
        ptx.address(adaptor.getDestination(), adaptor.getDestinationOffset());
    std::string from = "[" + ptx.value64(adaptor.getMap()) + ", {";
    StringRef separator = "";
    for (Value offset : llvm::reverse(adaptor.getOffsets())) {
      Value coordinate =
          LLVM::TruncOp::create(rewriter, loc, rewriter.getI32Type(), offset);
      from += separator.str() + ptx.value32(coordinate);
      separator = ", ";
    }
    from += "}]";
    std::string barrier =
        ptx.address(adaptor.getBarrier(), adaptor.getBarrierOffset());
    std::string form =
        "cp.async.bulk.tensor." + std::to_string(op.getBox().size()) +
        "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";
    std::string operands = to + ", " + from + ", " + barrier;
    if (int64_t blocks = MulticastAttr::countBlocks(op); blocks > 1) {
      // To the same place of all blocks of the cluster.
      form += ".multicast::cluster";
      auto mask = static_cast<int16_t>((1 << blocks) - 1);
      operands += ", " + ptx.value16(LLVM::ConstantOp::create(
                             rewriter, loc, rewriter.getI16IntegerAttr(mask)));
    }
    ptx.emit(form + " " + operands + ";");
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void lowlp::populateSimtAsyncToNVVMPatterns(const LLVMTypeConverter &converter,
                                            RewritePatternSet &patterns) {
  patterns.add<StoreAsyncLowering, MbarrierInitLowering, MbarrierArriveLowering,
               MbarrierWaitLowering, CopyBulkLowering, CopyBulkToGlobalLowering,
               CopyBulkWaitLowering, CopyTensorLowering>(converter);
  patterns.add<PlainLowering<simt::FenceMbarrierInitOp>>(
      converter, "fence.mbarrier_init.release.cluster");
  // Of shared memory alone: the plain form also waits for global memory.
  patterns.add<PlainLowering<simt::FenceAsyncOp>>(
      converter, "fence.proxy.async.shared::cta");
  patterns.add<PlainLowering<simt::CopyBulkCommitOp>>(
      converter, "cp.async.bulk.commit_group");
  patterns
      .add<BarrierLowering, WarpgroupBarrierLowering, ClusterBarrierLowering,
           LeaveBarriersLowering, SetRegistersLowering,
           TurnLowering<simt::TakeTurnOp>, TurnLowering<simt::GiveTurnOp>>(
          converter);
  patterns.add<PlainLowering<simt::WaitForDependenciesOp>>(
      converter, "griddepcontrol.wait");
  patterns.add<PlainLowering<simt::LaunchDependentsOp>>(
      converter, "griddepcontrol.launch_dependents");
}
