"""Arrays of what groups have, scales, zeros and offsets, checked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError


def read_only(array: AnyArray) -> AnyArray:
    """A contiguous view of an array, or a copy, that cannot be written."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


class Expected(NamedTuple):
    """The shape that scales, zeros and offsets must have, and how errors say it."""

    shape: tuple[int, ...]
    text: str

    def check(self, array: AnyArray, name: str) -> None:
        """Raises `LowlpValueError` for an array of another shape."""
        if array.shape != self.shape:
            raise LowlpValueError(f"{name}: expected shape {self.text} = {list(self.shape)}, got {list(array.shape)}")


def per_group(value: object, name: str, expected: Expected) -> AnyArray:
    """Scales, zeros or offsets, checked."""
    array = as_host_array(value, name)
    is_integer = name == "zeros" and array.dtype.kind in "iu"
    if not is_integer and array.dtype not in (SCALE_DTYPES if name == "scales" else FLOAT_DTYPES).values():
        allowed = {
            "scales": "float16, bfloat16, float32, float8_e8m0fnu or float8_e4m3fn",
            "zeros": "float16, bfloat16 or float32 or an integer type",
            "offsets": "float16, bfloat16 or float32",
        }[name]
        hint = "; a view of bytes as one of the last two makes them scales" * (
            name == "scales" and array.dtype == np.uint8
        )
        raise LowlpTypeError(f"{name}: expected elements of {allowed}, got {array.dtype}{hint}")
    expected.check(array, name)
    if not is_integer:
        check_finite(array, name)
    elif array.dtype.itemsize > 1:
        low, high = int(array.min()), int(array.max())
        if low < -(2**15) or high >= 2**15:
            raise LowlpValueError(f"{name}: must be in -32768..32767, got {low if low < -(2**15) else high}")
        array = array.astype(np.int16)
    return read_only(array.reshape(-1, array.shape[-1]))


def check_finite(array: Any, name: str) -> None:
    """Raises `LowlpValueError`, which names the first that is not."""
    finite = np.isfinite(array)
    if not finite.all():
        place = [int(index) for index in np.argwhere(~finite)[0]]
        raise LowlpValueError(f"{name}: must be finite, got {float(array[tuple(place)])} at {place}")
