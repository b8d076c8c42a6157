//===- Attributes.cpp - all attributes with the prefix lowlp. -------------===//
//
// MLIR lets any op carry any attribute, so a name that is misspelt would be
// silently without effect. The tables below list every attribute of lowlp that
// exists, who may carry it and what it must be; all others are errors.
//
//===----------------------------------------------------------------------===//
#include "NearestName.h"

#include "lowlp/IR/Lowlp.h"
#include "lowlp/IR/LowlpRings.h"
#include "lowlp/IR/Report.h"

using namespace mlir;
using namespace lowlp;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// What the value of an attribute must be.
enum class Kind {
  Unit,
  Number,
  Floats,
  Map,
  Texts,
  Dictionaries,
  DictionaryOfDictionaries,
  Schedule,
  Stages,
  Rings,
  Ring,
  Multicast,
  Report,
};

/// An attribute of ops, or an entry of a dictionary.
struct Known {
  StringLiteral name;
  /// The op that carries it, "" for an entry.
  StringLiteral op;
  Kind kind;
};

} // namespace

template <typename Element> static bool isArrayOf(Attribute attribute) {
  auto array = dyn_cast<ArrayAttr>(attribute);
  return array && llvm::all_of(array.getValue(), llvm::IsaPred<Element>);
}

static bool isNumber(Attribute attribute) {
  auto number = dyn_cast<IntegerAttr>(attribute);
  return number && number.getType().isSignlessInteger(64) &&
         !number.getValue().isNegative();
}

static bool isDictionaryOfDictionaries(Attribute attribute) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  return entries && llvm::all_of(entries, [](NamedAttribute entry) {
           return isa<DictionaryAttr>(entry.getValue());
         });
}

static bool isOf(Kind kind, Attribute attribute) {
  switch (kind) {
  case Kind::Unit:
    return isa<UnitAttr>(attribute);
  case Kind::Number:
    return isNumber(attribute);
  case Kind::Floats:
    return isArrayOf<FloatAttr>(attribute);
  case Kind::Map:
    return isa<AffineMapAttr>(attribute);
  case Kind::Texts:
    return isArrayOf<StringAttr>(attribute);
  case Kind::Dictionaries:
    return isArrayOf<DictionaryAttr>(attribute);
  case Kind::DictionaryOfDictionaries:
    return isDictionaryOfDictionaries(attribute);
  case Kind::Schedule:
    return isa<ScheduleAttr>(attribute);
  case Kind::Stages:
    return isa<StagesAttr>(attribute);
  case Kind::Rings:
    return isa<RingsAttr>(attribute);
  case Kind::Ring:
    return isa<RingAttr>(attribute);
  case Kind::Multicast:
    return isa<MulticastAttr>(attribute);
  case Kind::Report:
    return isa<DictionaryAttr>(attribute);
  }
  llvm_unreachable("all kinds are listed");
}

static StringRef describe(Kind kind) {
  switch (kind) {
  case Kind::Unit:
    return "given without a value";
  case Kind::Number:
    return "an i64 of at least 0";
  case Kind::Floats:
    return "an array of floats";
  case Kind::Map:
    return "an affine_map";
  case Kind::Texts:
    return "an array of strings";
  case Kind::Dictionaries:
    return "an array of dictionaries";
  case Kind::DictionaryOfDictionaries:
    return "a dictionary of dictionaries";
  case Kind::Schedule:
    return "a #lowlp.schedule";
  case Kind::Stages:
    return "a #lowlp.stages";
  case Kind::Rings:
    return "a #lowlp.rings";
  case Kind::Ring:
    return "a #lowlp.ring";
  case Kind::Multicast:
    return "a #lowlp.multicast";
  case Kind::Report:
    return "a dictionary";
  }
  llvm_unreachable("all kinds are listed");
}

//===----------------------------------------------------------------------===//
// Attributes of ops
//===----------------------------------------------------------------------===//

/// Stands for every op of lowlp whose result is a tile.
static constexpr StringLiteral kOpsOfTiles = "an op whose result is a tile";

static constexpr Known kKnown[] = {
    // The block level.
    {LowlpDialect::kFreeLayoutAttrName, kOpsOfTiles, Kind::Unit},
    {LowlpDialect::kStagesAttrName, "scf.for", Kind::Stages},
    {RingsAttr::kName, "scf.for", Kind::Rings},
    {RingAttr::kName, "lowlp.load_global", Kind::Ring},
    {MulticastAttr::kName, "scf.for", Kind::Multicast},
    {MulticastAttr::kName, "lowlp.copy_tensor", Kind::Multicast},
    {MulticastAttr::kName, "lowlp.alloc_mbarriers", Kind::Multicast},
    {MulticastAttr::kName, "lowlp.producer_warp", Kind::Multicast},
    {LowlpDialect::kReportAttrName, "lowlp.kernel", Kind::Report},
    // The thread level, which has no kernel op of its own.
    {LowlpDialect::kReportAttrName, "gpu.func", Kind::Report},
    {LowlpDialect::kScheduleAttrName, "gpu.func", Kind::Schedule},
    {"lowlp.grid", "gpu.func", Kind::Map},
    {"lowlp.parameters", "gpu.func", Kind::Dictionaries},
    {"lowlp.tensor_maps", "gpu.func", Kind::Dictionaries},
    {"lowlp.workspace", "gpu.func", Kind::Dictionaries},
    {"lowlp.shared_bytes", "gpu.func", Kind::Number},
    {"lowlp.producer_threads", "gpu.func", Kind::Number},
    {"lowlp.launch_registers", "gpu.func", Kind::Number},
    {"lowlp.dependent_launch", "gpu.func", Kind::Unit},
    {"lowlp.one_thread", "scf.if", Kind::Unit},
    {MulticastAttr::kName, "simt.copy_tensor", Kind::Multicast},
    {MulticastAttr::kName, "simt.mbarrier_arrive", Kind::Multicast},
    // The machine level.
    {"lowlp.kernels", "builtin.module", Kind::DictionaryOfDictionaries},
    {"lowlp.seconds", "gpu.binary", Kind::Floats},
};

/// The entries of `lowlp.report`.
static constexpr Known kReported[] = {
    {"layouts", "", Kind::Texts},         {"pipelines", "", Kind::Texts},
    {"decode_plans", "", Kind::Texts},    {"warpgroups", "", Kind::Texts},
    {"lookups", "", Kind::Texts},         {"exchanges", "", Kind::Texts},
    {"unshared_bytes", "", Kind::Number}, {"codebooks", "", Kind::Texts},
};

static constexpr StringLiteral kParameterAttributes[] = {
    LowlpDialect::kNameAttrName,
    LowlpDialect::kAlignAttrName,
    LowlpDialect::kDivisibleByAttrName,
    LowlpDialect::kConstantAttrName,
};

static SmallVector<StringRef> getNames(ArrayRef<Known> known) {
  SmallVector<StringRef> names;
  for (const Known &one : known)
    names.push_back(one.name);
  return names;
}

static bool carries(Operation *op, StringRef carrier) {
  if (carrier != kOpsOfTiles)
    return op->getName().getStringRef() == carrier;
  return isa_and_nonnull<LowlpDialect>(op->getDialect()) &&
         op->getNumResults() == 1 && isa<TileType>(op->getResult(0).getType());
}

static LogicalResult verifyReport(Operation *op, DictionaryAttr report) {
  for (NamedAttribute entry : report) {
    StringRef name = entry.getName();
    const Known *known = llvm::find_if(
        kReported, [&](const Known &one) { return one.name == name; });
    if (known == std::end(kReported))
      return op->emitOpError("lowlp.report has no entry '")
             << name << "'; the nearest is '"
             << findNearestName(name, getNames(kReported)) << "'";
    if (!isOf(known->kind, entry.getValue()))
      return op->emitOpError("the entry '")
             << name << "' of lowlp.report must be " << describe(known->kind)
             << ", but is " << entry.getValue();
  }
  return success();
}

/// Its blocks must be those of the kernel's clusters.
static LogicalResult verifyMulticast(Operation *op, MulticastAttr multicast) {
  auto kernel = op->getParentOfType<KernelOp>();
  if (!kernel)
    return success();
  int64_t cluster = kernel.getScheduleOrDefault().getCluster();
  if (multicast.getBlocks() == cluster)
    return success();
  return op->emitOpError("copies for ")
         << multicast.getBlocks()
         << " blocks, but the cluster of the kernel's schedule is " << cluster;
}

/// Reports an attribute that does not exist. What was once of its own, or is
/// taken for such, may be a field of the schedule.
static LogicalResult refuseUnknown(Operation *op, StringRef name) {
  StringRef field = name;
  field.consume_front("lowlp.");
  StringRef nearestField =
      findNearestName(field, ScheduleAttr::getFieldNames());
  SmallVector<StringRef> names = getNames(kKnown);
  llvm::append_range(names, kParameterAttributes);
  StringRef nearest = findNearestName(name, names);
  InFlightDiagnostic error = op->emitOpError("there is no attribute '")
                             << name << "'; ";
  if (field.edit_distance(nearestField) < name.edit_distance(nearest))
    error << "the nearest is the field of a kernel's schedule = "
             "#lowlp.schedule<"
          << nearestField << " = ...>";
  else
    error << "the nearest is '" << nearest << "'";
  return error;
}

LogicalResult LowlpDialect::verifyOperationAttribute(Operation *op,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (llvm::is_contained(kParameterAttributes, name))
    return op->emitOpError("has attribute '")
           << name << "', which belongs to a parameter of a lowlp.kernel";
  SmallVector<StringRef> carriers;
  const Known *own = nullptr;
  for (const Known &known : kKnown)
    if (known.name == name) {
      carriers.push_back(known.op);
      if (carries(op, known.op))
        own = &known;
    }
  if (carriers.empty())
    return refuseUnknown(op, name);
  if (!own)
    return op->emitOpError("has attribute '")
           << name << "', which belongs to " << llvm::join(carriers, " or ");
  if (!isOf(own->kind, attribute.getValue()))
    return op->emitOpError("attribute '")
           << name << "' must be " << describe(own->kind) << ", but is "
           << attribute.getValue();
  if (own->kind == Kind::Multicast)
    return verifyMulticast(op, cast<MulticastAttr>(attribute.getValue()));
  if (own->kind == Kind::Report)
    return verifyReport(op, cast<DictionaryAttr>(attribute.getValue()));
  return success();
}

//===----------------------------------------------------------------------===//
// Attributes of parameters
//===----------------------------------------------------------------------===//

/// What they must be depends on the parameter's type: KernelOp verifies it.
LogicalResult LowlpDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                     unsigned index,
                                                     NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (!isa<KernelOp>(op))
    return op->emitOpError("argument ")
           << index << " has attribute '" << name
           << "'; only parameters of a lowlp.kernel have such";
  if (llvm::is_contained(kParameterAttributes, name))
    return success();
  return op->emitOpError("parameter ")
         << index << ": there is no attribute '" << name
         << "'; the nearest is '"
         << findNearestName(name, ArrayRef(kParameterAttributes)) << "'";
}

LogicalResult LowlpDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return op->emitOpError("result ")
         << index << " has attribute '" << attribute.getName().getValue()
         << "'; no result has attributes of lowlp";
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

void lowlp::setReport(Operation *kernel, StringRef name, Attribute value) {
  NamedAttrList entries;
  if (auto report =
          kernel->getAttrOfType<DictionaryAttr>(LowlpDialect::kReportAttrName))
    entries.append(report.getValue());
  entries.set(name, value);
  kernel->setDiscardableAttr(LowlpDialect::kReportAttrName,
                             entries.getDictionary(kernel->getContext()));
}

void lowlp::setReport(Operation *kernel, StringRef name,
                      ArrayRef<std::string> lines) {
  SmallVector<StringRef> texts(lines.begin(), lines.end());
  setReport(kernel, name, Builder(kernel->getContext()).getStrArrayAttr(texts));
}
