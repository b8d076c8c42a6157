//===- PassRemarks.cpp - what passes say of what they do ------------------===//
#include "PassRemarks.h"

#include "lowlp/Analysis/SourceOp.h"
#include "lowlp/IR/Lowlp.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

/// The kernel that holds `op`, by name; of the thread level any function.
static StringRef getKernelName(Operation *op) {
  while (op && !op->hasAttr(SymbolTable::getSymbolAttrName()))
    op = op->getParentOp();
  return op ? SymbolTable::getSymbolName(op).getValue() : StringRef();
}

static remark::RemarkOpts describe(Operation *op, StringRef pass,
                                   StringRef what) {
  return remark::RemarkOpts::name(what).category(pass).function(
      getKernelName(op));
}

static void finish(remark::detail::InFlightRemark &&remark, Operation *op,
                   StringRef key, llvm::function_ref<std::string()> text) {
  if (!remark)
    return;
  remark << remark::detail::Remark::Arg("Op", lowlp::getSourceOpName(op))
         << remark::detail::Remark::Arg(key, text());
}

void lowlp::remarkDeclined(Operation *op, StringRef pass, StringRef what,
                           llvm::function_ref<std::string()> reason) {
  finish(remark::missed(op->getLoc(), describe(op, pass, what)), op, "Reason",
         reason);
}

void lowlp::remarkDone(Operation *op, StringRef pass, StringRef what,
                       llvm::function_ref<std::string()> which) {
  finish(remark::passed(op->getLoc(), describe(op, pass, what)), op, "Remark",
         which);
}
