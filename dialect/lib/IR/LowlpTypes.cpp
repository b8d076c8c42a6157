//===- LowlpTypes.cpp - types of the block dialect ------------------------===//
#include "lowlp/IR/Lowlp.h"
#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Numeric/Codec.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace lowlp;

namespace lowlp {
// How a parameter of a type is hashed.
static llvm::hash_code hash_value(const FragmentFamily &family) {
  return llvm::hash_combine(family.compute, family.operand, family.unitK);
}
} // namespace lowlp

#define GET_TYPEDEF_CLASSES
#include "lowlp/IR/LowlpTypes.cpp.inc"

void LowlpDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "lowlp/IR/LowlpTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

std::optional<ScalarFormat> lowlp::getScalarFormat(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.isSignless() || integer.getWidth() > 8)
      return std::nullopt;
    return *ScalarFormat::integer(integer.isSigned()
                                      ? FormatKind::SignedInteger
                                      : FormatKind::UnsignedInteger,
                                  integer.getWidth());
  }
  if (auto split = dyn_cast<LowlpFloatType>(type))
    return *ScalarFormat::floatingPoint(split.getExponentBits(),
                                        split.getMantissaBits());
  using Split = std::optional<std::pair<int, int>>;
  auto split = llvm::TypeSwitch<Type, Split>(type)
                   .Case<Float8E4M3FNType>([](Type) { return Split({4, 3}); })
                   .Case<Float8E5M2Type>([](Type) { return Split({5, 2}); })
                   .Case<Float8E3M4Type>([](Type) { return Split({3, 4}); })
                   .Case<Float6E3M2FNType>([](Type) { return Split({3, 2}); })
                   .Case<Float6E2M3FNType>([](Type) { return Split({2, 3}); })
                   .Case<Float4E2M1FNType>([](Type) { return Split({2, 1}); })
                   .Default([](Type) { return Split(); });
  if (!split)
    return std::nullopt;
  return *ScalarFormat::floatingPoint(split->first, split->second);
}

Type lowlp::getElementType(MLIRContext *context, const ScalarFormat &format) {
  if (!format.isFloat())
    return IntegerType::get(context, format.bits,
                            format.isSigned() ? IntegerType::Signed
                                              : IntegerType::Unsigned);
  for (Type type :
       {Type(Float8E4M3FNType::get(context)),
        Type(Float8E5M2Type::get(context)), Type(Float8E3M4Type::get(context)),
        Type(Float6E3M2FNType::get(context)),
        Type(Float6E2M3FNType::get(context)),
        Type(Float4E2M1FNType::get(context))})
    if (*getScalarFormat(type) == format)
      return type;
  return LowlpFloatType::get(context, format.exponentBits, format.mantissaBits);
}

bool lowlp::isWideInteger(Type type) {
  auto integer = dyn_cast<IntegerType>(type);
  return integer && !integer.isSignless() &&
         (integer.getWidth() == 16 || integer.getWidth() == 32);
}

std::optional<unsigned> lowlp::getElementBits(Type type) {
  if (isWideInteger(type))
    return type.getIntOrFloatBitWidth();
  if (type.isF16() || type.isBF16())
    return 16;
  if (type.isF32())
    return 32;
  if (std::optional<ScalarFormat> format = getScalarFormat(type))
    return format->bits;
  return std::nullopt;
}

static LogicalResult
verifyElementType(function_ref<InFlightDiagnostic()> emitError, Type type) {
  if (getElementBits(type))
    return success();
  return emitError()
         << "element type must be an integer with a sign of 1 to 8, "
            "16 or 32 bits (si6, ui32), a float of 3 to 8 bits, "
            "f16, bf16 or f32, but is "
         << type;
}

LogicalResult
LowlpFloatType::verify(function_ref<InFlightDiagnostic()> emitError,
                       unsigned exponentBits, unsigned mantissaBits) {
  uint64_t bits = uint64_t(1) + exponentBits + mantissaBits;
  if (exponentBits < 1 || bits < 3 || bits > 8)
    return emitError() << "a float has at least 1 exponent bit and 3 to 8 bits "
                          "in all, but e"
                       << exponentBits << "m" << mantissaBits << " has " << bits
                       << " bits";
  static constexpr std::pair<unsigned, unsigned> builtin[] = {
      {4, 3}, {5, 2}, {3, 4}, {3, 2}, {2, 3}, {2, 1}};
  if (llvm::is_contained(builtin, std::pair(exponentBits, mantissaBits)))
    return emitError() << "e" << exponentBits << "m" << mantissaBits
                       << " is a builtin type: write it as MLIR does";
  return success();
}

LogicalResult PointerType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  Type type) {
  return verifyElementType(emitError, type);
}

LogicalResult GlobalType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type type) {
  if (shape.empty())
    return emitError() << "a view has at least 1 dimension";
  for (int64_t extent : shape)
    if (!ShapedType::isDynamic(extent) && extent < 1)
      return emitError() << "extents must be at least 1, but one is " << extent;
  return verifyElementType(emitError, type);
}

LogicalResult PackedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, CodecAttr codec,
                                 FragmentFamily family) {
  if (shape.size() != 2 && shape.size() != 3)
    return emitError() << "packed weights have 2 dimensions, rows and K, or 3 "
                          "where there are several, but the type has "
                       << shape.size();
  for (int64_t extent : shape)
    if (!ShapedType::isDynamic(extent) && extent < 1)
      return emitError() << "extents must be at least 1, but one is " << extent;
  const CodecField &field = codec.getCodec().getField();
  Result<const Placement *> placement =
      Placement::find(CodeFormat::of(field), family);
  if (!placement)
    return emitError() << placement.error();
  if (int64_t k = shape.back();
      !ShapedType::isDynamic(k) && k % field.getValuesPerCode())
    return emitError() << "K must be a multiple of the "
                       << field.getValuesPerCode()
                       << " weights of a code, but is " << k;
  return success();
}

const Placement &PackedType::getPlacement() const {
  return **Placement::find(CodeFormat::of(getCodec().getCodec().getField()),
                           getFamily());
}

Type PackedType::getElementType() const { return getCodec().getElementType(); }

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Type type, SharedLayout layout) {
  return verifyElementType(emitError, type);
}

LogicalResult TileType::verify(function_ref<InFlightDiagnostic()> emitError,
                               Type type, Layout layout) {
  return verifyElementType(emitError, type);
}

LogicalResult
AccumulatorsType::verify(function_ref<InFlightDiagnostic()> emitError,
                         Type type, Layout layout) {
  if (type.isF32() || type.isSignedInteger(32))
    return success();
  return emitError() << "accumulators must be f32 or si32, but are " << type;
}

int64_t SharedType::getSizeInBytes() const {
  constexpr int64_t most = int64_t(1) << 40;
  int64_t elements = getLayout().numElements();
  if (elements > most)
    return most;
  return std::min<int64_t>(
      most, llvm::divideCeil(elements * *getElementBits(getElementType()), 8));
}

ArrayRef<int64_t> SharedType::getShape() const {
  return getImpl()->layout.shape();
}

ArrayRef<int64_t> TileType::getShape() const {
  return getImpl()->layout.shape();
}

int64_t TileType::getNumThreads() const {
  return getImpl()->layout.numThreads();
}

int64_t TileType::getNumLocals() const { return getImpl()->layout.numLocals(); }

int64_t TileType::getBitsPerThread() const {
  return getNumLocals() * *getElementBits(getElementType());
}

TileType TileType::cloneWith(Type elementType) const {
  return TileType::get(getContext(), elementType, getLayout());
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Parses `e2m2>`, after `float<`.
static Type parseFloatType(DialectAsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef split;
  unsigned exponentBits, mantissaBits;
  if (parser.parseLess() || parser.parseKeyword(&split) ||
      parser.parseGreater())
    return {};
  StringRef rest = split;
  if (!rest.consume_front("e") || rest.consumeInteger(10, exponentBits) ||
      !rest.consume_front("m") || rest.getAsInteger(10, mantissaBits)) {
    parser.emitError(loc, "expected a split such as e3m1, found '")
        << split << "'";
    return {};
  }
  return LowlpFloatType::getChecked([&] { return parser.emitError(loc); },
                                    parser.getContext(), exponentBits,
                                    mantissaBits);
}

/// Parses `16x8xf32, local(...)>`, after `tile`, `accumulators` or `shared`.
/// The layout of a shared tile may be left out.
template <typename LaidOutType, typename LayoutOf>
static Type parseLaidOutType(DialectAsmParser &parser,
                             Result<LayoutOf> parseText(std::string_view)) {
  constexpr bool isShared = std::is_same_v<LaidOutType, SharedType>;
  SMLoc loc = parser.getNameLoc();
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType))
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (isShared && succeeded(parser.parseOptionalGreater())) {
    Result<Layout> rowMajor = Layout::primitive(
        PrimitiveKind::Local, std::vector<int64_t>(shape.begin(), shape.end()));
    if (!rowMajor)
      return emitError() << rowMajor.error(), Type();
    return SharedType::getChecked(emitError, parser.getContext(), elementType,
                                  *SharedLayout::plain(*rowMajor));
  }
  if (parser.parseComma())
    return {};
  const char *begin = parser.getCurrentLocation().getPointer();
  const char *end = parser.getFullSymbolSpec().end() - 1;
  // Of a name with a space after it, the parser takes the name alone.
  if (end < begin)
    return parser.emitError(loc, "'<' must follow the name at once"), Type();
  Result<LayoutOf> layout = parseText(std::string_view(begin, end - begin));
  if (!layout)
    return parser.emitError(parser.getCurrentLocation(), layout.error()),
           Type();
  if (ArrayRef<int64_t>(layout->shape()) != ArrayRef<int64_t>(shape)) {
    parser.emitError(loc, "shape is ")
        << llvm::interleaved(shape, "x") << ", but the layout's shape is "
        << llvm::interleaved(layout->shape(), "x");
    return {};
  }
  return LaidOutType::getChecked(emitError, parser.getContext(), elementType,
                                 *layout);
}

/// Parses `16x64, #lowlp.codec<int6>, f16>`, after `packed`.
static Type parsePackedType(DialectAsmParser &parser) {
  SMLoc loc = parser.getNameLoc();
  auto emitError = [&] { return parser.emitError(loc); };
  SmallVector<int64_t> shape;
  CodecAttr codec;
  StringRef name;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/true,
                                /*withTrailingX=*/false) ||
      parser.parseComma() || parser.parseAttribute(codec) ||
      parser.parseComma() || parser.parseKeyword(&name) ||
      parser.parseGreater())
    return {};
  Result<FragmentFamily> family = FragmentFamily::parse(name.str());
  if (!family)
    return emitError() << family.error(), Type();
  return PackedType::getChecked(emitError, parser.getContext(), shape, codec,
                                *family);
}

/// Parses `2x256x8xf16, #lowlp.codebook_cache<...>>`, after `codebook`. The
/// cache may be left out.
static Type parseCodebookType(DialectAsmParser &parser) {
  SMLoc loc = parser.getNameLoc();
  SmallVector<int64_t> shape;
  Type elementType;
  CodebookCacheAttr cache;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseAttribute(cache)) ||
      parser.parseGreater())
    return {};
  return CodebookType::getChecked([&] { return parser.emitError(loc); },
                                  parser.getContext(), shape, elementType,
                                  cache);
}

Type LowlpDialect::parseType(DialectAsmParser &parser) const {
  StringRef mnemonic;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&mnemonic))
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  if (mnemonic == "float")
    return parseFloatType(parser);
  if (mnemonic == "tile")
    return parseLaidOutType<TileType>(parser, parseLayout);
  if (mnemonic == "accumulators")
    return parseLaidOutType<AccumulatorsType>(parser, parseLayout);
  if (mnemonic == "shared")
    return parseLaidOutType<SharedType>(parser, parseSharedLayout);
  if (mnemonic == "mbarriers") {
    int64_t count;
    if (parser.parseLess() || parser.parseInteger(count) ||
        parser.parseGreater())
      return {};
    return MbarriersType::getChecked(emitError, parser.getContext(), count);
  }
  Type elementType;
  SmallVector<int64_t> shape;
  if (mnemonic == "packed")
    return parsePackedType(parser);
  if (mnemonic == "codebook")
    return parseCodebookType(parser);
  bool isGlobal = mnemonic == "global";
  if (!isGlobal && mnemonic != "ptr") {
    emitError() << "unknown type 'lowlp." << mnemonic << "'";
    return {};
  }
  if (parser.parseLess() || (isGlobal && parser.parseDimensionList(shape)) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  if (isGlobal)
    return GlobalType::getChecked(emitError, parser.getContext(), shape,
                                  elementType);
  return PointerType::getChecked(emitError, parser.getContext(), elementType);
}

void LowlpDialect::printType(Type type, DialectAsmPrinter &printer) const {
  llvm::TypeSwitch<Type>(type)
      .Case([&](LowlpFloatType split) {
        printer << "float<e" << split.getExponentBits() << "m"
                << split.getMantissaBits() << ">";
      })
      .Case([&](PointerType pointer) {
        printer << "ptr<" << pointer.getElementType() << ">";
      })
      .Case([&](GlobalType view) {
        printer << "global<";
        printer.printDimensionList(view.getShape());
        printer << "x" << view.getElementType() << ">";
      })
      .Case([&](PackedType view) {
        printer << "packed<";
        printer.printDimensionList(view.getShape());
        printer << ", " << view.getCodec() << ", " << view.getFamily().name()
                << ">";
      })
      .Case([&](CodebookType codebook) {
        printer << "codebook<";
        printer.printDimensionList(codebook.getShape());
        printer << "x" << codebook.getElementType();
        if (codebook.getCache())
          printer << ", " << codebook.getCache();
        printer << ">";
      })
      .Case([&](SharedType tile) {
        printer << "shared<";
        printer.printDimensionList(tile.getShape());
        printer << "x" << tile.getElementType();
        const SharedLayout &layout = tile.getLayout();
        if (layout.swizzle() ||
            layout.layout() != Layout::local(layout.shape()))
          printer << ", " << layout.str();
        printer << ">";
      })
      .Case([&](MbarriersType barriers) {
        printer << "mbarriers<" << barriers.getCount() << ">";
      })
      .Case<TileType, AccumulatorsType>([&](auto tile) {
        printer << (isa<TileType>(type) ? "tile<" : "accumulators<");
        printer.printDimensionList(ArrayRef(tile.getLayout().shape()));
        printer << "x" << tile.getElementType() << ", " << str(tile.getLayout())
                << ">";
      });
}
