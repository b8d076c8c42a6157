//===- CpuProgramTest.cpp - Thread-level programs, compiled and run -------===//

#include "CPULauncher.h"

#include "lowlp/InitAll.h"
#include "lowlp/Target/RunCPU.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>

using namespace lowlp;

namespace {

/// A kernel `f` of 32 threads with the given parameters and body, compiled.
llvm::Expected<std::unique_ptr<CpuProgram>>
compile(const std::string &parameters, const std::string &body,
        unsigned optLevel = 2) {
  static const mlir::DialectRegistry registry = [] {
    mlir::DialectRegistry all;
    registerAllDialects(all);
    registerAllPasses();
    return all;
  }();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  std::string text =
      "gpu.module @kernels { gpu.func @f(" + parameters +
      ") kernel attributes {known_block_size = array<i32: 32, 1, "
      "1>} {\n" +
      body + "\ngpu.return } }";
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return llvm::createStringError("does not parse");
  mlir::PassManager passes(&context);
  if (failed(mlir::parsePassPipeline("lowlp-convert-thread-to-cpu", passes)) ||
      failed(passes.run(*module)))
    return llvm::createStringError("does not lower");
  return CpuProgram::create(*module, optLevel);
}

/// Compiles, or ends the test.
std::unique_ptr<CpuProgram> compiled(const std::string &parameters,
                                     const std::string &body,
                                     unsigned optLevel = 2) {
  auto program = compile(parameters, body, optLevel);
  if (program)
    return std::move(*program);
  ADD_FAILURE() << llvm::toString(program.takeError());
  std::abort();
}

/// The report of `f`, run on one block with the arguments of `launcher`.
cpu::LaunchReport run(const CpuProgram &program, Launcher &launcher) {
  launcher.args = launcher.argumentPlaces();
  auto report = program.run("f", launcher);
  EXPECT_TRUE(bool(report));
  return *report;
}

uint16_t toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits >> 16;
}

// Lane 4g + t of m16n8k16 holds, of A (16 x 16, row-major),
//   a0 a1: row g,     columns 2t, 2t+1      a4 a5: row g,     columns 2t+8,
//   2t+9 a2 a3: row g + 8, columns 2t, 2t+1      a6 a7: row g + 8, columns
//   2t+8, 2t+9
// of B (16 x 8, kept by columns) b0 b1: rows 2t, 2t+1, b2 b3: rows 2t+8, 2t+9
// of column g, and of D d0 d1: row g, columns 2t, 2t+1, d2 d3: row g + 8.
const char *const mmaBody = R"(
  %lane = gpu.thread_id x
  %lane64 = arith.index_cast %lane : index to i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %c4 = arith.constant 4 : i64
  %c5 = arith.constant 5 : i64
  %c16 = arith.constant 16 : i64
  %c256 = arith.constant 256 : i64
  %g = arith.shrui %lane64, %c2 : i64
  %t = arith.andi %lane64, %c3 : i64
  %t4 = arith.muli %t, %c4 : i64
  %row = arith.shli %g, %c5 : i64
  %at = arith.addi %row, %t4 : i64
  %at8 = arith.addi %at, %c256 : i64
  %atk = arith.addi %at, %c16 : i64
  %at8k = arith.addi %at8, %c16 : i64
  %a01 = simt.load %pa[%at] align 4 : !simt.ptr<global> -> vector<2xbf16>
  %a23 = simt.load %pa[%at8] align 4 : !simt.ptr<global> -> vector<2xbf16>
  %a45 = simt.load %pa[%atk] align 4 : !simt.ptr<global> -> vector<2xbf16>
  %a67 = simt.load %pa[%at8k] align 4 : !simt.ptr<global> -> vector<2xbf16>
  %a03 = vector.shuffle %a01, %a23 [0, 1, 2, 3] : vector<2xbf16>, vector<2xbf16>
  %a47 = vector.shuffle %a45, %a67 [0, 1, 2, 3] : vector<2xbf16>, vector<2xbf16>
  %a = vector.shuffle %a03, %a47 [0, 1, 2, 3, 4, 5, 6, 7] : vector<4xbf16>, vector<4xbf16>
  %b01 = simt.load %pb[%at] align 4 : !simt.ptr<global> -> vector<2xbf16>
  %b23 = simt.load %pb[%atk] align 4 : !simt.ptr<global> -> vector<2xbf16>
  %b = vector.shuffle %b01, %b23 [0, 1, 2, 3] : vector<2xbf16>, vector<2xbf16>
  %c = arith.constant dense<1.0> : vector<4xf32>
  %first = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %d = scf.for %i = %first to %two step %one iter_args(%sum = %c) -> (vector<4xf32>) {
    %next = simt.mma %a, %b, %sum : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
    scf.yield %next : vector<4xf32>
  }
  %low = vector.extract_strided_slice %d {offsets = [0], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
  %high = vector.extract_strided_slice %d {offsets = [2], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
  %dt = arith.addi %row, %t4 : i64
  %dt2 = arith.addi %dt, %t4 : i64
  %dt8 = arith.addi %dt2, %c256 : i64
  simt.store %low, %pd[%dt2] align 8 : vector<2xf32>, !simt.ptr<global>
  simt.store %high, %pd[%dt8] align 8 : vector<2xf32>, !simt.ptr<global>
)";

TEST(CpuProgram, multipliesAsFloat64Does) {
  auto program = compiled(
      "%pa: !simt.ptr<global>, %pb: !simt.ptr<global>, %pd: !simt.ptr<global>",
      mmaBody);
  std::mt19937 random(1);
  std::vector<uint16_t> a(16 * 16), b(8 * 16);
  std::vector<double> exactA, exactB;
  auto fill = [&](std::vector<uint16_t> &bits, std::vector<double> &exact) {
    for (uint16_t &value : bits) {
      value = toBF16(std::normal_distribution<float>()(random));
      uint32_t wide = uint32_t(value) << 16;
      float single;
      std::memcpy(&single, &wide, sizeof(single));
      exact.push_back(single);
    }
  };
  fill(a, exactA);
  fill(b, exactB);
  std::vector<float> d(16 * 8);
  Launcher launcher(nullptr, 1, 32);
  launcher.pass(a, "a", false).pass(b, "b", false).pass(d, "d", true);
  cpu::LaunchReport report = run(*program, launcher);
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(report.mmas, 2u);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      double sum = 1;
      for (int k = 0; k < 16; ++k)
        sum += 2 * exactA[row * 16 + k] * exactB[column * 16 + k];
      EXPECT_NEAR(d[row * 8 + column], sum, 1e-5) << row << ", " << column;
    }
}

TEST(CpuProgram, namesOpAndPlaceOfAnAccessOutOfBounds) {
  auto program = compiled("%p: !simt.ptr<global>, %offset: i64", R"(
    %v = simt.load %p[%offset] align 4 : !simt.ptr<global> -> i32
        loc("lowlp.load_global"("fig2.mlir":12:8))
    simt.store %v, %p[%offset] align 4 : i32, !simt.ptr<global>)");
  std::vector<int32_t> memory(4);
  int64_t offset = 16;
  Launcher launcher(nullptr, 1, 1);
  launcher.pass(memory, "weights", true).passScalar(offset);
  cpu::LaunchReport report = run(*program, launcher);
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.error.rfind("lowlp.load_global at fig2.mlir:12:8", 0), 0u)
      << report.error;
  EXPECT_NE(report.error.find("weights"), std::string::npos) << report.error;
  offset = 12;
  report = run(*program, launcher);
  EXPECT_TRUE(report.ok) << report.error;
}

TEST(CpuProgram, reportsAFalseAssertion) {
  auto program = compiled("%holds: i32", R"(
    %zero = arith.constant 0 : i32
    %condition = arith.cmpi ne, %holds, %zero : i32
    simt.assert %condition, "element lies outside of the view")");
  int32_t holds = 0;
  Launcher launcher(nullptr, 1, 32);
  launcher.passScalar(holds);
  cpu::LaunchReport report = run(*program, launcher);
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.error.find("element lies outside of the view"),
            std::string::npos)
      << report.error;
  holds = 1;
  EXPECT_TRUE(run(*program, launcher).ok);
}

TEST(CpuProgram, exchangesAndWaits) {
  auto program = compiled("%p: !simt.ptr<global>", R"(
    %lane = gpu.thread_id x
    %lane64 = arith.index_cast %lane : index to i64
    %c4 = arith.constant 4 : i64
    %offset = arith.muli %lane64, %c4 : i64
    %v = simt.load %p[%offset] align 4 : !simt.ptr<global> -> f32
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %w, %valid = gpu.shuffle xor %v, %one, %width : f32
    gpu.barrier
    simt.store %w, %p[%offset] align 4 : f32, !simt.ptr<global>)");
  std::vector<float> memory;
  for (int lane = 0; lane < 32; ++lane)
    memory.push_back(lane);
  Launcher launcher(nullptr, 1, 32);
  launcher.pass(memory, "p", true);
  cpu::LaunchReport report = run(*program, launcher);
  ASSERT_TRUE(report.ok) << report.error;
  EXPECT_EQ(report.barriers, 1u);
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(memory[lane], lane ^ 1);
}

// 1 + 2^-8 lies between the bf16 1 and 1 + 2^-7 and goes to the even one;
// 2^-133 is the smallest subnormal; 1 + 2^-11 lies between the f16 1 and 1 +
// 2^-10.
TEST(CpuProgram, roundsToHalvesOnceAndKeepsSubnormals) {
  for (unsigned optLevel : {0, 3}) {
    auto program =
        compiled("%x: f32, %y: f32, %z: f32, %p: !simt.ptr<global>", R"(
      %c0 = arith.constant 0 : i64
      %c2 = arith.constant 2 : i64
      %c4 = arith.constant 4 : i64
      %xb = arith.truncf %x : f32 to bf16
      %yb = arith.truncf %y : f32 to bf16
      %zh = arith.truncf %z : f32 to f16
      simt.store %xb, %p[%c0] align 2 : bf16, !simt.ptr<global>
      simt.store %yb, %p[%c2] align 2 : bf16, !simt.ptr<global>
      simt.store %zh, %p[%c4] align 2 : f16, !simt.ptr<global>)",
                 optLevel);
    float x = 1 + std::ldexp(1.0f, -8);
    float y = std::ldexp(1.0f, -133);
    float z = 1 + std::ldexp(3.0f, -11);
    std::vector<uint16_t> halves(3);
    Launcher launcher(nullptr, 1, 1);
    launcher.passScalar(x).passScalar(y).passScalar(z).pass(halves, "p", true);
    cpu::LaunchReport report = run(*program, launcher);
    ASSERT_TRUE(report.ok) << report.error;
    EXPECT_EQ(halves[0], 0x3f80);
    EXPECT_EQ(halves[1], 0x0001);
    EXPECT_EQ(halves[2], 0x3c02);
  }
}

TEST(CpuProgram, runsFromSeveralThreadsAtOnce) {
  auto program = compiled("%p: !simt.ptr<global>, %v: i32", R"(
    %c0 = arith.constant 0 : i64
    %old = simt.atomic_rmw add %v, %p[%c0] : i32, <global>)");
  std::vector<std::thread> threads;
  for (int32_t value = 1; value <= 4; ++value)
    threads.emplace_back([&program, value] {
      std::vector<int32_t> sum(1);
      int32_t summand = value;
      Launcher launcher(nullptr, 8, 32);
      launcher.pass(sum, "p", true).passScalar(summand);
      EXPECT_TRUE(run(*program, launcher).ok);
      EXPECT_EQ(sum[0], 8 * 32 * value);
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(CpuProgram, refusesWhatItCannotRun) {
  auto program = compiled("", "");
  auto report = program->run("g", cpu::LaunchConfig());
  ASSERT_FALSE(bool(report));
  EXPECT_EQ(llvm::toString(report.takeError()), "there is no kernel 'g'");
  auto tooFar = compile("", "", /*optLevel=*/4);
  ASSERT_FALSE(bool(tooFar));
  EXPECT_EQ(llvm::toString(tooFar.takeError()),
            "the optimisation level must be 0 to 3, but is 4");
}

} // namespace
