"""Scales in two levels: integers of groups times floats of super-groups, made in f32 in the kernel.

A product of both has up to 11 + 8 significant bits in f16, which f32 holds; so it is the scale that `dequantize()` has.
Integers of less than 8 bits are fields of bytes that follow each other along K (`lowlp.numeric.group_codes`). Kernels
with stages take those of groups whose fields fill bytes in what is unrolled, so that shifts are known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from lowlp import language as ll
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.group_codes import PACKED_CODE_TYPES, bytes_of_groups
from lowlp.weights.packing import UNIT_K

from .spec import LinearSpec

_SIGNIFICANT_BITS: Final = {"f16": 11, "bf16": 8, "f32": 24}


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
    scale_bits = _SIGNIFICANT_BITS[spec.super_scale] + dtype(spec.scale).bits
    return scale_bits + _significant_bits(spec.weight) <= _SIGNIFICANT_BITS["f32"]


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
    if not isinstance(shift, int) or shift + bits > 8:
        word = word | (ll.cast(load(byte + 1), "uint32") << 8)
    # As bytes, of which `lowlp-plan-decode` knows that f32 holds them times a power of two.
    if not dtype(kind).is_signed:
        return ll.cast(ll.cast((word >> shift) & ((1 << bits) - 1), "uint8"), "f32")
    at_top = (word >> shift) << (32 - bits)
    number = ll.view(at_top, dtype="int32", layout=at_top.layout) >> (32 - bits)
    return ll.cast(ll.cast(number, "int8"), "f32")
