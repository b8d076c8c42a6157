//===- LowlpAliases.cpp - short names for long types ----------------------===//
#include "LowlpAliases.h"

#include "lowlp/IR/Lowlp.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace lowlp;

/// `tile_16x64xf16`. MLIR numbers those of other layouts.
static void printName(raw_ostream &os, StringRef kind, ArrayRef<int64_t> shape,
                      Type element) {
  os << kind << '_';
  for (int64_t extent : shape)
    os << extent << 'x';
  std::string name;
  llvm::raw_string_ostream(name) << element;
  for (char c : name)
    if (llvm::isAlnum(c))
      os << c;
}

namespace {

struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Type type, raw_ostream &os) const override {
    return llvm::TypeSwitch<Type, AliasResult>(type)
        .Case([&](TileType tile) {
          printName(os, "tile", tile.getShape(), tile.getElementType());
          return AliasResult::OverridableAlias;
        })
        .Case([&](SharedType tile) {
          printName(os, "shared", tile.getShape(), tile.getElementType());
          return AliasResult::OverridableAlias;
        })
        .Default([](Type) { return AliasResult::NoAlias; });
  }

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const override {
    if (!isa<LayoutAttr, PlanAttr>(attribute))
      return AliasResult::NoAlias;
    os << (isa<PlanAttr>(attribute) ? "plan" : "layout");
    return AliasResult::OverridableAlias;
  }
};

} // namespace

void lowlp::addAliases(Dialect &dialect) { dialect.addInterfaces<Aliases>(); }
