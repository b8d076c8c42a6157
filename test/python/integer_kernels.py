"""Small kernels on tiles of integers, and integers of all sizes to run them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import lowlp
from lowlp import language as ll

LAYOUT = lowlp.local(2).spatial(32).local(2)
SIZE = 128
WIDE = ("int16", "uint16", "int32", "uint32")
Array = npt.NDArray[Any]
random = np.random.default_rng(11)


def numpy_type(dtype: str) -> np.dtype[Any]:
    names = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
    return np.dtype(names.get(dtype, dtype))


def run(body: Callable[..., ll.Tile], *inputs: Array, dtypes: tuple[str, ...], out: str) -> Array:
    """What the body makes of tiles of 128 elements of the inputs."""

    def kernel_body(a, b, y):
        tiles = [
            ll.load_global(ll.view_global(pointer, shape=[SIZE]), offsets=[0], layout=LAYOUT)
            for pointer in (a, b)[: len(inputs)]
        ]
        ll.store_global(body(*tiles), ll.view_global(y, shape=[SIZE]), offsets=[0])

    parameters = {"a": ll.pointer(dtypes[0]), "b": ll.pointer(dtypes[-1]), "y": ll.pointer(out)}
    kernel = ll.make_kernel(kernel_body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)
    result = np.zeros(SIZE, numpy_type(out))
    kernel(inputs[0], inputs[-1], result)
    return result


def numbers(dtype: str) -> Array:
    """Integers of all sizes, the smallest and the largest among them."""
    info = np.iinfo(dtype)
    wide = random.integers(info.min, info.max, SIZE, dtype=np.int64, endpoint=True)
    shifted = wide >> random.integers(0, info.bits, SIZE)
    shifted[:6] = (info.min, info.max, 0, 1, info.max - 1, info.max // 2 + 1)
    return shifted.astype(dtype)
