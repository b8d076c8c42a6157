//===- RegisterShares.cpp - a producer's registers for the others ---------===//
#include "lowlp/Target/RegisterShares.h"

#include "lowlp/Target/TargetInfo.h"

#include <algorithm>

using namespace lowlp;

RegisterShares lowlp::getRegisterShares(int64_t numWorkers) {
  constexpr int64_t kProducerThreads = 128, kLeast = 32;
  // setmaxnreg takes multiples of 8, up to 256; the least is kept for loops of
  // copies.
  auto share = [](int64_t registers, int64_t threads) -> int64_t {
    return std::min<int64_t>(registers / threads / 8 * 8, 248);
  };
  int64_t numThreads = numWorkers + kProducerThreads;
  int64_t launch = share(TargetInfo::kRegistersPerSM, numThreads);
  int64_t all = launch * numThreads;
  int64_t worker = share(all - kLeast * kProducerThreads, numWorkers);
  return {launch, share(all - worker * numWorkers, kProducerThreads), worker};
}
