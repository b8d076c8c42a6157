//===- TargetInfoTest.cpp - What the list of architectures answers --------===//

#include "lowlp/Target/TargetInfo.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

using namespace lowlp;

namespace {

const TargetInfo &get(llvm::StringRef chip) {
  const TargetInfo *target = TargetInfo::lookup(chip);
  EXPECT_NE(target, nullptr) << chip.str();
  return *target;
}

TEST(TargetInfo, LooksUpEveryChipByItsName) {
  for (const TargetInfo &target : TargetInfo::getAll())
    EXPECT_EQ(TargetInfo::lookup(target.chip), &target);
  EXPECT_EQ(TargetInfo::lookup("sm_75"), nullptr);
  EXPECT_EQ(TargetInfo::lookup(""), nullptr);
}

TEST(TargetInfo, ToldApartNativeEmulatedAndAbsent) {
  EXPECT_TRUE(get("sm_80").getSupport(Feature::MmaF8).isAbsent());
  EXPECT_TRUE(get("sm_89").getSupport(Feature::MmaF8).isNative());
  EXPECT_TRUE(get("sm_90a").getSupport(Feature::MmaF8).isEmulated());
  EXPECT_EQ(get("sm_90a").getSupport(Feature::MmaF8).getNumInstructions(), 18);
  EXPECT_TRUE(get("sm_90a").getSupport(Feature::MmaB1And).isNative());
  EXPECT_TRUE(get("sm_100a").getSupport(Feature::MmaB1And).isEmulated());
  EXPECT_TRUE(get("sm_90a").getSupport(Feature::Wgmma).isNative());
  EXPECT_TRUE(get("sm_90").getSupport(Feature::Wgmma).isAbsent());
}

TEST(TargetInfo, PTXVersionHasTheChipAndAllItCanDo) {
  EXPECT_EQ(get("sm_80").getPTXVersion(), 71);  // b1 and.popc
  EXPECT_EQ(get("sm_89").getPTXVersion(), 84);  // mma e4m3
  EXPECT_EQ(get("sm_90a").getPTXVersion(), 86); // cp.async.bulk to shared::cta
  for (const TargetInfo &target : TargetInfo::getAll())
    for (Feature feature : getAllFeatures())
      if (!target.getSupport(feature).isAbsent()) {
        EXPECT_LE(getPTXVersion(feature), target.getPTXVersion());
      }
}

/// What `require` reports at an op that is at `loc`; nothing where it succeeds.
std::string report(llvm::StringRef chip, Feature feature,
                   llvm::function_ref<mlir::Location(mlir::Location)> wrap) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string text;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    auto place = d.getLocation()->findInstanceOf<mlir::FileLineColLoc>();
    text += std::to_string(place.getLine()) + ": " + d.str();
    return mlir::success();
  });
  mlir::Location place = mlir::FileLineColLoc::get(&context, "k.py", 7, 3);
  mlir::OwningOpRef<mlir::ModuleOp> op = mlir::ModuleOp::create(wrap(place));
  EXPECT_EQ(mlir::succeeded(get(chip).require(*op, feature)), text.empty());
  return text;
}

TEST(TargetInfo, RequireNamesOpPlaceAndArchitectures) {
  auto asItIs = [](mlir::Location place) { return place; };
  auto named = [](mlir::Location place) -> mlir::Location {
    auto name = mlir::StringAttr::get(place.getContext(), "lowlp.store_matrix");
    return mlir::NameLoc::get(name, place);
  };
  EXPECT_EQ(report("sm_90a", Feature::StoreMatrix, named), "");
  EXPECT_EQ(report("sm_90a", Feature::MmaF8, named), "") << "emulated";
  EXPECT_EQ(report("sm_89", Feature::StoreMatrix, named),
            "7: 'lowlp.store_matrix' op needs stmatrix.m8n8 b16, which sm_89 "
            "does not have; it is on sm_90, sm_90a, sm_100, sm_100a, sm_103a, "
            "sm_120, sm_120a, sm_121a");
  EXPECT_EQ(report("sm_100a", Feature::Wgmma, asItIs),
            "7: 'builtin.module' op needs wgmma.mma_async, which sm_100a does "
            "not have; it is on sm_90a");
}

} // namespace
