//===- Remarks.cpp - what passes say, for callers in C --------------------===//
#include "lowlp-c/Lowlp.h"

#include "lowlp/Analysis/SourceOp.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"

#include <mutex>

using namespace mlir;

static MlirStringRef wrapText(llvm::StringRef text) {
  return mlirStringRefCreate(text.data(), text.size());
}

namespace {

/// Hands remarks on, one at a time: passes of several kernels run at once.
class Forwarder : public remark::detail::MLIRRemarkStreamerBase {
public:
  Forwarder(LowlpRemarkCallback onRemark, void *userData)
      : onRemark(onRemark), userData(userData) {}

  void
  streamOptimizationRemark(const remark::detail::Remark &remark) override {
    LowlpRemark out = {};
    out.declined =
        remark.getRemarkType() == llvm::remarks::Type::Missed ? 1 : 0;
    out.pass = wrapText(remark.getCategoryName());
    out.what = wrapText(remark.getRemarkName());
    out.kernel = wrapText(remark.getFunction());
    for (const remark::detail::Remark::Arg &arg : remark.getArgs())
      (arg.key == "Op" ? out.op : out.text) = wrapText(arg.val);
    if (FileLineColRange place =
            lowlp::findSourcePlace(remark.getLocation())) {
      out.file = wrapText(place.getFilename().getValue());
      out.line = place.getStartLine();
    }
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
