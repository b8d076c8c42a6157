//===- LowlpSchedule.cpp - what a kernel tells the passes -----------------===//
//
// The fields of a schedule are read and written by their names, in any order
// and as many as differ from their defaults: `forEachField` lists them once for
// both.
//
//===----------------------------------------------------------------------===//
#include "NearestName.h"

#include "lowlp/IR/Lowlp.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace lowlp;

/// Of any architecture (CUDA C++ Programming Guide, "Technical Specifications
/// per Compute Capability").
static constexpr int64_t kMaxBlocksPerSM = 32;
/// What wgmma_wait can tell apart, and the one that was just begun.
static constexpr int64_t kMaxProductsInFlight = 8;
/// One for each bank of shared memory.
static constexpr int64_t kMaxTableCopies = 32;
/// copy_async_wait knows of 7 groups in flight.
static constexpr int64_t kMinStages = 2, kMaxStages = 9;

namespace {

/// The parameters of a ScheduleAttr, each with its default.
struct Fields {
  MatrixUnit matrixUnit = MatrixUnit::Warp;
  int64_t productsInFlight = 2;
  bool pingPong = false;
  bool exchangeRegisters = false;
  int64_t blocksPerSM = 0;
  int64_t cluster = 1;
  TableForm tableForm = TableForm::Auto;
  int64_t tableCopies = 0;
  DecodeOffsets decodeOffsets = DecodeOffsets::Auto;
  bool reassociate = false;
  CodebookPlacement codebooks = CodebookPlacement::Auto;

  Fields() = default;
  explicit Fields(ScheduleAttr schedule)
      : matrixUnit(schedule.getMatrixUnit()),
        productsInFlight(schedule.getProductsInFlight()),
        pingPong(schedule.getPingPong()),
        exchangeRegisters(schedule.getExchangeRegisters()),
        blocksPerSM(schedule.getBlocksPerSm()), cluster(schedule.getCluster()),
        tableForm(schedule.getTableForm()),
        tableCopies(schedule.getTableCopies()),
        decodeOffsets(schedule.getDecodeOffsets()),
        reassociate(schedule.getReassociate()),
        codebooks(schedule.getCodebooks()) {}
};

} // namespace

/// Calls `visit` with the name of each field and the field itself of each of
/// `fields`, in the order in which they are written.
template <typename Visitor, typename... Of>
static void forEachField(Visitor visit, Of &...fields) {
  visit("matrix_unit", fields.matrixUnit...);
  visit("products_in_flight", fields.productsInFlight...);
  visit("ping_pong", fields.pingPong...);
  visit("exchange_registers", fields.exchangeRegisters...);
  visit("blocks_per_sm", fields.blocksPerSM...);
  visit("cluster", fields.cluster...);
  visit("table_form", fields.tableForm...);
  visit("table_copies", fields.tableCopies...);
  visit("decode_offsets", fields.decodeOffsets...);
  visit("reassociate", fields.reassociate...);
  visit("codebooks", fields.codebooks...);
}

static ScheduleAttr build(MLIRContext *context, const Fields &fields,
                          function_ref<InFlightDiagnostic()> emitError) {
  return ScheduleAttr::getChecked(
      emitError, context, fields.matrixUnit, fields.productsInFlight,
      fields.pingPong, fields.exchangeRegisters, fields.blocksPerSM,
      fields.cluster, fields.tableForm, fields.tableCopies,
      fields.decodeOffsets, fields.reassociate, fields.codebooks);
}

static ScheduleAttr build(MLIRContext *context, const Fields &fields) {
  return build(context, fields,
               [context] { return mlir::emitError(UnknownLoc::get(context)); });
}

ArrayRef<StringRef> ScheduleAttr::getFieldNames() {
  static const SmallVector<StringRef> names = [] {
    SmallVector<StringRef> found;
    Fields fields;
    forEachField([&](StringRef name, auto &) { found.push_back(name); },
                 fields);
    return found;
  }();
  return names;
}

ScheduleAttr ScheduleAttr::getDefault(MLIRContext *context) {
  return build(context, Fields());
}

ScheduleAttr ScheduleAttr::withoutCluster() const {
  Fields fields(*this);
  fields.cluster = 1;
  return build(getContext(), fields);
}

ScheduleAttr ScheduleAttr::withoutExchangeOfRegisters() const {
  Fields fields(*this);
  fields.exchangeRegisters = false;
  return build(getContext(), fields);
}

/// Parses the value of the field called `name`, which exists.
static ParseResult parseField(AsmParser &parser, StringRef name,
                              Fields &fields) {
  ParseResult result = success();
  auto parse = [&](StringRef known, auto &field) {
    if (known != name)
      return;
    auto value = FieldParser<std::decay_t<decltype(field)>>::parse(parser);
    if (failed(value))
      result = failure();
    else
      field = *value;
  };
  forEachField(parse, fields);
  return result;
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  Fields fields;
  llvm::StringSet<> given;
  auto parseOne = [&]() -> ParseResult {
    StringRef name;
    SMLoc place = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    if (!given.insert(name).second)
      return parser.emitError(place, "the schedule has the field '")
             << name << "' twice";
    if (!llvm::is_contained(getFieldNames(), name))
      return parser.emitError(place, "a schedule has no field '")
             << name << "'; the nearest is '"
             << findNearestName(name, getFieldNames()) << "'";
    return failure(parser.parseEqual() || parseField(parser, name, fields));
  };
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseOne))
    return {};
  return build(parser.getContext(), fields,
               [&] { return parser.emitError(place); });
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  Fields fields(*this), defaults;
  StringRef separator = "";
  printer << "<";
  auto print = [&](StringRef name, auto &field, auto &usual) {
    if (field == usual)
      return;
    printer << separator << name << " = " << field;
    separator = ", ";
  };
  forEachField(print, fields, defaults);
  printer << ">";
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   MatrixUnit matrixUnit,
                                   int64_t productsInFlight, bool pingPong,
                                   bool, int64_t blocksPerSM, int64_t cluster,
                                   TableForm, int64_t tableCopies,
                                   DecodeOffsets, bool, CodebookPlacement) {
  if (productsInFlight < 1 || productsInFlight > kMaxProductsInFlight)
    return emitError() << "products_in_flight must be 1 to "
                       << kMaxProductsInFlight << ", but is "
                       << productsInFlight;
  if (pingPong && matrixUnit != MatrixUnit::Warpgroup)
    return emitError() << "ping_pong must be false where matrix_unit is "
                       << stringifyMatrixUnit(matrixUnit)
                       << ": it is what warpgroups do";
  if (blocksPerSM < 0 || blocksPerSM > kMaxBlocksPerSM)
    return emitError() << "blocks_per_sm must be 0 to " << kMaxBlocksPerSM
                       << ", but is " << blocksPerSM;
  if (cluster < 1 || cluster > kMaxCluster)
    return emitError() << "cluster must be 1 to " << kMaxCluster
                       << " blocks, but is " << cluster;
  if (tableCopies < 0 || tableCopies > kMaxTableCopies ||
      (tableCopies && !llvm::isPowerOf2_64(tableCopies)))
    return emitError() << "table_copies must be 0 or a power of two up to "
                       << kMaxTableCopies << ", but is " << tableCopies;
  return success();
}

LogicalResult StagesAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 int64_t count, bool) {
  if (count >= kMinStages && count <= kMaxStages)
    return success();
  return emitError() << "stages must be " << kMinStages << " to " << kMaxStages
                     << ", but are " << count;
}
