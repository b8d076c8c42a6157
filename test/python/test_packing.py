"""Packed format 5: packing and its inverse, against a reader that goes by the placement alone."""

from __future__ import annotations

import itertools
import math
import sys
import time
from typing import Any

import numpy as np
import pytest
from lowlp._layout import Placement
from numpy.typing import NDArray

import lowlp
import lowlp_runtime
from lowlp import packing
from lowlp.errors import LowlpError, LowlpTypeError, LowlpValueError
from lowlp.numeric.array_ops import ArrayOps, NumpyOps, TorchOps
from lowlp.numeric.codec import Table
from lowlp.numeric.dtypes import all_dtypes
from lowlp.weights.array_packing import pack_with, unpack_with
from lowlp.weights.packing import unpack_by

NAMES = [*Placement.names(), "lut9.f16", "lut12.bf16", "lut16.f16"]
# (n, k, group_size): padding of rows, and groups that share units or take parts of several.
SHAPES = [(1, 1, 1), (75, 80, 16), (64, 72, 24), (130, 96, 32), (17, 96, 48), (16, 128, 64), (33, 192, 96)]
SHAPES += [(5, 384, 128), (129, 100, 100), (20, 40, 8), (3, 512, 256), (40, 33, 11)]


def random_codes(n: int, k: int, bits: int) -> NDArray[Any]:
    kind = np.uint8 if bits <= 8 else np.uint16
    return np.random.default_rng(n * k + bits).integers(0, 1 << bits, (n, k), dtype=kind)


def code_of(name: str) -> tuple[str, str]:
    """The arguments `code` and `activation` of a placement: int6.f16 is of int6, e3m2.f16 of f6e3m2."""
    code, activation = name.split(".")
    bits = Placement.find(name).bits
    return (f"f{bits}{code}" if code.startswith("e") else code), activation


def read_stored(packed: NDArray[np.uint32], row: int, column: int, placement: Placement) -> int:
    """The stored code of w[row, column], bit by bit, as Placement.h has it."""
    unit_k, k = divmod(column, placement.unit_k)
    unit_n, in_unit = divmod(row, placement.unit_rows)
    tile, in_tile = divmod(in_unit, 16)
    r, in_half = divmod(in_tile, 8)
    parts = placement.parts
    step, in_step = divmod(k, 8 * parts)
    h, rest = divmod(in_step, 4 * parts)
    lane, part = 4 * in_half + rest // parts, rest % parts
    slot = (tile * placement.steps + step) * 4 + r + 2 * h
    v = placement.words_per_access
    stored = 0
    for bit in range(placement.bits):
        word, shift = placement.place(slot, part, bit)
        stored |= (int(packed[unit_n, unit_k, word // v, lane, word % v]) >> shift & 1) << bit
    return stored


# Every placement in one of the three shapes of units.
@pytest.mark.parametrize(
    ("name", "k", "unit_k"),
    [(name, *shape) for name, shape in zip(NAMES, itertools.cycle([(128, 64), (96, 32), (80, 16)]), strict=False)],
)
def test_every_code_is_where_the_placement_says(name: str, k: int, unit_k: int) -> None:
    wide = Placement.find(name)
    code, activation = code_of(name)
    n = 4 * wide.unit_rows - 3
    placement = wide.for_matrix(n, k)
    assert placement.unit_k == max(unit_k, wide.step_k)
    codes = random_codes(n, k, placement.bits)
    packed = packing.pack(codes, k, code, activation)
    assert packed.shape == packing.packed_shape(n, k, k, name)
    flip = 1 << (placement.bits - 1) if code.startswith("int") else 0
    for weight in range(0, n * k, n * k // 149):
        row, column = divmod(weight, k)
        assert read_stored(packed, row, column, placement) == codes[row, column] ^ flip
    # After the codes of a row, and in rows after the last, is the stored code of code 0.
    full = unpack_by(placement, packed, *packing.padded_shape(n, k, name), flip).copy()
    assert full.shape[0] > n
    full[:n, :k] = 0
    assert not full.any()


@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name: str) -> None:
    code, activation = code_of(name)
    for n, k, group_size in SHAPES:
        codes = random_codes(n, k, Placement.find(name).bits)
        packed = packing.pack(codes, group_size, code, activation)
        assert packed.dtype == np.uint32 and packed.ctypes.data % 16 == 0
        found = packing.unpack(packed, n, k, group_size, code, activation)
        np.testing.assert_array_equal(found, codes, err_msg=f"{n}x{k}, groups of {group_size}")


class SmallNumpy(NumpyOps):
    """numpy, a few units at a time."""

    block_elements = 1 << 14


def array_libraries() -> list[ArrayOps]:
    if "torch" not in sys.modules:
        try:
            import torch  # noqa: F401
        except ImportError:
            return [SmallNumpy()]

    class SmallTorch(TorchOps):
        block_elements = 1 << 14

    return [SmallNumpy(), SmallTorch("cpu")]


@pytest.mark.parametrize("ops", array_libraries(), ids=lambda ops: type(ops).__name__)
@pytest.mark.parametrize("name", NAMES)
def test_array_libraries_pack_the_same_bits(name: str, ops: ArrayOps) -> None:
    placement = Placement.find(name)
    flip = 1 << (placement.bits - 1) if placement.bits <= 8 else 0
    # Two of the shapes each, in turns.
    first = NAMES.index(name) % 5
    for n, k, _ in (SHAPES[1 + first], SHAPES[1 + (first + 2) % 5]):
        codes = random_codes(n, k, placement.bits)
        expected = placement.pack(codes, flip, 1)
        packed = pack_with(ops, placement, ops.put(codes), flip)
        assert ops.host(packed).dtype == np.uint32
        np.testing.assert_array_equal(ops.host(packed), expected)
        found = unpack_with(ops, placement, packed, n, k, flip)
        np.testing.assert_array_equal(ops.host(found), codes)


def test_any_number_of_threads_packs_the_same_bits() -> None:
    codes = random_codes(300, 1024, 5)
    expected = packing.pack(codes, 128, "uint5", "f16", num_threads=1)
    for threads in (2, 3, 16):
        np.testing.assert_array_equal(packing.pack(codes, 128, "uint5", "f16", num_threads=threads), expected)
        found = packing.unpack(expected, 300, 1024, 128, "uint5", "f16", num_threads=threads)
        np.testing.assert_array_equal(found, codes)


def test_strides() -> None:
    wide = random_codes(40, 400, 4)
    for codes in (wide[:, 3:131], wide[::2, :128], wide[:128].T[:128], wide[::-1, ::-2][:, :128]):
        n = codes.shape[0]
        packed = packing.pack(codes, codes.shape[1], "uint4", "bf16")
        np.testing.assert_array_equal(packed, packing.pack(codes.copy(), codes.shape[1], "uint4", "bf16"))
        np.testing.assert_array_equal(packing.unpack(packed, n, codes.shape[1], codes.shape[1], "uint4", "bf16"), codes)


def test_types_that_differ_by_a_constant_are_stored_alike() -> None:
    for bits in range(1, 9):
        codes = random_codes(20, 64, bits)
        unsigned = packing.pack(codes, 64, f"uint{bits}", "f16")
        np.testing.assert_array_equal(packing.pack(codes, 64, f"bipolar{bits}", "f16"), unsigned)
        below = codes ^ np.uint8(1 << (bits - 1))
        signed = packing.pack(below, 64, f"int{bits}", "f16")
        inside = np.zeros((20, 64), bool)
        inside[...] = True
        # Padding differs: the code 0 is stored as 0 or as half of the range.
        for name, words in (("uint", unsigned), ("int", signed)):
            np.testing.assert_array_equal(
                packing.unpack(words, 20, 64, 64, f"{name}{bits}", "f16"), codes if name == "uint" else below
            )
        full = packing.packed_shape(20, 64, 64, f"int{bits}.f16")[0] * Placement.find(f"int{bits}.f16").unit_rows
        stored = [packing.unpack(words, full, 64, 64, f"uint{bits}", "f16") for words in (unsigned, signed)]
        np.testing.assert_array_equal(stored[0][:20], stored[1][:20])
        assert (stored[0][20:] == 0).all() and (stored[1][20:] == 1 << (bits - 1)).all()


def test_the_runtime_knows_the_version() -> None:
    assert lowlp_runtime.PACKED_FORMAT_VERSION == packing.PACKED_FORMAT_VERSION


def test_names() -> None:
    assert packing.placement_name("uint6", lowlp.f16) == "int6.f16"
    assert packing.placement_name(lowlp.bipolar2, "bf16") == "int2.bf16"
    assert packing.placement_name(lowlp.f6e3m2, "f16") == "e3m2.f16"
    assert packing.placement_name("lut3", "bf16") == "lut3.bf16"
    assert packing.placement_name(Table(4, "f32", "group"), "f16") == "lut4.f16"
    for scalar in all_dtypes():
        if scalar.bits <= 8:
            assert packing.find_placement(scalar, "f16").bits == scalar.bits


@pytest.mark.parametrize("name", Placement.names())
def test_moves_carry_each_bit_once(name: str) -> None:
    placement = Placement.find(name)
    places = placement.places()
    assert places.shape == (placement.slots, placement.parts, placement.bits, 2)
    seen = {}
    for weight, byte, shift, mask in placement.moves():
        for bit in range(8):
            if mask >> bit & 1:
                assert (weight, bit) not in seen
                seen[weight, bit] = divmod(byte * 8 + bit + shift, 32)
    for slot in range(placement.slots):
        for part in range(placement.parts):
            for bit in range(placement.bits):
                place = seen.pop((slot * placement.parts + part, bit))
                assert place == placement.place(slot, part, bit) == tuple(places[slot, part, bit])
    assert not seen


@pytest.mark.parametrize(
    "k, padded", [(1, 16), (48, 48), (64, 64), (65, 80), (96, 96), (120, 128), (192, 192), (288, 288), (4100, 4112)]
)
def test_at_most_the_last_unit_of_a_row_is_padded(k: int, padded: int) -> None:
    assert packing.padded_shape(64, k, "int4.f16") == (64, padded)
    groups = [size for size in range(1, k + 1) if k % size == 0]
    shapes = {packing.packed_shape(64, k, size, "int4.f16") for size in groups}
    assert [4 * math.prod(shape) for shape in shapes] == [64 * padded // 2]


@pytest.mark.parametrize("shape", [(16, 96), (20, 1008), (33, 96), (4096, 16), (5, 5)])
@pytest.mark.parametrize("name", ["int1.f16", "int4.bf16", "int6.int8"])
def test_units_have_the_shape_that_takes_the_fewest_bytes(name: str, shape: tuple[int, int]) -> None:
    wide = Placement.find(name)
    units = [wide.with_unit_k(unit_k) for unit_k in (64, 32, 16) if unit_k >= wide.step_k]
    least = min(math.prod(placement.packed_shape(*shape)) for placement in units)
    assert math.prod(packing.packed_shape(*shape, 1, name)) == least


@pytest.mark.parametrize("code", ["int3", "lut11"])
def test_several_matrices_are_packed_one_after_the_other(code: str) -> None:
    bits = 3 if code == "int3" else 11
    codes = random_codes(2 * 3 * 20, 72, bits).reshape(2, 3, 20, 72)
    packed = packing.pack(codes, 24, code, "f16")
    assert packed.shape == packing.packed_shape(20, 72, 24, f"{code}.f16", batch=(2, 3))
    assert packed.ctypes.data % 64 == 0
    np.testing.assert_array_equal(packed[1, 2], packing.pack(codes[1, 2], 24, code, "f16"))
    np.testing.assert_array_equal(packing.unpack(packed, 20, 72, 24, code, "f16"), codes)


CODES = np.zeros((4, 64), np.uint8)
WORDS = packing.pack(CODES, 64, "int6", "f16")


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: packing.pack(CODES, 48, "int6", "f16"), LowlpValueError, "group_size: must divide K = 64, got 48"),
        (lambda: packing.pack(CODES, 0, "int6", "f16"), LowlpValueError, "group_size: must be at least 1, got 0"),
        (lambda: packing.pack(CODES, "64", "int6", "f16"), LowlpTypeError, "group_size: expected an int, got '64'"),
        (lambda: packing.pack(CODES.astype(np.int8), 64, "int6", "f16"), LowlpTypeError, "codes: .* uint8, got int8"),
        (lambda: packing.pack(CODES[0], 64, "int6", "f16"), LowlpValueError, r"codes: expected shape \[N, K\]"),
        (lambda: packing.pack(CODES[:0], 64, "int6", "f16"), LowlpValueError, r"codes: .* got \[0, 64\]"),
        (lambda: packing.pack([[1]], 1, "int6", "f16"), LowlpTypeError, "codes: expected a numpy array"),
        (lambda: packing.pack(CODES, 64, "int9", "f16"), LowlpValueError, "code: "),
        (lambda: packing.pack(CODES, 64, "f16", "f16"), LowlpValueError, "code: f16 has no codes"),
        (
            lambda: packing.pack(CODES, 64, "lut17", "f16"),
            LowlpValueError,
            "code: tables are lut1 to lut16, got 'lut17'",
        ),
        (
            lambda: packing.pack(CODES, 64, "lut9", "f16"),
            LowlpTypeError,
            "codes: expected elements of uint16, got uint8",
        ),
        (
            lambda: packing.pack(CODES, 64, "lut9", "int8"),
            LowlpValueError,
            "code, activation: packed format 5 has none",
        ),
        (lambda: packing.pack(CODES, True, "int6", "f16"), LowlpTypeError, "group_size: expected an int, got True"),
        (
            lambda: packing.pack(CODES, 64, 6, "f16"),
            LowlpTypeError,
            "code: expected a DType, a Table, Vectors, a Codec or a name, got int",
        ),
        (lambda: packing.pack(CODES, 64, "int6", "f32"), LowlpValueError, "activation: must be one of f16, bf16"),
        (lambda: packing.pack(CODES, 64, "int6", "f16", num_threads=-1), LowlpValueError, "num_threads: .* got -1"),
        (
            lambda: packing.pack(CODES, 64, "int6", "f16", num_threads=1 << 40),
            LowlpValueError,
            "num_threads: must be in",
        ),
        (lambda: packing.pack(CODES, 64, "int6", "f16", num_threads="a"), LowlpTypeError, "num_threads: .* got 'a'"),
        (lambda: packing.packed_shape(0, 64, 64, "int6.f16"), LowlpValueError, "n: must be at least 1, got 0"),
        (lambda: packing.packed_shape(2**70, 64, 64, "int6.f16"), LowlpValueError, "n: must be at most 2147483647"),
        (
            lambda: packing.padded_shape(4, 2**63 - 1, "int6.f16"),
            LowlpValueError,
            "k: must be at most 2147483647, got",
        ),
        (lambda: packing.packed_shape(4, 64, 64, "int9.f16"), LowlpValueError, "placement: .* 'int9.f16'"),
        (lambda: packing.packed_shape(4, 64, 64, 6), LowlpTypeError, "placement: expected a Placement or a name"),
        (lambda: packing.unpack(WORDS, 65, 64, 64, "int6", "f16"), LowlpValueError, r"packed: expected shape \[\d, 1"),
        (lambda: packing.unpack(WORDS.view(np.int32), 4, 64, 64, "int6", "f16"), LowlpTypeError, "packed: .* uint32"),
    ],
)
def test_errors_name_the_argument(call: Any, error: type[LowlpError], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        call()


def test_wide_codes_are_refused_with_their_place() -> None:
    codes = np.zeros((40, 96), np.uint8)
    codes[37, 90] = 64
    with pytest.raises(LowlpValueError, match=r"^codes: must be in 0\.\.63 for int6\.f16, got 64 at \[37, 90\]$"):
        packing.pack(codes, 48, "uint6", "f16")
    with pytest.raises(LowlpValueError, match=r"^codes: must be in 0\.\.63 for int6\.f16, got 64 "):
        pack_with(SmallNumpy(), Placement.find("int6.f16"), codes, 0)


def test_wide_codes_of_two_bytes_are_refused() -> None:
    codes = np.full((3, 70), 5000, np.uint16)
    message = r"^codes: must be in 0\.\.4095 for lut12\.f16, got 5000 "
    with pytest.raises(LowlpValueError, match=message):
        packing.pack(codes, 70, "lut12", "f16")
    with pytest.raises(LowlpValueError, match=message):
        pack_with(SmallNumpy(), Placement.find("lut12.f16"), codes, 0)


@pytest.mark.parametrize("bits", range(1, 9))
def test_speed(bits: int) -> None:
    codes = random_codes(1024, 4096, bits)
    best = [0.0, 0.0]
    for _ in range(3):
        start = time.perf_counter()
        packed = packing.pack(codes, 128, f"int{bits}", "f16")
        middle = time.perf_counter()
        packing.unpack(packed, 1024, 4096, 128, f"int{bits}", "f16")
        end = time.perf_counter()
        best = [max(best[0], codes.size / (middle - start)), max(best[1], codes.size / (end - middle))]
    print(f"int{bits}: packs {best[0] / 1e9:.2f}, unpacks {best[1] / 1e9:.2f} G weights/s")
    assert min(best) > 0.05e9
