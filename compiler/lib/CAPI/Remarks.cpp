//===- Remarks.cpp - what passes say, for callers in C --------------------===//
#include "lowlp-c/Lowlp.h"

#include "lowlp/Analysis/SourceOp.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/JSON.h"

#include <mutex>

using namespace mlir;

static MlirStringRef wrapText(llvm::StringRef text) {
  return mlirStringRefCreate(text.data(), text.size());
}

/// The argument of a remark that is not the op: why, or which.
static std::string getText(const remark::detail::Remark &remark) {
  for (const remark::detail::Remark::Arg &arg : remark.getArgs())
    if (arg.key != "Op")
      return llvm::json::fixUTF8(arg.val);
  return "";
}

static llvm::StringRef getOp(const remark::detail::Remark &remark) {
  for (const remark::detail::Remark::Arg &arg : remark.getArgs())
    if (arg.key == "Op")
      return arg.val;
  return "";
}

namespace {

/// Hands remarks on, one at a time: passes of several kernels run at once.
class Forwarder : public remark::detail::MLIRRemarkStreamerBase {
public:
  Forwarder(LowlpRemarkCallback onRemark, void *userData)
      : onRemark(onRemark), userData(userData) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    LowlpRemark out = {};
    out.declined =
        remark.getRemarkType() == llvm::remarks::Type::Missed ? 1 : 0;
    out.pass = wrapText(remark.getCategoryName());
    out.what = wrapText(remark.getRemarkName());
    std::string kernel = llvm::json::fixUTF8(remark.getFunction());
    std::string text = getText(remark), file;
    out.kernel = wrapText(kernel);
    out.op = wrapText(getOp(remark));
    out.text = wrapText(text);
    if (FileLineColRange place = lowlp::findSourcePlace(remark.getLocation())) {
      file = llvm::json::fixUTF8(place.getFilename().getValue());
      out.line = place.getStartLine();
    }
    out.file = wrapText(file);
    std::lock_guard<std::mutex> guard(lock);
    onRemark(&out, userData);
  }

private:
  std::mutex lock;
  LowlpRemarkCallback onRemark;
  void *userData;
};

} // namespace

void lowlpContextSetRemarkCallback(MlirContext context,
                                   LowlpRemarkCallback onRemark,
                                   void *userData) {
  if (!onRemark)
    return unwrap(context)->setRemarkEngine(nullptr);
  remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = all.failed = ".*";
  // Setting up an engine cannot fail.
  (void)remark::enableOptimizationRemarks(
      *unwrap(context), std::make_unique<Forwarder>(onRemark, userData),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), all);
}
