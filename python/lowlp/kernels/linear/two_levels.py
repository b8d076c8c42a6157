"""Scales in two levels: integers of groups times floats of super-groups, made in f32 in the kernel.

A product of both has up to 11 + 8 significant bits in f16, which f32 holds; so it is the scale that `dequantize()` has.
Integers of less than 8 bits are fields of bytes that follow each other along K (`lowlp.numeric.group_codes`). Where
kernels with stages unroll groups whose fields fill bytes, shifts are known; else threads shift by amounts of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from lowlp import language as ll
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.group_codes import PACKED_CODE_TYPES, bytes_of_groups, groups_of_whole_bytes
from lowlp.weights.packing import UNIT_K

from .spec import LinearSpec

SIGNIFICANT_BITS: Final = {"f16": 11, "bf16": 8, "f32": 24, "e4m3": 4, "e8m0": 1}
"""Of a number of a floating-point type."""


def stored_groups(spec: LinearSpec, kind: str, groups: int = 0) -> int:
    """Elements along K of what groups have of a type: one for each group, or bytes of packed integers.

    groups  0: those of a row
    """
    groups = groups or spec.groups
    return bytes_of_groups(kind, groups) if kind in PACKED_CODE_TYPES else groups


def has_packed_codes(spec: LinearSpec) -> bool:
    """Whether scales are fields of bytes; offsets that are integers then are, too."""
    return spec.scale in PACKED_CODE_TYPES


def fill_bytes(spec: LinearSpec, groups: int) -> bool:
    """Whether the fields of so many groups are whole bytes."""
    return not has_packed_codes(spec) or groups * dtype(spec.scale).bits % 8 == 0


def fills_stages(spec: LinearSpec, stage_k: int) -> bool:
    """Whether a stage is whole groups whose fields are whole bytes."""
    return stage_k % spec.group_size == 0 and fill_bytes(spec, stage_k // spec.group_size)


def has_whole_fields(spec: LinearSpec, groups: int) -> bool:
    """Whether so many neighbouring groups, of which the first is a multiple of them, have fields of the same bytes, or
    all fields of some bytes; and rows end where such bytes do."""
    if not has_packed_codes(spec):
        return True
    period = groups_of_whole_bytes(spec.scale)
    fills_rows = bytes_of_groups(spec.scale, period) == 1 or spec.groups % period == 0
    return (groups % period == 0 or period % groups == 0) and fills_rows


def stored_taken(kind: str, groups: int) -> int:
    """Elements along K that are loaded for so many neighbouring groups: one for each, or whole bytes of fields."""
    if kind not in PACKED_CODE_TYPES:
        return groups
    period = groups_of_whole_bytes(kind)
    return -(-groups // period) * bytes_of_groups(kind, period)


def divides_supers(spec: LinearSpec, taken_k: int, alike_k: int) -> bool:
    """Whether so many weights along K that are taken together are whole super-groups, each of which is `alike_k`
    weights or several times as many, or a whole part of one; so they are where a row has one."""
    size = spec.super_group_size
    if not spec.super_scale or spec.supers == 1:
        return True
    return size % max(UNIT_K, alike_k) == 0 and (taken_k % size == 0 or size % taken_k == 0)


def supers_taken(spec: LinearSpec, taken_k: int) -> int:
    """Super-groups that so many weights along K are in, as `divides_supers` has them."""
    return 1 if spec.supers == 1 else max(1, taken_k // spec.super_group_size)


def rounds_once(spec: LinearSpec) -> bool:
    """Whether a scale of two levels times a value of a code is exact in f32, so that what is added to it may be added
    in the same instruction: `dequantize()` has one rounding, too."""
    if not spec.super_scale or spec.table:
        return False
    scale_bits = SIGNIFICANT_BITS[spec.super_scale] + dtype(spec.scale).bits
    return scale_bits + _significant_bits(spec.weight) <= SIGNIFICANT_BITS["f32"]


@functools.cache
def _significant_bits(code: str) -> int:
    """The most that a value of a code has."""
    kind = dtype(code)
    return kind.mantissa_bits + 1 if kind.is_float else kind.bits


def number_of_fields(kind: str, group: Any, load: Callable[[Any], ll.Tile]) -> ll.Tile:
    """The integers of a group, in f32.

    group  its number among those that lie one after the other: an int, or a scalar of the kernel
    load   gives the bytes of this number among them, uint8; zeros beyond the last one
    """
    bits = dtype(kind).bits
    byte, shift = group * bits // 8, group * bits % 8
    word = ll.cast(load(byte), "uint32")
    if 8 % bits and (not isinstance(shift, int) or shift + bits > 8):
        word = word | (ll.cast(load(byte + 1), "uint32") << 8)
    return _number(kind, word >> shift)


def numbers_of_fields(kind: str, first: Any, places: ll.Tile | None, load: Callable[[int], ll.Tile]) -> ll.Tile:
    """The integers of some neighbouring groups whose fields are the same bytes, in f32.

    first   the number of the first group among those of these bytes: an int, or a scalar of the kernel
    places  how far after the first one each group is, uint32; None: it is the first one
    load    gives a byte of them, uint8, for all groups
    """
    bits = dtype(kind).bits
    word = ll.cast(load(0), "uint32")
    for byte in range(1, bytes_of_groups(kind, groups_of_whole_bytes(kind))):
        word = word | (ll.cast(load(byte), "uint32") << (8 * byte))
    if places is not None:
        word = word >> (places * bits)
    return _number(kind, word if isinstance(first, int) and first == 0 else word >> (first * bits))


def _number(kind: str, word: ll.Tile) -> ll.Tile:
    """The lowest bits of words as numbers of a type, in f32."""
    bits = dtype(kind).bits
    # As bytes, of which `lowlp-plan-decode` knows that f32 holds them times a power of two.
    if not dtype(kind).is_signed:
        return ll.cast(ll.cast(word & ((1 << bits) - 1), "uint8"), "f32")
    at_top = word << (32 - bits)
    number = ll.view(at_top, dtype="int32", layout=at_top.layout) >> (32 - bits)
    return ll.cast(ll.cast(number, "int8"), "f32")
