"""What users give to be quantised, in numpy or PyTorch, and the seeds of what is drawn."""

from typing import Any, Final

import numpy as np

from lowlp.numeric.host_array import FLOAT_DTYPES
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_TORCH_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


def is_float(array: Any) -> bool:
    """Whether its elements are of a float type that can be quantised."""
    if is_torch_tensor(array):
        return str(array.dtype).removeprefix("torch.") in _TORCH_FLOATS
    return array.dtype in FLOAT_DTYPES.values() or array.dtype == np.float64


def checked_shape(w: Any) -> tuple[int, ...]:
    """[N, K] or [E, N, K]. Raises `LowlpTypeError` and `LowlpValueError`."""
    if not is_float(w):
        raise LowlpTypeError(f"w: expected float16, bfloat16, float32 or float64, got {w.dtype}")
    if w.ndim not in (2, 3) or 0 in w.shape:
        raise LowlpValueError(f"w: expected shape [N, K] with N, K >= 1, got {list(w.shape)}; or [E, N, K]")
    return tuple(int(extent) for extent in w.shape)


def checked_seed(seed: object) -> int:
    """Raises `LowlpValueError` for what is no seed."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise LowlpValueError(f"seed: must be an int of at least 0, got {seed!r:.40}")
    return int(seed)
