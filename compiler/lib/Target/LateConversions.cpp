//===- LateConversions.cpp - 16-bit floats widened where used -------------===//
#include "LateConversions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

/// What a value that flows into a phi is widened from: of a conversion in
/// `from` alone its operand, of a constant the same number in `type`. Null
/// where it is neither, or where `type` does not hold the number.
static Value *getNarrow(Value *value, const BasicBlock *from, Type *type) {
  if (auto *extension = dyn_cast<FPExtInst>(value)) {
    bool isAlone = extension->hasOneUse() && extension->getParent() == from;
    return isAlone && extension->getSrcTy() == type ? extension->getOperand(0)
                                                    : nullptr;
  }
  auto *constant = dyn_cast<ConstantFP>(value);
  if (!constant)
    return nullptr;
  APFloat number = constant->getValueAPF();
  bool losesInfo = false;
  number.convert(type->getFltSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return losesInfo ? nullptr : ConstantFP::get(type, number);
}

/// The 16-bit type that all conversions into `phi` are from; null if there is
/// none.
static Type *getNarrowType(const PHINode &phi) {
  for (Value *value : phi.incoming_values())
    if (auto *extension = dyn_cast<FPExtInst>(value);
        extension && extension->getSrcTy()->is16bitFPTy())
      return extension->getSrcTy();
  return nullptr;
}

/// Where all users of `phi` find what stands there: in no loop that the phi is
/// not in, and as late as can be.
static Instruction *getPlace(PHINode &phi, const DominatorTree &tree,
                             const LoopInfo &loops) {
  auto blockOf = [](const Use &use) {
    auto *user = cast<Instruction>(use.getUser());
    auto *joined = dyn_cast<PHINode>(user);
    return joined ? joined->getIncomingBlock(use) : user->getParent();
  };
  BasicBlock *block = nullptr;
  for (const Use &use : phi.uses()) {
    BasicBlock *other = blockOf(use);
    block = block ? tree.findNearestCommonDominator(block, other) : other;
  }
  while (loops.getLoopFor(block) != loops.getLoopFor(phi.getParent()) &&
         block != phi.getParent())
    block = tree.getNode(block)->getIDom()->getBlock();
  for (Instruction &instruction : *block)
    if (!isa<PHINode>(instruction) && is_contained(phi.users(), &instruction))
      return &instruction;
  return block->getTerminator();
}

/// Whether a way leads from `from` to `to` that does not go through `without`.
static bool reaches(BasicBlock *from, const BasicBlock *to,
                    const BasicBlock *without) {
  SmallPtrSet<BasicBlock *, 16> seen = {from};
  SmallVector<BasicBlock *> open = {from};
  while (!open.empty()) {
    BasicBlock *block = open.pop_back_val();
    if (block == to)
      return true;
    for (BasicBlock *next : successors(block))
      if (next != without && seen.insert(next).second)
        open.push_back(next);
  }
  return false;
}

/// Whether a loop stands between `phi` and `place`, which an iteration of a
/// loop around both goes through on its way.
static bool isAfterLoop(const Instruction &place, const PHINode &phi,
                        const DominatorTree &tree, LoopInfo &loops) {
  const BasicBlock *at = phi.getParent();
  if (place.getParent() == at)
    return false;
  return any_of(loops.getLoopsInPreorder(), [&](const Loop *loop) {
    return !loop->contains(at) && !loop->contains(&place) &&
           tree.dominates(at, loop->getHeader()) &&
           reaches(loop->getHeader(), place.getParent(), at);
  });
}

static bool convertLate(PHINode &phi, const DominatorTree &tree,
                        LoopInfo &loops) {
  Type *type = getNarrowType(phi);
  if (!type || phi.use_empty() || loops.isLoopHeader(phi.getParent()))
    return false;
  SmallVector<Value *> narrow;
  for (auto [value, from] : llvm::zip(phi.incoming_values(), phi.blocks())) {
    narrow.push_back(getNarrow(value, from, type));
    if (!narrow.back())
      return false;
  }
  Instruction *place = getPlace(phi, tree, loops);
  if (!isAfterLoop(*place, phi, tree, loops))
    return false;
  IRBuilder<> builder(&phi);
  PHINode *joined = builder.CreatePHI(type, narrow.size());
  for (auto [value, from] : llvm::zip(narrow, phi.blocks()))
    joined->addIncoming(value, from);
  builder.SetInsertPoint(place);
  SmallVector<Value *> before(phi.incoming_values());
  phi.replaceAllUsesWith(builder.CreateFPExt(joined, phi.getType()));
  phi.eraseFromParent();
  for (Value *value : before)
    if (auto *extension = dyn_cast<FPExtInst>(value))
      extension->eraseFromParent();
  return true;
}

PreservedAnalyses
lowlp::LateConversions::run(Function &function,
                            FunctionAnalysisManager &analyses) {
  const auto &tree = analyses.getResult<DominatorTreeAnalysis>(function);
  auto &loops = analyses.getResult<LoopAnalysis>(function);
  bool isChanged = false;
  for (BasicBlock &block : function) {
    if (!tree.isReachableFromEntry(&block))
      continue;
    for (PHINode &phi : make_early_inc_range(block.phis()))
      isChanged |= convertLate(phi, tree, loops);
  }
  if (!isChanged)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
