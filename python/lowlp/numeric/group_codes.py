"""Integers of groups, which a float of their super-group multiplies, as bytes: scales and offsets in two levels.

Codes of 8 bits are bytes. Narrower ones lie along K one after the other, low bits first: two of uint4 in a byte, four
of int6 in three bytes. The last bytes of a row end with zeros.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from lowlp import _layout
from lowlp.numeric.dtypes import DType, dtype
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

GROUP_CODE_TYPES: Final[tuple[str, ...]] = tuple(_layout.SCALE_CODE_TYPES)
"""'uint4', 'int6', 'uint8', 'int8'."""
PACKED_CODE_TYPES: Final[tuple[str, ...]] = tuple(name for name in GROUP_CODE_TYPES if dtype(name).bits < 8)
"""'uint4', 'int6'."""


def code_bits(name: str) -> int:
    """Bits of a code of a group: 4, 6 or 8."""
    return dtype(name).bits


def bytes_of_groups(name: str, groups: int) -> int:
    """Bytes that the codes of so many groups of a row take."""
    return -(-groups * code_bits(name) // 8)


def groups_of_whole_bytes(name: str) -> int:
    """The fewest groups whose codes fill bytes: 2 of uint4, 4 of int6."""
    return 8 // math.gcd(8, code_bits(name))


def type_of_codes(array: AnyArray, given: str | None, argument: str) -> str:
    """The type of an array's codes: the one that is given, or the array's own of 8 bits. Raises `LowlpTypeError`, and
    `LowlpValueError` for numbers that the type has not."""
    if array.dtype.kind not in "iu":
        raise LowlpTypeError(
            f"{argument}: expected elements of an integer type, which super_{argument} multiply, got {array.dtype}"
        )
    if given is None and array.dtype.name not in GROUP_CODE_TYPES:
        raise LowlpTypeError(f"{argument}: expected elements of uint8 or int8, or a scale_dtype, got {array.dtype}")
    kind = dtype(given or array.dtype.name)
    low, high = int(array.min()), int(array.max())
    if low < kind.min or high > kind.max:
        raise LowlpValueError(
            f"{argument}: must be in {int(kind.min)}..{int(kind.max)} for {kind.name}, got "
            f"{low if low < kind.min else high}"
        )
    return kind.name


def packed_codes(codes: AnyArray, name: str) -> AnyArray:
    """Codes [rows, groups] as they are stored: int8 or uint8 [rows, `bytes_of_groups`]."""
    kind = dtype(name)
    if kind.bits == 8:
        return codes.astype(name, copy=False)
    period = groups_of_whole_bytes(name)
    rows, groups = codes.shape
    whole = -(-groups // period) * period
    fields = np.zeros((rows, whole), np.uint32)
    fields[:, :groups] = codes.astype(np.int64) & ((1 << kind.bits) - 1)
    fields <<= np.tile(np.arange(period, dtype=np.uint32) * kind.bits, whole // period)
    words = fields.reshape(rows, -1, period).sum(axis=2, dtype="<u4")
    stored = words.view(np.uint8).reshape(rows, -1, 4)[:, :, : period * kind.bits // 8]
    return np.ascontiguousarray(stored.reshape(rows, -1)[:, : bytes_of_groups(name, groups)])


def unpacked_codes(stored: AnyArray, name: str, groups: int) -> AnyArray:
    """The codes [rows, groups] that `packed_codes` stored, int8 or uint8."""
    kind = dtype(name)
    if kind.bits == 8:
        return stored
    period = groups_of_whole_bytes(name)
    rows, of_period = stored.shape[0], period * kind.bits // 8
    periods = -(-groups // period)
    padded = np.zeros((rows, periods * of_period), np.uint8)
    padded[:, : stored.shape[1]] = stored
    words = np.zeros((rows, periods, 4), np.uint8)
    words[:, :, :of_period] = padded.reshape(rows, periods, of_period)
    fields = words.view("<u4") >> (np.arange(period, dtype=np.uint32) * kind.bits)
    return _numbers(fields.reshape(rows, -1)[:, :groups], kind)


def _numbers(fields: Any, kind: DType) -> AnyArray:
    """The numbers of a type that the low bits of fields stand for."""
    low = fields & ((1 << kind.bits) - 1)
    if not kind.is_signed:
        return np.ascontiguousarray(low.astype(np.uint8))
    sign = 1 << (kind.bits - 1)
    return np.ascontiguousarray(((low ^ sign).astype(np.int16) - sign).astype(np.int8))
