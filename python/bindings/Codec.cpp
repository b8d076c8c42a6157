//===- Codec.cpp - Codecs for Python --------------------------------------===//
//
// Checks of Python's types and documentation for users are in
// lowlp/numeric/codec.py.
//
//===----------------------------------------------------------------------===//
#include "lowlp/Numeric/Codec.h"
#include "Bindings.h"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <utility>
#include <variant>

namespace nb = nanobind;
using namespace lowlp;
using lowlp::python::unwrap;

using Entries = std::optional<std::vector<float>>;
using Group = std::variant<int64_t, std::string>;
using Name = std::optional<std::string>;

static CodecGroup toGroup(const Group &group) {
  if (const auto *size = std::get_if<int64_t>(&group))
    return CodecGroup::of(*size);
  return python::unwrap(CodecGroup::named(std::get<std::string>(group)));
}

static Group fromGroup(const CodecGroup &group) {
  if (group.kind == CodecGroup::Kind::Size)
    return group.size;
  return group.str();
}

static Name nameOf(std::optional<PartType> type) {
  return type ? Name(getName(*type)) : std::nullopt;
}

static std::optional<std::tuple<int, std::string, std::string, Entries>>
getTable(const CodecField &field) {
  if (!field.table)
    return std::nullopt;
  return std::tuple(
      field.table->bits, std::string(getName(field.table->element)),
      std::string(getName(field.table->scope)), field.table->entries);
}

/// Vector, bits, books, entries, lattices, block.
using Vectors = std::tuple<int, int, int, Name, std::vector<std::string>,
                           std::vector<int64_t>>;

static std::optional<Vectors> getVectors(const CodecField &field) {
  if (!field.vectors)
    return std::nullopt;
  const CodecVectors &vectors = *field.vectors;
  Name entries;
  if (vectors.entries)
    entries = std::string(getName(*vectors.entries));
  std::vector<std::string> lattices;
  lattices.reserve(vectors.lattices.size());
  for (Lattice lattice : vectors.lattices)
    lattices.emplace_back(getName(lattice));
  return Vectors(vectors.vector, vectors.bits, vectors.books, entries, lattices,
                 vectors.block);
}

/// The vectors of all codes of a lattice, float32 [codes, 8].
static nb::ndarray<nb::numpy, float, nb::ndim<2>>
getVectorsOf(const std::string &name) {
  for (Lattice lattice : getLattices())
    if (getName(lattice) == name) {
      size_t count = size_t(1) << getCodeBits(lattice);
      auto values = std::make_unique<std::vector<LatticeVector>>(count);
      for (size_t code = 0; code < count; ++code)
        (*values)[code] =
            getLatticeVector(lattice, static_cast<uint16_t>(code));
      float *data = values->front().data();
      nb::capsule owner(values.release(), [](void *held) noexcept {
        delete static_cast<std::vector<LatticeVector> *>(held);
      });
      return {data, {count, size_t(kLatticeVector)}, owner};
    }
  throw nb::value_error(("no lattice is named '" + name + "'").c_str());
}

static std::optional<std::pair<std::string, Group>>
getSuper(const Codec &codec) {
  if (!codec.getSuper())
    return std::nullopt;
  return std::pair(std::string(getName(codec.getSuper()->type)),
                   fromGroup(codec.getSuper()->group));
}

template <typename T>
static std::vector<std::string> getNames(const std::vector<T> &all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (T one : all)
    names.emplace_back(getName(one));
  return names;
}

static void populateField(nb::module_ &module) {
  nb::class_<CodecField>(module, "CodecField")
      .def_static(
          "of_number",
          [](const ScalarFormat &number) { return CodecField::of(number); })
      .def_static(
          "of_table",
          [](int64_t bits, const std::string &element, const std::string &scope,
             const Entries &entries) {
            return CodecField::of(
                unwrap(CodecTable::create(bits, element, scope, entries)));
          },
          nb::arg("bits"), nb::arg("element"), nb::arg("scope"),
          nb::arg("entries").none())
      .def_static(
          "of_vectors",
          [](int64_t vector, int64_t bits, int64_t books,
             const std::string &entries, const std::vector<int64_t> &block,
             bool isSpread) {
            return CodecField::of(unwrap(CodecVectors::create(
                vector, bits, books, entries, block, isSpread)));
          },
          nb::arg("vector"), nb::arg("bits"), nb::arg("books"),
          nb::arg("entries"), nb::arg("block"), nb::arg("is_spread") = false)
      .def_static("of_lattices",
                  [](const std::vector<std::string> &lattices) {
                    return CodecField::of(
                        unwrap(CodecVectors::create(lattices)));
                  })
      .def_prop_ro("vectors", getVectors)
      .def_prop_ro("has_book_scales",
                   [](const CodecField &field) {
                     return field.vectors && field.vectors->hasBookScales();
                   })
      .def_prop_ro("spread",
                   [](const CodecField &field) {
                     return std::string(
                         field.vectors ? getName(field.vectors->getSpread())
                                       : "");
                   })
      .def_prop_ro("can_spread",
                   [](const CodecField &field) {
                     return field.vectors &&
                            field.vectors->findSpread() != CodeSpread::None;
                   })
      .def_prop_ro("bits", &CodecField::getBits)
      .def_prop_ro("number",
                   [](const CodecField &field) { return field.number; })
      .def_prop_ro("table", getTable)
      .def_prop_ro("text", &CodecField::str)
      .def(nb::self == nb::self,
           nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const CodecField &field) {
        return std::hash<std::string>()(field.str());
      });
}

void lowlp::python::populateCodec(nb::module_ &module) {
  populateField(module);
  nb::class_<Codec>(module, "Codec")
      .def_static(
          "create",
          [](const CodecField &field, const Group &group,
             const std::string &scale, const Name &zeros, const Name &offsets,
             bool scale2, const Name &superScale, const Group &superGroup) {
            return unwrap(Codec::create(field, toGroup(group),
                                        {scale, zeros, offsets, scale2,
                                         superScale, toGroup(superGroup)}));
          },
          nb::arg("field"), nb::arg("group"), nb::arg("scale"),
          nb::arg("zeros").none(), nb::arg("offsets").none(), nb::arg("scale2"),
          nb::arg("super_scale").none(), nb::arg("super_group"))
      .def_static("codes_alone",
                  [](const CodecField &field) {
                    return unwrap(Codec::codesAlone(field));
                  })
      .def_static(
          "parse",
          [](const std::string &text) { return unwrap(Codec::parse(text)); })
      .def_prop_ro("field", &Codec::getField)
      .def_prop_ro(
          "group",
          [](const Codec &codec) { return fromGroup(codec.getGroup()); })
      .def_prop_ro("scale",
                   [](const Codec &codec) { return nameOf(codec.getScale()); })
      .def_prop_ro("zeros",
                   [](const Codec &codec) { return nameOf(codec.getZeros()); })
      .def_prop_ro(
          "offsets",
          [](const Codec &codec) { return nameOf(codec.getOffsets()); })
      .def_prop_ro("scale_levels", &Codec::getScaleLevels)
      .def_prop_ro("super", getSuper)
      .def_prop_ro("text", [](const Codec &codec) { return codec.str(); })
      .def("text_with", [](const Codec &codec,
                           const std::string &code) { return codec.str(code); })
      .def("for_kernel", &Codec::forKernel, nb::arg("k"))
      .def(nb::self == nb::self,
           nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Codec &codec) {
        return static_cast<Py_hash_t>(codec.hash());
      });
  // Of codes that are numbers, and of indices of tables.
  module.attr("MAX_CODE_BITS") = +ScalarFormat::maxCodeBits;
  module.attr("MAX_INDEX_BITS") = +CodecField::maxBits;
  module.attr("SCALE_TYPES") = getNames(getScaleTypes());
  module.attr("ZERO_TYPES") = getNames(getZeroTypes());
  module.attr("OFFSET_TYPES") = getNames(getOffsetTypes());
  module.attr("SCALE_CODE_TYPES") = getNames(getScaleCodeTypes());
  module.attr("SUPER_TYPES") = getNames(getSuperTypes());
  module.attr("TABLE_TYPES") = getNames(getTableTypes());
  module.attr("TABLE_SCOPES") = getNames(getTableScopes());
  module.attr("ENTRY_TYPES") = getNames(getEntryTypes());
  module.def("lattice_vectors", getVectorsOf, nb::arg("lattice"));
}
