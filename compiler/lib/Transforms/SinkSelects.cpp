//===- SinkSelects.cpp - lowlp-sink-selects -------------------------------===//
#include "PassRemarks.h"

#include "lowlp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "lowlp-sink-selects"

namespace lowlp {
#define GEN_PASS_DEF_SINKSELECTS
#include "lowlp/Transforms/Passes.h.inc"
} // namespace lowlp

using namespace mlir;
using namespace lowlp;

/// Whether `branch` can yield what `select` chooses: both values are there
/// before it, and the choice is used after it only.
static bool canYield(scf::IfOp branch, arith::SelectOp select,
                     const DominanceInfo &dominance) {
  auto isThere = [&](Value value) {
    return dominance.properlyDominates(value, branch);
  };
  auto isBehind = [&](Operation *user) {
    Operation *ancestor = branch->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && branch->isBeforeInBlock(ancestor);
  };
  return isThere(select.getTrueValue()) && isThere(select.getFalseValue()) &&
         llvm::all_of(select->getUsers(), isBehind);
}

/// What a select chooses in one region of a branch with its condition. Where
/// that is another select of the condition, it is what that one chooses.
static Value getChoice(arith::SelectOp select, bool isTrue) {
  Value condition = select.getCondition();
  Value choice;
  for (; select && select.getCondition() == condition;
       select = choice.getDefiningOp<arith::SelectOp>())
    choice = isTrue ? select.getTrueValue() : select.getFalseValue();
  return choice;
}

/// Gives `branch` the selects as results, and takes them away.
static void sinkInto(scf::IfOp branch, ArrayRef<arith::SelectOp> selects,
                     IRRewriter &rewriter) {
  SmallVector<Type> types(branch.getResultTypes());
  for (arith::SelectOp select : selects)
    types.push_back(select.getType());
  rewriter.setInsertionPoint(branch);
  auto results =
      scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition(),
                        /*addThenBlock=*/false,
                        /*addElseBlock=*/false);
  results->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  for (auto [to, from] : llvm::zip(results->getRegions(), branch->getRegions()))
    rewriter.inlineRegionBefore(from, to, to.end());
  if (results.getElseRegion().empty()) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.createBlock(&results.getElseRegion());
    scf::YieldOp::create(rewriter, branch.getLoc());
  }

  auto yield = [&](scf::YieldOp op, bool isTrue) {
    rewriter.modifyOpInPlace(op, [&] {
      for (arith::SelectOp select : selects)
        op.getResultsMutable().append(getChoice(select, isTrue));
    });
  };
  yield(results.thenYield(), true);
  yield(results.elseYield(), false);

  size_t number = branch.getNumResults();
  rewriter.replaceOp(branch, results.getResults().take_front(number));
  for (auto [select, chosen] :
       llvm::zip(selects, results.getResults().drop_front(number)))
    rewriter.replaceOp(select, chosen);
}

namespace {

struct SinkSelects : lowlp::impl::SinkSelectsBase<SinkSelects> {
  void runOnOperation() override {
    SmallVector<scf::IfOp> branches;
    getOperation()->walk([&](scf::IfOp branch) { branches.push_back(branch); });
    IRRewriter rewriter(&getContext());
    for (scf::IfOp branch : branches) {
      DominanceInfo dominance(branch->getParentOp());
      SmallVector<arith::SelectOp> selects;
      for (Operation *user : branch.getCondition().getUsers()) {
        auto select = dyn_cast<arith::SelectOp>(user);
        if (!select || select.getCondition() != branch.getCondition() ||
            select->getBlock() != branch->getBlock() ||
            !isa<VectorType>(select.getType()))
          continue;
        if (canYield(branch, select, dominance))
          selects.push_back(select);
        else
          decline(select);
      }
      if (selects.empty())
        continue;
      llvm::sort(selects, [](arith::SelectOp left, arith::SelectOp right) {
        return left->isBeforeInBlock(right);
      });
      numSelects += selects.size();
      sinkInto(branch, selects, rewriter);
    }
  }

private:
  static void decline(arith::SelectOp select) {
    LDBG() << "stays: " << select;
    remarkDeclined(select, DEBUG_TYPE, "branch", [] {
      return "the choice is used before the branch of its condition ends, or "
             "one of its values is made after the branch begins";
    });
  }
};

} // namespace
