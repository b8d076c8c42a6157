//===- CPUWgmmaTest.cpp - Products of warpgroups on the CPU ---------------===//

#include "CPUReports.h"

#include "lowlp/CPU/HalfFloat.h"

#include <cstring>

using namespace lowlp::cpu;

namespace {

const char *const fillSite = "lowlp.store_shared at t.mlir:1:1";
const char *const productSite = "lowlp.wgmma at t.mlir:2:1";
const char *const nextSite = "lowlp.wgmma at t.mlir:3:1";
const char *const againSite = "lowlp.wgmma at t.mlir:3:9";
const char *const waitSite = "lowlp.wgmma_wait at t.mlir:4:1";
const char *const barrierSite = "lowlp.synchronize at t.mlir:5:1";
const char *const lateSite = "lowlp.store_shared at t.mlir:6:1";

constexpr int32_t columns = 8, depth = 16;
constexpr int64_t warpgroup = 128;

/// What is wrong with a program, or which correct one it is.
enum class Kind {
  Right,
  NoProxyFence,
  NoBarrier,
  FenceByOthers,
  NoWgmmaFence,
  NoCommit,
  WaitsForOlder,
  UsedTwice,
  LoopsWithoutWait,
  LoopsWithWait,
  TakenTwice,
  NoWait,
  StoresBeforeWait,
  StoresWithoutBarrier,
  StoresBehindBarrier,
  OneWarpElsewhere,
  OneWarpLeaves,
  OtherTile,
  OutsideOfMemory,
  Misaligned,
  Unwritten,
};

/// B is 8 rows of 16 integers, without a swizzle: chunk j of row r at
/// 128 j + 16 r. Element (n, k) is n - k.
float valueOfB(int n, int k) { return float(n - k); }
/// A is 64 x 16: row m, column k.
float valueOfA(int m, int k) { return float(m % 7 + (k == m % 16)); }

uint16_t half(float value) {
  // Small integers are exact; a float's bits, cut to f16's.
  if (value == 0)
    return 0;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  int32_t exponent = int32_t(bits >> 23 & 255) - 127 + 15;
  return uint16_t(bits >> 16 & 0x8000) | uint16_t(exponent << 10) |
         uint16_t(bits >> 13 & 0x3ff);
}

/// Thread 8 n + c of the first 16 * 8 stores elements.
void fillB(LowlpThread *thread, char *shared, const char *site,
           float scale = 1) {
  int64_t index = lowlpCpuThreadId(thread, 0);
  int n = int(index / depth) % columns, k = int(index % depth);
  store(thread, reinterpret_cast<uint16_t *>(shared),
        (128 * (k / 8) + 16 * n + k % 8 * 2) / 2, half(scale * valueOfB(n, k)),
        site);
}

/// The lane's fragment of A: as mma m16n8k16, for the 16 rows of its warp.
void getA(LowlpThread *thread, uint16_t *a) {
  int index = int(lowlpCpuThreadId(thread, 0));
  int warp = index / 32 % 4, group = index % 32 / 4, place = index % 4;
  for (int r = 0; r < 4; ++r)
    for (int j = 0; j < 2; ++j)
      a[2 * r + j] = half(valueOfA(16 * warp + group + (r & 1 ? 8 : 0),
                                   2 * place + (r & 2 ? 8 : 0) + j));
}

int64_t multiply(LowlpThread *thread, char *shared, int64_t accumulators,
                 const char *site, int64_t byteOffset = 0) {
  uint16_t a[8];
  getA(thread, a);
  return lowlpCpuWgmma(thread, LowlpMmaM16N8K16F16, columns, a, shared,
                       byteOffset, /*swizzleBytes=*/0, /*leadingBytes=*/128,
                       /*strideBytes=*/256, nullptr, accumulators, site);
}

template <Kind kind> void kernel(LowlpThread *t, void *const *args) {
  lowlpCpuTrackOrder(t);
  auto *shared = static_cast<char *>(lowlpCpuSharedMemory(t, 0));
  int64_t index = lowlpCpuThreadId(t, 0);
  if (index < warpgroup && kind != Kind::Unwritten)
    fillB(t, shared, fillSite);
  bool fences = kind != Kind::NoProxyFence;
  if (kind == Kind::FenceByOthers)
    fences = index >= 64;
  if (fences)
    lowlpCpuFenceAsync(t);
  if (kind != Kind::NoBarrier)
    lowlpCpuBarrier(t, barrierSite);
  if (kind != Kind::NoWgmmaFence)
    lowlpCpuWgmmaFence(t, productSite);
  if (kind == Kind::OneWarpElsewhere && index / 32 == 2)
    lowlpCpuBarrier(t, waitSite);
  if (kind == Kind::OneWarpLeaves && index / 32 == 2)
    return;
  int64_t offset = kind == Kind::OtherTile && index == 77 ? 16
                   : kind == Kind::OutsideOfMemory        ? 8192
                   : kind == Kind::Misaligned             ? 8
                                                          : 0;
  int64_t first = multiply(t, shared, 0, productSite, offset);
  if (kind == Kind::LoopsWithoutWait || kind == Kind::LoopsWithWait) {
    lowlpCpuWgmmaCommit(t, productSite);
    if (kind == Kind::LoopsWithWait)
      lowlpCpuWgmmaWait(t, 0, waitSite);
    lowlpCpuWgmmaFence(t, productSite);
  }
  bool loops = kind == Kind::LoopsWithoutWait || kind == Kind::LoopsWithWait;
  int64_t accumulators =
      multiply(t, shared, first, loops ? productSite : nextSite);
  if (kind == Kind::UsedTwice)
    multiply(t, shared, first, againSite);
  if (kind != Kind::NoCommit)
    lowlpCpuWgmmaCommit(t, nextSite);
  if (kind == Kind::StoresBeforeWait && index == 5)
    fillB(t, shared, lateSite, 2);
  if (kind == Kind::NoWait)
    return;
  float d[4];
  lowlpCpuWgmmaWait(t, kind == Kind::WaitsForOlder, waitSite);
  if (kind == Kind::StoresBehindBarrier)
    lowlpCpuBarrier(t, waitSite);
  if ((kind == Kind::StoresWithoutBarrier ||
       kind == Kind::StoresBehindBarrier) &&
      index == 5)
    fillB(t, shared, lateSite, 2);
  lowlpCpuWgmmaTake(t, accumulators, d, waitSite);
  if (kind == Kind::TakenTwice)
    lowlpCpuWgmmaTake(t, accumulators, d, waitSite);
  // Row 16 w + l / 4 and 8 more, columns 2 (l % 4) and one more.
  int64_t row = index / 32 * 16 + index % 32 / 4;
  for (int i = 0; i < 4; ++i)
    store(t, pointerArg<int32_t>(args, 1),
          (row + (i & 2 ? 8 : 0)) * columns + index % 4 * 2 + (i & 1),
          int32_t(d[i]), "y");
}

/// Twice the product, by two warpgroups on the same A.
std::vector<int32_t> wanted(int64_t numRows) {
  std::vector<int32_t> d(size_t(numRows * columns));
  for (int m = 0; m < numRows; ++m)
    for (int n = 0; n < columns; ++n)
      for (int k = 0; k < depth; ++k)
        d[size_t(m * columns + n)] +=
            2 * int32_t(valueOfA(m % 64, k) * valueOfB(n, k));
  return d;
}

TEST(CPUWgmma, multiplies) {
  expectReport({"one warpgroup", 128, kernel<Kind::Right>, {}, wanted(64)});
  expectReport({"two warpgroups", 256, kernel<Kind::Right>, {}, wanted(128)});
  expectReport(
      {"reuse", 128, kernel<Kind::StoresBehindBarrier>, {}, wanted(64)});
}

// An instruction that comes again writes its registers of A again.
TEST(CPUWgmma, findsRegistersThatAreStillRead) {
  expectReport({"no wait in a loop",
                128,
                kernel<Kind::LoopsWithoutWait>,
                {productSite, "still reads its registers of A"}});
  expectReport(
      {"a wait in a loop", 128, kernel<Kind::LoopsWithWait>, {}, wanted(64)});
}

TEST(CPUWgmma, findsMissingOrder) {
  expectReport({"no fence of proxies",
                128,
                kernel<Kind::NoProxyFence>,
                {productSite, "missing fence: read of 16 bytes",
                 "have no fence_async between them"}});
  expectReport({"a fence by other threads",
                128,
                kernel<Kind::FenceByOthers>,
                {productSite, "missing fence"}});
  expectReport({"no barrier",
                128,
                kernel<Kind::NoBarrier>,
                {productSite, "race: read of 16 bytes", fillSite}});
  expectReport({"no fence of registers",
                128,
                kernel<Kind::NoWgmmaFence>,
                {productSite, "missing fence: no simt.wgmma_fence"}});
  expectReport({"unwritten",
                128,
                kernel<Kind::Unwritten>,
                {productSite, "uninitialised read"}});
}

TEST(CPUWgmma, findsMissingWaits) {
  expectReport({"no commit",
                128,
                kernel<Kind::NoCommit>,
                {waitSite, "the accumulators are not there yet", nextSite}});
  expectReport({"waits for older groups",
                128,
                kernel<Kind::WaitsForOlder>,
                {waitSite, "the accumulators are not there yet", nextSite}});
  expectReport({"no wait",
                128,
                kernel<Kind::NoWait>,
                {productSite, "ended before this product was waited for"}});
  expectReport({"stores before the wait",
                128,
                kernel<Kind::StoresBeforeWait>,
                {lateSite, "changes bytes that a product still reads",
                 "lowlp.wgmma at"}});
  expectReport({"stores where other warps are late",
                128,
                kernel<Kind::StoresWithoutBarrier>,
                {"lowlp."}});
}

TEST(CPUWgmma, findsAccumulatorsUsedTwice) {
  expectReport({"added to twice",
                128,
                kernel<Kind::UsedTwice>,
                {againSite, "the accumulators were used before"}});
  expectReport({"taken twice",
                128,
                kernel<Kind::TakenTwice>,
                {waitSite, "the accumulators were used before"}});
}

TEST(CPUWgmma, findsDivergence) {
  expectReport({"one warp elsewhere",
                128,
                kernel<Kind::OneWarpElsewhere>,
                {"divergent", "warpgroup", "waits at"}});
  expectReport({"one warp leaves",
                128,
                kernel<Kind::OneWarpLeaves>,
                {productSite, "exited without coming here"}});
  expectReport({"another tile",
                128,
                kernel<Kind::OtherTile>,
                {productSite, "name different tiles"}});
  expectReport({"96 threads",
                96,
                kernel<Kind::Right>,
                {productSite, "warpgroups of 128 threads", "has 96"}});
}

TEST(CPUWgmma, findsTilesElsewhere) {
  expectReport({"outside",
                128,
                kernel<Kind::OutsideOfMemory>,
                {productSite, "outside the allocation"}});
  expectReport(
      {"misaligned", 128, kernel<Kind::Misaligned>, {productSite, "aligned"}});
}

} // namespace
