//===- CompilerModule.cpp - the module _compiler --------------------------===//
//
// Kernels that run on the CPU, over lowlp's C API. No Python object is touched
// while a kernel compiles or runs, so other Python threads go on; but the
// thread that launched looks for signals now and then.
//
//===----------------------------------------------------------------------===//
#include "lowlp-c/Lowlp.h"
#include "mlir/Bindings/Python/Nanobind.h"
#include "mlir/Bindings/Python/NanobindAdaptors.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

using Extents = std::array<int64_t, 3>;
/// Kind and value.
using Argument = std::tuple<std::string, nb::object>;
/// Address, bytes, name, whether it may be written and whether it holds values.
using Memory = std::tuple<uint64_t, int64_t, std::string, bool, bool>;

void append(MlirStringRef text, void *to) {
  static_cast<std::string *>(to)->append(text.data, text.length);
}

/// Runs a program that is a function, without holding up other Python threads.
template <int (*main)(int, char **)>
int runTool(std::vector<std::string> arguments) {
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  nb::gil_scoped_release release;
  return main(static_cast<int>(arguments.size()), argv.data());
}

/// The value of one argument of a kernel, as the kernel reads it.
union Value {
  uint64_t pointer;
  int64_t i64;
  int32_t i32;
  float f32;
};

Value readValue(const Argument &argument) {
  const auto &[kind, object] = argument;
  Value value = {};
  if (kind == "ptr")
    value.pointer = nb::cast<uint64_t>(object);
  else if (kind == "i64")
    value.i64 = nb::cast<int64_t>(object);
  else if (kind == "i32")
    value.i32 = nb::cast<int32_t>(object);
  else if (kind == "f32")
    value.f32 = nb::cast<float>(object);
  else
    throw nb::value_error(("the kind of an argument must be 'ptr', 'i32', "
                           "'i64' or 'f32', but is '" +
                           kind + "'")
                              .c_str());
  return value;
}

nb::dict toDict(const LowlpLaunchCounters &counters) {
  nb::dict dict;
  dict["loads"] = counters.loads;
  dict["stores"] = counters.stores;
  dict["bytes_loaded"] = counters.bytesLoaded;
  dict["bytes_stored"] = counters.bytesStored;
  dict["mmas"] = counters.mmas;
  dict["barriers"] = counters.barriers;
  dict["shuffles"] = counters.shuffles;
  dict["atomics"] = counters.atomics;
  dict["blocks"] = counters.blocks;
  return dict;
}

/// Whether a signal's handler has raised an exception, such as
/// KeyboardInterrupt, which is then this thread's current one.
int32_t raisedBySignal(void *) {
  nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

/// Appends the counts of one op to a list of them.
void appendSite(const LowlpSiteTraffic *traffic, void *to) {
  static_cast<std::vector<std::pair<std::string, LowlpSiteTraffic>> *>(to)
      ->emplace_back(traffic->site, *traffic);
}

nb::list
toList(const std::vector<std::pair<std::string, LowlpSiteTraffic>> &sites) {
  nb::list list;
  for (const auto &[name, traffic] : sites) {
    nb::dict site;
    site["site"] = name;
    site["accesses"] = traffic.accesses;
    site["bytes"] = traffic.bytes;
    site["requests"] = traffic.requests;
    site["sectors"] = traffic.sectors;
    site["extra_passes"] = traffic.extraPasses;
    list.append(site);
  }
  return list;
}

std::string toString(MlirStringRef text) { return {text.data, text.length}; }

/// Collects what passes say in a context, from `start` to `stop`.
class Remarks {
public:
  explicit Remarks(MlirContext context) : context(context) {}
  Remarks(const Remarks &) = delete;
  ~Remarks() { stop(); }

  void start() {
    lowlpContextSetRemarkCallback(context, append, this);
    isOn = true;
  }

  void stop() {
    if (isOn)
      lowlpContextSetRemarkCallback(context, nullptr, nullptr);
    isOn = false;
  }

  nb::list get() const {
    nb::list list;
    for (const Remark &remark : remarks)
      list.append(nb::make_tuple(remark.declined, remark.pass, remark.what,
                                 remark.kernel, remark.op, remark.text,
                                 remark.file, remark.line));
    return list;
  }

private:
  struct Remark {
    bool declined;
    std::string pass, what, kernel, op, text, file;
    uint32_t line;
  };

  /// Touches no Python object: passes may run without its lock.
  static void append(const LowlpRemark *remark, void *to) {
    static_cast<Remarks *>(to)->remarks.push_back(
        {remark->declined != 0, toString(remark->pass), toString(remark->what),
         toString(remark->kernel), toString(remark->op), toString(remark->text),
         toString(remark->file), remark->line});
  }

  MlirContext context;
  std::vector<Remark> remarks;
  bool isOn = false;
};

class CpuProgram {
public:
  CpuProgram(MlirOperation module, int optLevel) {
    std::string error;
    {
      nb::gil_scoped_release release;
      program = lowlpCpuProgramCreate(module, optLevel, append, &error);
    }
    if (!program.ptr)
      throw std::runtime_error(error);
  }
  CpuProgram(const CpuProgram &) = delete;
  ~CpuProgram() { lowlpCpuProgramDestroy(program); }

  nb::dict run(const std::string &name, const Extents &grid,
               const Extents &block, int64_t sharedBytes,
               const std::vector<Argument> &arguments,
               const std::vector<Memory> &memory, uint64_t seed,
               int32_t workers, uint32_t checks, bool countsSites) const {
    std::vector<Value> values;
    for (const Argument &argument : arguments)
      values.push_back(readValue(argument));
    std::vector<void *> places;
    for (Value &value : values)
      places.push_back(&value);
    std::vector<LowlpAllocation> allocations;
    for (const auto &[address, bytes, label, writable, initialised] : memory)
      allocations.push_back({reinterpret_cast<const void *>(address), bytes,
                             label.c_str(), writable, initialised});
    LowlpLaunchConfig launch = {};
    std::copy(grid.begin(), grid.end(), launch.grid);
    std::copy(block.begin(), block.end(), launch.block);
    launch.sharedBytes = sharedBytes;
    launch.args = places.data();
    launch.allocations = allocations.data();
    launch.numAllocations = static_cast<int64_t>(allocations.size());
    launch.seed = seed;
    launch.workers = workers;
    launch.checks = checks;
    launch.shouldStop = raisedBySignal;
    std::vector<std::pair<std::string, LowlpSiteTraffic>> sites;
    if (countsSites)
      launch.onSite = appendSite;
    launch.onSiteData = &sites;
    LowlpLaunchCounters counters = {};
    std::string error;
    bool ok;
    {
      nb::gil_scoped_release release;
      ok = lowlpCpuProgramRun(program,
                              mlirStringRefCreate(name.data(), name.size()),
                              &launch, &counters, append, &error);
    }
    if (PyErr_Occurred())
      throw nb::python_error();
    if (!ok)
      throw std::runtime_error(error);
    nb::dict dict = toDict(counters);
    if (countsSites)
      dict["sites"] = toList(sites);
    return dict;
  }

private:
  LowlpCpuProgram program = {nullptr};
};

} // namespace

NB_MODULE(_compiler, m) {
  m.doc() =
      "runs kernels of lowlp on the CPU and the tools, tells what GPUs have";
  m.def("run_opt", &runTool<lowlpRunOpt>, nb::arg("arguments"),
        "Runs lowlp-opt and returns its exit status. The first argument is the "
        "name of the program.");
  m.def("run_lsp_server", &runTool<lowlpRunLspServer>, nb::arg("arguments"),
        "Runs lowlp-lsp-server and returns its exit status. The first argument "
        "is the name of the program.");
  m.def(
      "describe_targets",
      [] {
        std::string text;
        lowlpDescribeTargets(append, &text);
        return text;
      },
      "The architectures as JSON, as lowlpDescribeTargets gives it.");
  m.attr("CHECK_BOUNDS") = uint32_t(LowlpCheckBounds);
  m.attr("CHECK_RACES") = uint32_t(LowlpCheckRaces);
  m.attr("CHECK_UNINITIALISED") = uint32_t(LowlpCheckUninitialised);
  nb::class_<Remarks>(
      m, "Remarks",
      "What passes say of what they did in a context, and did not and why, "
      "between `start` and `stop`. The context must live as long.")
      .def(nb::init<MlirContext>(), nb::arg("context"), nb::keep_alive<1, 2>())
      .def("start", &Remarks::start)
      .def("stop", &Remarks::stop)
      .def("get", &Remarks::get,
           "A tuple for each remark: whether the pass declined, the pass, what "
           "it did or declined, the kernel, the op, the reason or which, and "
           "file and line, '' and 0 where they are not known.");
  nb::class_<CpuProgram>(
      m, "CpuProgram",
      "The kernels of one module, compiled for this host. `module_op` is a "
      "module that lowlp-to-cpu has gone over; `opt_level`, 0 to 3, is LLVM's. "
      "Raises RuntimeError if it does not compile.")
      .def(nb::init<MlirOperation, int>(), nb::arg("module_op"),
           nb::arg("opt_level") = 3)
      .def("run", &CpuProgram::run, nb::arg("name"), nb::arg("grid"),
           nb::arg("block"), nb::arg("shared_bytes"), nb::arg("args"),
           nb::arg("allocations"), nb::arg("seed") = 0, nb::arg("workers") = 0,
           nb::arg("checks") = uint32_t(LowlpCheckAll),
           nb::arg("sites") = false,
           "Runs a kernel and returns what it counted. `args` holds a kind "
           "('ptr', 'i32', 'i64' or 'f32') and a value for each argument; "
           "`allocations` address, bytes, name and writability of the memory "
           "that may be touched, and whether it holds values; `checks` is the "
           "sum of CHECK_BOUNDS, CHECK_RACES and CHECK_UNINITIALISED; with "
           "`sites` the "
           "counts of each op are the item 'sites'. Raises "
           "RuntimeError with the op and its place "
           "if the kernel does what it must not, and what a signal's handler "
           "raises meanwhile.");
}
