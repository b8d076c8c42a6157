//===- RunCPU.h - compile host code in memory and run it --------*- C++ -*-===//
#ifndef LOWLP_TARGET_RUNCPU_H
#define LOWLP_TARGET_RUNCPU_H

#include "lowlp/CPU/Executor.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir {
class Operation;
} // namespace mlir

namespace lowlp {

/// The kernels of one module as machine code of this host. Compiled once, run
/// any number of times, from any number of threads at once.
class CpuProgram {
public:
  /// Compiles `module`, which `lowlp-to-cpu` produced, at `optLevel`, 0 to 3;
  /// below 3 in as little time as goes. The context of `module` knows the
  /// dialects of `registerAllDialects`.
  /// Fails if the module is not of the llvm dialect, describes no kernels, or
  /// does not compile.
  static llvm::Expected<std::unique_ptr<CpuProgram>>
  create(mlir::Operation *module, unsigned optLevel);

  ~CpuProgram();

  /// Runs `kernel` on `config`, in which everything but the kernel is set.
  /// Fails if there is no kernel of this name; what the kernel did wrong is in
  /// the report.
  llvm::Expected<cpu::LaunchReport> run(llvm::StringRef kernel,
                                        cpu::LaunchConfig config) const;

private:
  struct Code;
  explicit CpuProgram(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code;
};

} // namespace lowlp

#endif // LOWLP_TARGET_RUNCPU_H
