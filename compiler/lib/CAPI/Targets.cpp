//===- Targets.cpp - the table of architectures for callers in C ----------===//
#include "lowlp-c/Lowlp.h"

#include "lowlp/Target/RegisterShares.h"
#include "lowlp/Target/TargetInfo.h"

#include "mlir/CAPI/Support.h"
#include "llvm/Support/JSON.h"

using namespace lowlp;

static void writeTarget(llvm::json::OStream &json, const TargetInfo &target) {
  json.object([&] {
    json.attribute("chip", target.chip);
    json.attribute("ptx_version", target.getPTXVersion());
    json.attribute("max_shared_bytes_per_block", target.maxSharedBytesPerBlock);
    json.attribute("shared_bytes_per_sm", target.sharedBytesPerSM);
    json.attribute("max_warps_per_sm", target.maxWarpsPerSM);
    json.attribute("max_blocks_per_sm", target.maxBlocksPerSM);
    json.attribute("f32_lanes_per_sm", target.f32LanesPerSM);
    json.attribute("bit_lanes_per_sm", target.bitLanesPerSM);
    json.attribute("half_pair_lanes_per_sm", target.halfPairLanesPerSM);
    json.attribute("conversion_lanes_per_sm", target.conversionLanesPerSM);
    json.attributeObject("worker_registers", [&] {
      // The compiler hands registers on where it makes warpgroups.
      if (!target.getSupport(Feature::Wgmma).isAbsent())
        for (int64_t numWorkers : {128, 256, 384, 512})
          json.attribute(std::to_string(numWorkers),
                         getRegisterShares(numWorkers).worker);
    });
    json.attributeObject("instructions", [&] {
      for (Feature feature : getAllFeatures())
        json.attribute(getInstruction(feature),
                       target.getSupport(feature).getNumInstructions());
    });
  });
}

void lowlpDescribeTargets(MlirStringCallback onText, void *userData) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.array([&] {
    for (const TargetInfo &target : TargetInfo::getAll())
      writeTarget(json, target);
  });
  onText(mlirStringRefCreate(text.data(), text.size()), userData);
}
