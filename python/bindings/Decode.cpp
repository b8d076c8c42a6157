//===- Decode.cpp - Placements and packing for Python ---------------------===//
//
// Names, argument checks and documentation for users are in lowlp/packing.py.
//
//===----------------------------------------------------------------------===//

#include "Bindings.h"
#include "lowlp/Decode/Packing.h"

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

using CodesIn = nb::ndarray<const uint8_t, nb::ndim<2>, nb::device::cpu>;
using CodesOut = nb::ndarray<nb::numpy, uint8_t, nb::ndim<2>>;
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

static CodeMatrix getMatrix(int64_t n, int64_t k, int64_t groupSize) {
  if (n < 1 || k < 1)
    throw nb::value_error(("expected [N, K] with N, K >= 1, got [" +
                           std::to_string(n) + ", " + std::to_string(k) + "]")
                              .c_str());
  if (groupSize < 1 || k % groupSize)
    throw nb::value_error(("group_size: must divide K = " + std::to_string(k) +
                           ", got " + std::to_string(groupSize))
                              .c_str());
  return {n, k, groupSize};
}

static Shape getPackedShape(const Placement &placement, int64_t n, int64_t k,
                            int64_t groupSize) {
  CodeMatrix matrix = getMatrix(n, k, groupSize);
  int64_t access = placement.getWordsPerAccess();
  return {matrix.getNumUnitsN(placement), matrix.getNumUnitsK(),
          placement.getNumWords() / access, Placement::lanes, access};
}

static WordsOut pack(const Placement &placement, CodesIn codes,
                     int64_t groupSize, uint8_t flip, int numThreads) {
  CodeMatrix matrix = getMatrix(codes.shape(0), codes.shape(1), groupSize);
  if (codes.stride(1) != 1 && matrix.k != 1)
    throw nb::value_error("codes: expected the codes of a row side by side");
  auto [data, owner] = allocate<uint32_t>(matrix.getNumPackedWords(placement));
  Result<bool> packed = [&, words = data] {
    nb::gil_scoped_release release;
    return packCodes(placement, matrix, codes.data(), codes.stride(0), flip,
                     words, numThreads);
  }();
  python::unwrap(packed);
  auto [unitsN, unitsK, accesses, lanes, access] =
      getPackedShape(placement, matrix.n, matrix.k, groupSize);
  return WordsOut(data,
                  {static_cast<size_t>(unitsN), static_cast<size_t>(unitsK),
                   static_cast<size_t>(accesses), static_cast<size_t>(lanes),
                   static_cast<size_t>(access)},
                  owner);
}

static CodesOut unpack(const Placement &placement, WordsIn packed, int64_t n,
                       int64_t k, int64_t groupSize, uint8_t flip,
                       int numThreads) {
  CodeMatrix matrix = getMatrix(n, k, groupSize);
  if (static_cast<int64_t>(packed.size()) !=
      matrix.getNumPackedWords(placement))
    throw nb::value_error(("packed: expected " +
                           std::to_string(matrix.getNumPackedWords(placement)) +
                           " words, got " + std::to_string(packed.size()))
                              .c_str());
  auto [data, owner] = allocate<uint8_t>(n * k);
  {
    nb::gil_scoped_release release;
    unpackCodes(placement, matrix, packed.data(), flip, data, k, numThreads);
  }
  return CodesOut(data, {static_cast<size_t>(n), static_cast<size_t>(k)},
                  owner);
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
    moves.emplace_back(move.weight, move.byte, move.shift, move.codeMask);
  return moves;
}

static std::vector<std::string> getNames() {
  std::vector<std::string> names;
  for (const Placement &placement : Placement::all())
    names.push_back(placement.name());
  return names;
}

void lowlp::python::populateDecode(nb::module_ &module) {
  nb::class_<Placement>(module, "Placement")
      .def_static(
          "find",
          [](const std::string &name) { return unwrap(Placement::find(name)); },
          nb::rv_policy::reference)
      .def_static("names", getNames)
      .def_ro_static("format_version", &Placement::formatVersion)
      .def_prop_ro("name", &Placement::name)
      .def_prop_ro("bits",
                   [](const Placement &p) { return p.getFormat().bits; })
      .def_prop_ro("row_tiles", &Placement::getNumRowTiles)
      .def_prop_ro("unit_rows", &Placement::getUnitRows)
      .def_prop_ro("unit_k",
                   [](const Placement &) { return +Placement::unitK; })
      .def_prop_ro("lanes", [](const Placement &) { return +Placement::lanes; })
      .def_prop_ro("num_words", &Placement::getNumWords)
      .def_prop_ro("words_per_access", &Placement::getWordsPerAccess)
      .def_prop_ro("parts", &Placement::getNumParts)
      .def_prop_ro("steps", &Placement::getNumSteps)
      .def_prop_ro("slots", &Placement::getNumSlots)
      .def("place", place, nb::arg("slot"), nb::arg("part"), nb::arg("bit"))
      .def("places", getPlaces)
      .def("moves", getMoves)
      .def("packed_shape", getPackedShape, nb::arg("n"), nb::arg("k"),
           nb::arg("group_size"))
      .def("pack", pack, nb::arg("codes"), nb::arg("group_size"),
           nb::arg("flip"), nb::arg("num_threads"))
      .def("unpack", unpack, nb::arg("packed"), nb::arg("n"), nb::arg("k"),
           nb::arg("group_size"), nb::arg("flip"), nb::arg("num_threads"))
      .def(nb::self == nb::self,
           nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Placement &p) {
        return std::hash<std::string>()(p.name());
      });

  module.def("padded_group", &CodeMatrix::padGroup, nb::arg("group_size"));
  module.def("code_format_name", [](const ScalarFormat &scalar) {
    return unwrap(CodeFormat::of(scalar)).name();
  });
  // A stored code is the code, these bits turned over.
  module.def("stored_flip", [](const ScalarFormat &scalar) {
    return static_cast<int>(toStoredCode(scalar, 0));
  });
}
