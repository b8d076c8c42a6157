"""Scales in two levels: an integer for each group, times a float of the super-group that it is in.

GGUF's Q4_K has 6 bits for the scale of 32 weights and a float16 for 256, and the same for minima, which are offsets
below zero here (ggml-org/ggml, src/ggml-quants.c, dequantize_row_q4_K); QServe (arXiv 2405.04532, section 4.1) integers
of 8 bits for 128 weights and a float16 for a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowlp.numeric.codec import MAX_GROUP_SIZE
from lowlp.numeric.dtypes import dtype_among
from lowlp.numeric.group_codes import GROUP_CODE_TYPES, PACKED_CODE_TYPES, packed_codes, type_of_codes
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.weights.group_arrays import Expected, check_finite, per_group, read_only
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError


def fields_of_scales(
    scales: object,
    offsets: object,
    super_scales: object,
    super_offsets: object,
    k: int,
    group_size: int,
    group: int | str,
    super_group_size: int | None,
    scale_dtype: object,
    expected: Expected,
) -> dict[str, Any]:
    """Fields of `Meaning` for the arguments of `QuantizedTensor`, checked: scales and offsets, and what super-groups
    have where there are two levels.

    group     as a `Codec` names it: a row that is one group is one super-group, however long
    expected  the shape of scales
    """
    if super_scales is None:
        for name, value in (
            ("super_offsets", super_offsets),
            ("super_group_size", super_group_size),
            ("scale_dtype", scale_dtype),
        ):
            if value is not None:
                got = repr(value) if isinstance(value, int | str) else type(value).__name__
                raise LowlpValueError(f"{name}: goes with super_scales, which are not given; got {got:.40}")
        of_offsets = None if offsets is None else per_group(offsets, "offsets", expected)
        return {"scales": per_group(scales, "scales", expected), "offsets": of_offsets}
    if super_offsets is not None and offsets is None:
        raise LowlpValueError("super_offsets: multiply offsets, which are not given")
    size = checked_super_group_size(super_group_size, group_size)
    if group == "channel":
        size = None
    supers = -(-k // size) if size else 1
    text = "[N, ceil(K / super_group_size)]" if len(expected.shape) == 2 else "[E, N, ceil(K / super_group_size)]"
    of_supers = Expected((*expected.shape[:-1], supers), text)
    kind = None if scale_dtype is None else dtype_among(scale_dtype, "scale_dtype", GROUP_CODE_TYPES)
    codes, kind_of_scales = _codes(scales, "scales", kind, expected)
    found: dict[str, Any] = {
        "super_scales": _supers(super_scales, "super_scales", of_supers),
        "super_group": size or "channel",
        "packed_type": kind if kind in PACKED_CODE_TYPES else "",
        "scales": read_only(packed_codes(codes, kind_of_scales)),
        "offsets": None,
    }
    if super_offsets is not None:
        codes, kind_of_offsets = _codes(offsets, "offsets", kind, expected)
        found["offsets"] = read_only(packed_codes(codes, kind_of_offsets))
        found["super_offsets"] = _supers(super_offsets, "super_offsets", of_supers)
        if found["super_offsets"].dtype != found["super_scales"].dtype:
            raise LowlpTypeError(
                f"super_offsets: expected elements of the type of super_scales, {found['super_scales'].dtype}, got "
                f"{found['super_offsets'].dtype}"
            )
    elif offsets is not None:
        found["offsets"] = per_group(offsets, "offsets", expected)
    return found


def checked_super_group_size(value: object, group_size: int) -> int | None:
    """As a number; None for a whole row. Raises `LowlpTypeError` and `LowlpValueError`."""
    if value is None:
        return None
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise LowlpTypeError(f"super_group_size: expected an int, or None for a whole row, got {value!r:.40}")
    if value == -1:
        return None
    size = int(value)
    if not 1 <= size <= MAX_GROUP_SIZE or size % group_size:
        limit = " of at most 2^63 - 1" if size > MAX_GROUP_SIZE else ""
        got = size if abs(size) < 10**100 else f"an int of {size.bit_length()} bits"
        raise LowlpValueError(f"super_group_size: must be a multiple of group_size = {group_size}{limit}, got {got}")
    return size


def _codes(value: object, argument: str, kind: str | None, expected: Expected) -> tuple[AnyArray, str]:
    """Integers of groups, of all rows, and their type."""
    array = as_host_array(value, argument)
    expected.check(array, argument)
    return array.reshape(-1, array.shape[-1]), type_of_codes(array, kind, argument)


def _supers(value: object, argument: str, expected: Expected) -> AnyArray:
    array = as_host_array(value, argument)
    if array.dtype not in FLOAT_DTYPES.values():
        raise LowlpTypeError(f"{argument}: expected elements of float16, bfloat16 or float32, got {array.dtype}")
    expected.check(array, argument)
    check_finite(array, argument)
    return read_only(array.reshape(-1, array.shape[-1]))
