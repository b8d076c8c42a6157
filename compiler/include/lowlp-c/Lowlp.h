//===- Lowlp.h - lowlp for callers in C -------------------------*- C++ -*-===//
//
// Everything that other languages need beyond MLIR's own C API: dialects and
// passes, what architectures have, running kernels on the CPU, and the tools.
// Kernels are compiled by running the pipelines of lowlp (`lowlp-to-ptx`,
// `lowlp-to-cpu`) by name. Texts that callers get are UTF-8: what is not, which
// a program's names may hold, is replaced by U+FFFD.
//
//===----------------------------------------------------------------------===//
#ifndef LOWLP_C_LOWLP_H
#define LOWLP_C_LOWLP_H

#include "lowlp/CPU/Executor.h"

#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Adds the dialects of lowlp and all those that its pipelines touch.
MLIR_CAPI_EXPORTED void lowlpRegisterAllDialects(MlirDialectRegistry registry);

/// Makes the passes and pipelines of lowlp known by name in this process.
MLIR_CAPI_EXPORTED void lowlpRegisterAllPasses(void);

/// Passes the text of a diagnostic to `onText`, at once, as mlirDiagnosticPrint
/// does in parts that need not be UTF-8.
MLIR_CAPI_EXPORTED void lowlpDiagnosticPrint(MlirDiagnostic diagnostic,
                                             MlirStringCallback onText,
                                             void *userData);

/// What a pass says of an op: that it has done something, or that it has not
/// and why. Texts are valid during the call that gets it.
typedef struct LowlpRemark {
  /// Whether the pass left the op without `what`; else it has it.
  int32_t declined;
  MlirStringRef pass, what, kernel, op;
  /// The reason, or which it got.
  MlirStringRef text;
  /// Where the op was written; empty and 0 where that is not known.
  MlirStringRef file;
  uint32_t line;
} LowlpRemark;

typedef void (*LowlpRemarkCallback)(const LowlpRemark *remark, void *userData);

/// Passes to `onRemark` what passes that run in `context` say, one remark at a
/// time, until it is called again; null: nothing any more. `userData` must live
/// as long. Replaces the context's remark engine.
MLIR_CAPI_EXPORTED void
lowlpContextSetRemarkCallback(MlirContext context, LowlpRemarkCallback onRemark,
                              void *userData);

/// Passes the table of architectures to `onText`, at once, as JSON: a list with
/// an object for each, from the oldest. Its "instructions" say how many machine
/// instructions carry out each instruction of PTX: 0 where it is absent, 1
/// where it is native, more where it is emulated.
MLIR_CAPI_EXPORTED void lowlpDescribeTargets(MlirStringCallback onText,
                                             void *userData);

/// Runs `lowlp-opt` and returns its exit status. At most once in a process,
/// like the next.
MLIR_CAPI_EXPORTED int lowlpRunOpt(int argc, char **argv);

/// Runs `lowlp-lsp-server` and returns its exit status.
MLIR_CAPI_EXPORTED int lowlpRunLspServer(int argc, char **argv);

/// Kernels compiled for this host; null if they did not compile.
typedef struct LowlpCpuProgram {
  void *ptr;
} LowlpCpuProgram;

/// Compiles the kernels of `module`, which `lowlp-to-cpu` has gone over, at
/// LLVM's `optLevel`, 0 to 3. Returns null after passing the reason to
/// `onError`. The caller destroys the program.
MLIR_CAPI_EXPORTED LowlpCpuProgram
lowlpCpuProgramCreate(MlirOperation module, int32_t optLevel,
                      MlirStringCallback onError, void *userData);

MLIR_CAPI_EXPORTED void lowlpCpuProgramDestroy(LowlpCpuProgram program);

/// Runs `kernel` as `launch` says, whose fields `kernel` and `stackBytes` are
/// not read. Returns
/// false after passing to `onError` what went wrong: a violation with its op
/// and place, or the name of a kernel that does not exist. Fills `counters` in
/// either case unless it is null. May be called from several threads at once.
MLIR_CAPI_EXPORTED bool lowlpCpuProgramRun(LowlpCpuProgram program,
                                           MlirStringRef kernel,
                                           const LowlpLaunchConfig *launch,
                                           LowlpLaunchCounters *counters,
                                           MlirStringCallback onError,
                                           void *userData);

#ifdef __cplusplus
}
#endif

#endif // LOWLP_C_LOWLP_H
