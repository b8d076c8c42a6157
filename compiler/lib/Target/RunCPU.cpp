//===- RunCPU.cpp - compile host code in memory and run it ----------------===//
//
// llvm dialect -> LLVM IR -> passes -> machine code (LLJIT). All but level 3 of
// optimisation is about the time until a program has run once.
// Compiled code sees these names: its own, the executor's functions, functions
// of f32 such as exp2f, and conversions between f32 and the 16-bit floats,
// which are spelled out here because the libraries of the host need not have
// them.
//
// All kernels are looked up on creation, so that running only reads.
//
// LLVM tells how large the frames of functions became, and a launch gives its
// threads stacks on which all of them have room at once.
//
// A host without bf16 keeps a bf16 that lives from one basic block to the next
// in a register of f32, and on the way back makes every NaN a quiet one. Tiles
// are moved and viewed as bits, so those values go by way of the stack.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Target/RunCPU.h"

#include "HalfConversions.h"
#include "LLVMBackend.h"
#include "MathFunctions.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SCCP.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/Scalarizer.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Local.h"

#include <mutex>

using namespace llvm;
using namespace lowlp;

struct CpuProgram::Code {
  LLVMErrors errors;
  std::unique_ptr<orc::LLJIT> jit;
  bool hasLoops = false;
  StringMap<LowlpKernelFn> kernels;
};

CpuProgram::CpuProgram(std::unique_ptr<Code> code) : code(std::move(code)) {}
CpuProgram::~CpuProgram() = default;

/// A description of this host whose code gives the same bits on every host.
static Expected<orc::JITTargetMachineBuilder> describeHost() {
  static std::once_flag initialized;
  std::call_once(initialized, [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    InitializeNativeTargetAsmParser();
  });
  Expected<orc::JITTargetMachineBuilder> host =
      orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return host.takeError();
  host->getOptions().AllowFPOpFusion = FPOpFusion::Strict;
  // These conversions to bf16 flush subnormals to zero.
  if (host->getTargetTriple().isX86())
    host->addFeatures({"-avx512bf16", "-avxneconvert"});
  return host;
}

/// Makes the functions that compiled code calls known to `jit`.
static Error defineSymbols(orc::LLJIT &jit) {
  int64_t count = 0;
  const LowlpCpuSymbol *functions = lowlpCpuSymbols(&count);
  orc::SymbolMap symbols;
  auto define = [&](const LowlpCpuSymbol &symbol) {
    symbols[jit.mangleAndIntern(symbol.name)] = {
        orc::ExecutorAddr::fromPtr(symbol.address),
        JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  };
  for (const LowlpCpuSymbol &symbol : ArrayRef(functions, count))
    define(symbol);
  for (const LowlpCpuSymbol &symbol : getHalfConversions())
    define(symbol);
  for (const LowlpCpuSymbol &symbol : getMathFunctions())
    define(symbol);
  return jit.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
}

static bool isBFloat(const Value &value) {
  return value.getType()->getScalarType()->isBFloatTy();
}

/// Puts every value that `isMeant` and that lives beyond its basic block on the
/// stack.
static void demote(Function &function,
                   function_ref<bool(const Value &)> isMeant) {
  SmallVector<PHINode *> joins;
  for (Instruction &instruction : instructions(function))
    if (auto *join = dyn_cast<PHINode>(&instruction); join && isMeant(*join))
      joins.push_back(join);
  for (PHINode *join : joins)
    DemotePHIToStack(join);
  SmallVector<Instruction *> longLived;
  for (Instruction &instruction : instructions(function))
    if (isMeant(instruction) && !isa<AllocaInst>(instruction) &&
        instruction.isUsedOutsideOfBlock(instruction.getParent()))
      longLived.push_back(&instruction);
  for (Instruction *instruction : longLived)
    DemoteRegToStack(*instruction);
}

/// Whether so many values live beyond their basic blocks that to give each a
/// register or a place would take LLVM time and memory that grow with the
/// square of their number.
static bool holdsTooMuch(const Function &function) {
  constexpr int kMost = 1000;
  int count = 0;
  for (const Instruction &instruction : instructions(function))
    if (isa<PHINode>(instruction) ||
        instruction.isUsedOutsideOfBlock(instruction.getParent()))
      if (++count > kMost)
        return true;
  return false;
}

/// Readies a function for the generation of code.
static void makeReady(Function &function) {
  if (function.isDeclaration())
    return;
  function.addFnAttr("warn-stack-size", "0");
  bool holdsMuch = holdsTooMuch(function);
  demote(function,
         [&](const Value &value) { return holdsMuch || isBFloat(value); });
}

/// The most elements of a vector in the module.
static unsigned findWidestVector(const Module &module) {
  unsigned most = 0;
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function))
      if (auto *vector = dyn_cast<FixedVectorType>(instruction.getType()))
        most = std::max(most, vector->getNumElements());
  return most;
}

/// Has vectors split into scalars before all else, where that is quicker than
/// to let LLVM split vectors beyond any register of the host, one by one. The
/// time that both take grows with the square of the elements, but LLVM's begins
/// at more than a minute for 256.
static void splitVectors(const Module &module, ModulePassManager &passes) {
  constexpr unsigned kLeast = 64, kMost = 512;
  unsigned widest = findWidestVector(module);
  if (widest >= kLeast && widest <= kMost)
    passes.addPass(createModuleToFunctionPassAdaptor(ScalarizerPass()));
}

/// Whether a module has so many basic blocks that LLVM's passes would take
/// minutes: some look at all branches in front of each.
static bool hasTooManyBlocks(const Module &module) {
  constexpr size_t kMost = 4000;
  return llvm::any_of(
      module, [](const Function &function) { return function.size() > kMost; });
}

/// Adds the few passes after which there is less code to generate. Most of a
/// program are calls of the executor, about which no pass knows more, and most
/// programs run for less time than LLVM's standard pipeline would take.
static void addQuickPasses(ModulePassManager &passes) {
  FunctionPassManager quick;
  quick.addPass(SROAPass(SROAOptions::ModifyCFG));
  quick.addPass(EarlyCSEPass());
  quick.addPass(SCCPPass());
  quick.addPass(SimplifyCFGPass());
  quick.addPass(ADCEPass());
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(quick)));
}

/// Runs passes over `module`: none that make it faster at `optLevel` 0, those
/// that pay at once at 1 and 2, and LLVM's standard pipeline at 3.
static void optimize(Module &module, TargetMachine &machine,
                     unsigned optLevel) {
  if (hasTooManyBlocks(module))
    optLevel = 0;
  auto addPasses = [&](PassBuilder &builder, ModulePassManager &passes) {
    splitVectors(module, passes);
    if (optLevel == 0 || optLevel == 3)
      addStandardPasses(builder, passes, optLevel);
    else
      addQuickPasses(passes);
  };
  runPasses(module, machine, addPasses);
}

static Error addModule(orc::LLJIT &jit, mlir::Operation *op,
                       TargetMachine &machine, unsigned optLevel,
                       LLVMErrors &errors) {
  auto context = std::make_unique<LLVMContext>();
  errors.listenTo(*context);
  Expected<std::unique_ptr<Module>> module =
      translateToLLVMIR(op, *context, "lowlp-host");
  if (!module)
    return module.takeError();
  optimize(**module, machine, optLevel);
  for (Function &function : **module)
    makeReady(function);
  if (Error error = errors.take())
    return error;
  return jit.addIRModule(
      orc::ThreadSafeModule(std::move(*module), std::move(context)));
}

Expected<std::unique_ptr<CpuProgram>>
CpuProgram::create(mlir::Operation *module, unsigned optLevel) {
  auto kernels = module->getAttrOfType<mlir::DictionaryAttr>("lowlp.kernels");
  if (!kernels)
    return createStringError("the module describes no kernels: it did not go "
                             "through lowlp-to-cpu");
  if (optLevel > 3)
    return createStringError("the optimisation level must be 0 to 3, but is " +
                             Twine(optLevel));
  Expected<orc::JITTargetMachineBuilder> host = describeHost();
  if (!host)
    return host.takeError();
  // Code takes a third of the time to generate without optimisation, and runs
  // a fifth longer, since most of its time is the executor's.
  host->setCodeGenOptLevel(optLevel == 3 ? CodeGenOptLevel::Aggressive
                                         : CodeGenOptLevel::None);
  Expected<std::unique_ptr<TargetMachine>> machine =
      host->createTargetMachine();
  if (!machine)
    return machine.takeError();
  Expected<std::unique_ptr<orc::LLJIT>> jit =
      orc::LLJITBuilder().setJITTargetMachineBuilder(*host).create();
  if (!jit)
    return jit.takeError();
  if (Error error = defineSymbols(**jit))
    return std::move(error);
  auto code = std::make_unique<Code>();
  if (Error error = addModule(**jit, module, **machine, optLevel, code->errors))
    return std::move(error);
  code->hasLoops = mlir::SymbolTable::lookupSymbolIn(module, "lowlpCpuPoll");
  for (mlir::NamedAttribute kernel : kernels) {
    StringRef name = kernel.getName();
    Expected<orc::ExecutorAddr> address = (*jit)->lookup(name);
    if (!address)
      return address.takeError();
    if (Error error = code->errors.take())
      return std::move(error);
    code->kernels[name] = address->toPtr<LowlpKernelFn>();
  }
  code->jit = std::move(*jit);
  return std::unique_ptr<CpuProgram>(new CpuProgram(std::move(code)));
}

/// Whether a launch of a kernel without loops ends at once, so that to begin a
/// thread that can be stopped would be most of its time.
static bool endsAtOnce(const cpu::LaunchConfig &config) {
  constexpr double kMostThreads = 1 << 14;
  double threads = 1;
  for (int dim = 0; dim < 3; ++dim)
    threads *= double(config.grid[dim]) * double(config.block[dim]);
  return threads <= kMostThreads;
}

Expected<cpu::LaunchReport> CpuProgram::run(StringRef kernel,
                                            cpu::LaunchConfig config) const {
  auto found = code->kernels.find(kernel);
  if (found == code->kernels.end())
    return createStringError("there is no kernel '" + kernel + "'");
  config.kernel = found->second;
  if (!code->hasLoops && endsAtOnce(config))
    config.shouldStop = nullptr;
  config.stackBytes = static_cast<int64_t>(code->errors.getFrameBytes());
  return cpu::launch(config);
}
