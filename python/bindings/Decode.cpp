//===- Decode.cpp - Placements and packing for Python ---------------------===//
//
// Names, argument checks and documentation for users are in lowlp/packing.py.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "lowlp/Decode/Packing.h"
#include "lowlp/Numeric/Codec.h"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <memory>
#include <tuple>

namespace nb = nanobind;
using namespace lowlp;

template <typename Code>
using CodesIn = nb::ndarray<const Code, nb::ndim<2>, nb::device::cpu>;
template <typename Code>
using CodesOut = nb::ndarray<nb::numpy, Code, nb::ndim<2>>;
using WordsIn =
    nb::ndarray<const uint32_t, nb::ndim<5>, nb::c_contig, nb::device::cpu>;
using WordsOut = nb::ndarray<nb::numpy, uint32_t, nb::ndim<5>>;
using Places = nb::ndarray<nb::numpy, int32_t, nb::ndim<4>>;
using Shape = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>;

/// Bytes to which packed words are aligned: a line of a cache.
static constexpr size_t kAlignment = 64;

/// Memory for an array, and the capsule that frees it.
template <typename T>
static std::pair<T *, nb::capsule> allocate(int64_t count) {
  size_t bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  auto *data = static_cast<T *>(std::aligned_alloc(kAlignment, bytes));
  if (!data)
    throw std::bad_alloc();
  return {data,
          nb::capsule(data, [](void *memory) noexcept { std::free(memory); })};
}

static CodeMatrix getMatrix(int64_t n, int64_t k) {
  if (n < 1 || k < 1)
    throw nb::value_error(("expected [N, K] with N, K >= 1, got [" +
                           std::to_string(n) + ", " + std::to_string(k) + "]")
                              .c_str());
  return {n, k};
}

/// The matrix of the codes of weights [n, k].
static CodeMatrix getCodesOf(const Placement &placement, int64_t n, int64_t k) {
  getMatrix(n, k);
  return {n, placement.getNumCodes(k)};
}

static Shape getPackedShape(const Placement &placement, int64_t n, int64_t k) {
  CodeMatrix matrix = getCodesOf(placement, n, k);
  int64_t access = placement.getWordsPerAccess();
  return {matrix.getNumUnitsN(placement), matrix.getNumUnitsK(placement),
          placement.getNumWords() / access, FragmentFamily::lanes, access};
}

/// Codes of this type are those of the placement.
template <typename Code> static void checkCode(const Placement &placement) {
  if (placement.getFormat().getCodeBytes() != sizeof(Code))
    throw nb::value_error(
        ("codes: expected " +
         std::to_string(placement.getFormat().getCodeBytes()) + " bytes each")
            .c_str());
}

template <typename Code>
static WordsOut pack(const Placement &placement, CodesIn<Code> codes,
                     uint8_t flip, int numThreads) {
  CodeMatrix matrix = getMatrix(codes.shape(0), codes.shape(1));
  checkCode<Code>(placement);
  if (codes.stride(1) != 1 && matrix.k != 1)
    throw nb::value_error("codes: expected the codes of a row side by side");
  auto [data, owner] = allocate<uint32_t>(matrix.getNumPackedWords(placement));
  Result<bool> packed = [&, words = data] {
    nb::gil_scoped_release release;
    int64_t rowStride = codes.stride(0) * static_cast<int64_t>(sizeof(Code));
    return packCodes(placement, matrix,
                     reinterpret_cast<const uint8_t *>(codes.data()), rowStride,
                     flip, words, numThreads);
  }();
  python::unwrap(packed);
  auto access = static_cast<size_t>(placement.getWordsPerAccess());
  return WordsOut(data,
                  {static_cast<size_t>(matrix.getNumUnitsN(placement)),
                   static_cast<size_t>(matrix.getNumUnitsK(placement)),
                   placement.getNumWords() / access,
                   size_t(FragmentFamily::lanes), access},
                  owner);
}

template <typename Code>
static nb::object unpackAs(const Placement &placement, WordsIn packed,
                           const CodeMatrix &matrix, uint8_t flip,
                           int numThreads) {
  auto [data, owner] = allocate<Code>(matrix.n * matrix.k);
  {
    nb::gil_scoped_release release;
    unpackCodes(placement, matrix, packed.data(), flip,
                reinterpret_cast<uint8_t *>(data),
                matrix.k * static_cast<int64_t>(sizeof(Code)), numThreads);
  }
  return nb::cast(CodesOut<Code>(
      data, {static_cast<size_t>(matrix.n), static_cast<size_t>(matrix.k)},
      owner));
}

static nb::object unpack(const Placement &placement, WordsIn packed, int64_t n,
                         int64_t k, uint8_t flip, int numThreads) {
  CodeMatrix matrix = getCodesOf(placement, n, k);
  if (static_cast<int64_t>(packed.size()) !=
      matrix.getNumPackedWords(placement))
    throw nb::value_error(("packed: expected " +
                           std::to_string(matrix.getNumPackedWords(placement)) +
                           " words, got " + std::to_string(packed.size()))
                              .c_str());
  if (placement.getFormat().getCodeBytes() == 2)
    return unpackAs<uint16_t>(placement, packed, matrix, flip, numThreads);
  return unpackAs<uint8_t>(placement, packed, matrix, flip, numThreads);
}

static void checkPlace(const char *what, int value, int count) {
  if (value < 0 || value >= count)
    throw nb::value_error((std::string(what) + ": must be in 0.." +
                           std::to_string(count - 1) + ", got " +
                           std::to_string(value))
                              .c_str());
}

static std::pair<int, int> place(const Placement &placement, int slot, int part,
                                 int bit) {
  checkPlace("slot", slot, placement.getNumSlots());
  checkPlace("part", part, placement.getNumParts());
  checkPlace("bit", bit, placement.getFormat().bits);
  BitPlace found = placement.getPlace(slot, part, bit);
  return {found.word, found.bit};
}

/// [slot, part, bit] -> (word, bit of the word).
static Places getPlaces(const Placement &placement) {
  size_t slots = placement.getNumSlots(), parts = placement.getNumParts();
  size_t bits = placement.getFormat().bits;
  auto [data, owner] = allocate<int32_t>(slots * parts * bits * 2);
  int32_t *next = data;
  for (size_t slot = 0; slot < slots; ++slot)
    for (size_t part = 0; part < parts; ++part)
      for (size_t bit = 0; bit < bits; ++bit) {
        BitPlace found = placement.getPlace(slot, part, bit);
        *next++ = found.word;
        *next++ = found.bit;
      }
  return Places(data, {slots, parts, bits, 2}, owner);
}

static std::vector<std::tuple<int, int, int, int>>
getMoves(const Placement &placement) {
  std::vector<std::tuple<int, int, int, int>> moves;
  for (const BitMove &move : getBitMoves(placement))
    moves.emplace_back(move.codeByte, move.byte, move.shift, move.codeMask);
  return moves;
}

static std::vector<std::string> getNames() {
  std::vector<std::string> names;
  for (const Placement &placement : Placement::all())
    names.push_back(placement.name());
  return names;
}

/// What a placement says of itself.
static nb::class_<Placement> addPlacement(nb::module_ &module) {
  nb::class_<Placement> placement(module, "Placement");
  placement
      .def_static(
          "find",
          [](const std::string &name) {
            return python::unwrap(Placement::find(name));
          },
          nb::rv_policy::reference)
      .def_static("names", getNames)
      .def_ro_static("format_version", &Placement::formatVersion)
      .def_prop_ro("name", &Placement::name)
      .def_prop_ro("bits",
                   [](const Placement &p) { return p.getFormat().bits; })
      .def_prop_ro("row_tiles", &Placement::getNumRowTiles)
      .def_prop_ro("unit_rows", &Placement::getUnitRows)
      .def_prop_ro("unit_k", &Placement::getUnitK)
      .def_prop_ro("unit_ks", &Placement::getUnitKs)
      .def_prop_ro("unit_codes", &Placement::getUnitCodes)
      .def_prop_ro("step_k",
                   [](const Placement &p) { return p.getFamily().getStepK(); })
      .def_prop_ro("vector",
                   [](const Placement &p) { return p.getFormat().vector; })
      .def_prop_ro("books",
                   [](const Placement &p) { return p.getFormat().codes; })
      .def_prop_ro("lanes",
                   [](const Placement &) { return +FragmentFamily::lanes; })
      .def_prop_ro("compute",
                   [](const Placement &p) { return getName(p.getCompute()); })
      .def_prop_ro("family",
                   [](const Placement &p) { return p.getFamily().name(); })
      .def_prop_ro(
          "code_bytes",
          [](const Placement &p) { return p.getFormat().getCodeBytes(); })
      .def_prop_ro("num_words", &Placement::getNumWords)
      .def_prop_ro("words_per_access", &Placement::getWordsPerAccess)
      .def_prop_ro("parts", &Placement::getNumParts)
      .def_prop_ro("steps", &Placement::getNumSteps)
      .def_prop_ro("slots_per_step", &Placement::getSlotsPerStep)
      .def_prop_ro("slots", &Placement::getNumSlots);
  return placement;
}

void lowlp::python::populateDecode(nb::module_ &module) {
  addPlacement(module)
      .def("place", place, nb::arg("slot"), nb::arg("part"), nb::arg("bit"))
      .def("places", getPlaces)
      .def("moves", getMoves)
      .def(
          "for_matrix",
          [](const Placement &placement, int64_t n, int64_t k) {
            getMatrix(n, k);
            return &placement.forMatrix(n, k);
          },
          nb::arg("n"), nb::arg("k"), nb::rv_policy::reference)
      .def(
          "with_unit_k",
          [](const Placement &placement, int unitK) {
            FragmentFamily family = placement.getFamily();
            family.unitK = unitK;
            return unwrap(Placement::find(placement.getFormat(), family));
          },
          nb::arg("unit_k"), nb::rv_policy::reference)
      .def("packed_shape", getPackedShape, nb::arg("n"), nb::arg("k"))
      .def("pack", pack<uint8_t>, nb::arg("codes"), nb::arg("flip"),
           nb::arg("num_threads"))
      .def("pack", pack<uint16_t>, nb::arg("codes"), nb::arg("flip"),
           nb::arg("num_threads"))
      .def("unpack", unpack, nb::arg("packed"), nb::arg("n"), nb::arg("k"),
           nb::arg("flip"), nb::arg("num_threads"))
      .def(nb::self == nb::self,
           nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Placement &p) {
        return std::hash<std::string>()(p.name());
      });

  // Weights of a row in the widest unit of the families that have placements.
  module.attr("UNIT_K") = +FragmentFamily::maxUnitK;
  module.def("code_format_name", [](const ScalarFormat &scalar) {
    return unwrap(CodeFormat::of(scalar)).name();
  });
  module.def("code_format_of", [](const CodecField &field) {
    return CodeFormat::of(field).name();
  });
  // A stored code is the code, these bits turned over.
  module.def("stored_flip", [](const ScalarFormat &scalar) {
    return static_cast<int>(toStoredCode(scalar, 0));
  });
}
