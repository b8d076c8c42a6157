//===- Codec.cpp - What the codes of a tensor mean ------------------------===//
#include "CodecNames.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

using namespace lowlp;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string_view lowlp::getName(PartType type) {
  static constexpr std::array<std::string_view, 10> names = {
      "f16",  "bf16",  "f32",   "e8m0",  "e4m3",
      "int8", "uint8", "int16", "uint4", "int6"};
  return names[static_cast<size_t>(type)];
}

std::string_view lowlp::getName(TableScope scope) {
  static constexpr std::array<std::string_view, 3> names = {"tensor", "channel",
                                                            "group"};
  return names[static_cast<size_t>(scope)];
}

const std::vector<PartType> &lowlp::getScaleTypes() {
  static const std::vector<PartType> types = {PartType::F16, PartType::BF16,
                                              PartType::F32, PartType::E8M0,
                                              PartType::E4M3};
  return types;
}

const std::vector<PartType> &lowlp::getZeroTypes() {
  static const std::vector<PartType> types = {PartType::Int8,  PartType::UInt8,
                                              PartType::Int16, PartType::F16,
                                              PartType::BF16,  PartType::F32};
  return types;
}

const std::vector<PartType> &lowlp::getOffsetTypes() {
  static const std::vector<PartType> types = {PartType::F16, PartType::BF16,
                                              PartType::F32};
  return types;
}

const std::vector<PartType> &lowlp::getTableTypes() {
  static const std::vector<PartType> types = {PartType::F16, PartType::F32};
  return types;
}

const std::vector<PartType> &lowlp::getScaleCodeTypes() {
  static const std::vector<PartType> types = {PartType::UInt4, PartType::Int6,
                                              PartType::UInt8, PartType::Int8};
  return types;
}

const std::vector<PartType> &lowlp::getSuperTypes() { return getOffsetTypes(); }

const std::vector<TableScope> &lowlp::getTableScopes() {
  static const std::vector<TableScope> scopes = {
      TableScope::Tensor, TableScope::Channel, TableScope::Group};
  return scopes;
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

Result<CodecTable>
CodecTable::create(int64_t bits, std::string_view element,
                   std::string_view scope,
                   std::optional<std::vector<float>> entries) {
  if (bits < 1 || bits > CodecField::maxBits)
    return Error{"bits: must be in 1.." + std::to_string(CodecField::maxBits) +
                 ", got " + std::to_string(bits)};
  Result<PartType> type = findName("element", element, getTableTypes());
  if (!type)
    return Error{type.error()};
  Result<TableScope> found = findName("scope", scope, getTableScopes());
  if (!found)
    return Error{found.error()};
  if (entries) {
    if (*found != TableScope::Tensor)
      return Error{
          "entries: given for the scope 'tensor' only, got the scope '" +
          std::string(scope) + "'"};
    size_t count = size_t(1) << bits;
    if (entries->size() != count)
      return Error{"entries: expected " + std::to_string(count) + " of " +
                   std::to_string(bits) + " bits, got " +
                   std::to_string(entries->size())};
    for (float &entry : *entries) {
      if (!std::isfinite(entry))
        return Error{"entries: must be finite"};
      // Equal tables have one form: -0 is 0.
      entry += 0.0f;
    }
  }
  return CodecTable{static_cast<int>(bits), *type, *found, std::move(entries)};
}

bool CodecTable::operator==(const CodecTable &other) const {
  return bits == other.bits && element == other.element &&
         scope == other.scope && entries == other.entries;
}

/// Fails for what is no group.
static Error refuseGroup(const std::string &got) {
  return Error{"group: must be a positive int, 'channel' or 'tensor', got " +
               got};
}

Result<CodecGroup> CodecGroup::named(std::string_view name) {
  if (name == "channel")
    return CodecGroup{Kind::Channel};
  if (name == "tensor")
    return CodecGroup{Kind::Tensor};
  return refuseGroup("'" + std::string(name) + "'");
}

std::string CodecGroup::str() const {
  switch (kind) {
  case Kind::Size:
    return "g" + std::to_string(size);
  case Kind::Channel:
    return "channel";
  case Kind::Tensor:
    return "tensor";
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Codecs
//===----------------------------------------------------------------------===//

/// Fails for a field that no codec has.
static Result<bool> checkField(const CodecField &field) {
  if (field.kind == CodecField::Kind::Planes)
    return Error{"fields of planes are reserved; bipolar{b} is the type "
                 "whose bits are signs"};
  if (field.number && !field.number->hasCodes())
    return Error{"dtype: " + field.number->name() + " has " +
                 std::to_string(field.number->bits) + " bits; a code has 1.." +
                 std::to_string(ScalarFormat::maxCodeBits)};
  return true;
}

/// Whether integers of groups are fields of bytes, less than 8 bits each.
static bool isPacked(PartType type) {
  return type == PartType::UInt4 || type == PartType::Int6;
}

/// The types of offsets beside integer scales of a type. One layout serves both
/// scales and offsets, so either has fields of bytes only where both have the
/// same ones.
static std::vector<PartType> getOffsetTypesBeside(PartType scale) {
  std::vector<PartType> types = getOffsetTypes();
  for (PartType type : getScaleCodeTypes())
    if (type == scale || (!isPacked(type) && !isPacked(scale)))
      types.push_back(type);
  return types;
}

Result<Codec> Codec::create(CodecField field, CodecGroup group,
                            const Parts &parts) {
  if (Result<bool> good = checkField(field); !good)
    return Error{good.error()};
  if (group.kind == CodecGroup::Kind::Size && group.size < 1)
    return refuseGroup(std::to_string(group.size));
  if (field.vectors)
    if (Result<bool> good = checkVectors(*field.vectors, group, parts); !good)
      return Error{good.error()};
  Codec codec(std::move(field), group);
  if (parts.superScale) {
    Result<CodecSuper> super = createSuper(group, parts);
    if (!super)
      return Error{super.error()};
    codec.super = *super;
  }
  Result<PartType> type =
      findName(codec.super ? "scale, with super_scales" : "scale", parts.scale,
               codec.super ? getScaleCodeTypes() : getScaleTypes());
  if (!type)
    return Error{type.error()};
  codec.scale = *type;
  if (parts.zeros) {
    Result<PartType> zeros = findName("zeros", *parts.zeros, getZeroTypes());
    if (!zeros)
      return Error{zeros.error()};
    codec.zeros = *zeros;
  }
  if (parts.offsets) {
    std::string part = "offsets";
    if (codec.super)
      part += ", with scales of " + std::string(getName(*codec.scale));
    Result<PartType> offsets = findName(
        part, *parts.offsets,
        codec.super ? getOffsetTypesBeside(*codec.scale) : getOffsetTypes());
    if (!offsets)
      return Error{offsets.error()};
    codec.offsets = *offsets;
  }
  codec.scale2 = parts.scale2;
  if (codec.zeros && codec.offsets)
    return Error{"zeros, offsets: at most one of them may be given, got both"};
  const std::optional<ScalarFormat> &number = codec.field.number;
  if (codec.zeros && !(number && number->isInteger()))
    return Error{"zeros: allowed for integer types only, got dtype " +
                 (number ? number->name()
                         : std::to_string(codec.getBits()) + "-bit table") +
                 "; use offsets"};
  if (codec.scale2 && codec.offsets)
    return Error{"scale2, offsets: at most one of them may be given, got both"};
  return codec;
}

Result<CodecSuper> Codec::createSuper(const CodecGroup &group,
                                      const Parts &parts) {
  Result<PartType> type =
      findName("super_scales", *parts.superScale, getSuperTypes());
  if (!type)
    return Error{type.error()};
  const CodecGroup &super = parts.superGroup;
  if (group.kind == CodecGroup::Kind::Tensor)
    return Error{"super_scales: expected groups of rows, got one group for the "
                 "whole tensor"};
  bool isMultiple =
      super.kind == CodecGroup::Kind::Channel ||
      (super.kind == CodecGroup::Kind::Size && super.size > 0 &&
       group.kind == CodecGroup::Kind::Size && super.size % group.size == 0);
  if (!isMultiple)
    return Error{"super_group: must be a multiple of the group, or 'channel', "
                 "got " +
                 super.str() + " over " + group.str()};
  if (parts.scale2)
    return Error{
        "scale2, super_scales: at most one of them may be given, got both"};
  return CodecSuper{*type, super};
}

Result<Codec> Codec::codesAlone(CodecField field) {
  if (Result<bool> good = checkField(field); !good)
    return Error{good.error()};
  return Codec(std::move(field), CodecGroup());
}

/// Takes all of K where a block is as long as a row.
static void widenBlock(std::vector<int64_t> &block, int64_t k) {
  if (!block.empty() && block.back() >= k)
    block.back() = 0;
  if (block.size() == 1 && block.front() == 0)
    block.clear();
}

Codec Codec::forKernel(int64_t k) const {
  Codec form = *this;
  if (form.field.table) {
    form.field.table->entries = std::nullopt;
    form.field.table->element = PartType::F32;
  }
  if (group.kind == CodecGroup::Kind::Tensor || group.size == k)
    form.group = CodecGroup();
  if (form.super && form.super->group.size >= k)
    form.super->group = CodecGroup();
  if (form.field.vectors)
    widenBlock(form.field.vectors->block, k);
  return form;
}

size_t Codec::hash() const {
  // FNV-1a, of the text.
  uint64_t hash = 0xcbf29ce484222325u;
  for (char letter : str())
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return static_cast<size_t>(hash);
}
