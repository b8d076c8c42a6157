"""`lowlp.quantize_activations` and `lowlp.hadamard`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.activations.hadamard import checked_block, transformed
from lowlp.activations.kinds import ActivationKind, activation_kind
from lowlp.activations.quantize import LEAST_SCALE, Rule, quantized_rows
from lowlp.activations.quantized import QuantizedActivations, checked_group_size
from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array, as_torch_tensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_SCALES = ("token", "tensor")


def quantize_activations(
    x: Any,
    dtype: str | DType = "int8",
    *,
    scale: Any = "token",
    symmetric: bool = True,
    clip: float = 1.0,
    smooth: Any = None,
    hadamard: int | None = None,
    group_size: int | None = None,
) -> QuantizedActivations:
    """Quantises activations, each row by itself.

    x           [..., K], K >= 1, float16, bfloat16 or float32, any strides; numpy, or a tensor of PyTorch on the CPU
    dtype       'int2' to 'int8', 'uint1' to 'uint8', 'bipolar1' to 'bipolar8', 'ternary' (-1, 0, 1), 'f8e4m3', 'f8e5m2'
    scale       'token': one a row, max|x| * clip / (largest number of the type); 'tensor': one for all rows; or scales
                that were found before (static ones): a number, or float32 of shape [..., 1], [...], or with groups
                [..., K / group_size], from 2^-126 on
    symmetric   True: no zero points; unsigned types then have one of 2^(b - 1). False: a zero point of each row, so
                that its least and largest numbers become the least and largest codes; integers only, no given scales
    clip        in (0, 1]: numbers beyond that part of max|x| become the largest code
    smooth      float32 [K], positive: x is divided by it first, as SmoothQuant does (x * (1 / smooth))
    hadamard    numbers of a block of `lowlp.hadamard`, which transforms x, after `smooth`, and rounds to the type of x;
                None: no transform
    group_size  divides K: so many numbers of a row share a scale; None: all. Not with scale='tensor'

    Returns codes, scales, zero points, and on demand sums and planes, in the library of x. A row, or group, with NaN or
    an infinity has the scale NaN, and no other row changes. Each step, in float32, is in
    `lowlp.activations.quantize`. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    rows = _rows_of(x)
    k = rows.shape[1]
    kind = activation_kind(dtype)
    group = checked_group_size(group_size, k)
    rule = _rule(kind, scale, symmetric, clip, hadamard, group, k)
    shape = tuple(x.shape)
    scales_shape = (*shape[:-1], 1 if group is None else k // group)
    given = None if rule.scale != "given" else _given_scales(scale, scales_shape, grouped=group is not None)
    codes, scales, zeros = quantized_rows(rows, rule, _smooth(smooth, k), given)
    wrap = as_torch_tensor if is_torch_tensor(x) else np.asarray
    return QuantizedActivations._of(
        kind,
        wrap(codes.reshape(shape)),
        wrap(scales.reshape(scales_shape)),
        None if zeros is None else wrap(zeros.reshape(scales_shape)),
        None,
        group,
    )


def hadamard(x: Any, block: int | None = None) -> Any:
    """The normalised Hadamard transform of blocks of K, its own inverse.

    x      [..., K], float16, bfloat16 or float32; numpy, or a tensor of PyTorch on the CPU
    block  numbers of a block, which divides K: a power of two, or 12, 20 or 28 times one, from 32 to 32768; None: K

    Returns an array of the shape and type of x, in its library. Sums are float32, in the order that
    `lowlp.activations.hadamard` says, and rounded to the type of x at the end. Raises `LowlpTypeError` and
    `LowlpValueError`, which name the argument.
    """
    rows = _rows_of(x)
    size = checked_block(block, rows.shape[1], "block")
    with np.errstate(over="ignore"):
        result = transformed(rows.astype(np.float32), size).astype(rows.dtype).reshape(x.shape)
    return as_torch_tensor(result) if is_torch_tensor(x) else result


def _rows_of(x: Any) -> AnyArray:
    """x as a matrix of numpy. Raises where it is none of activations."""
    rows = as_host_array(x, "x")
    if rows.dtype not in FLOAT_DTYPES.values():
        raise LowlpTypeError(f"x: expected float16, bfloat16 or float32, got {rows.dtype}")
    if rows.ndim < 1 or not rows.shape[-1]:
        raise LowlpValueError(f"x: must have a last dimension K of at least 1, got shape {rows.shape}")
    return rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1])


def _rule(
    kind: ActivationKind, scale: object, symmetric: object, clip: object, block: object, group: int | None, k: int
) -> Rule:
    """The checked arguments of `quantize_activations`."""
    if isinstance(scale, str) and scale not in _SCALES:
        raise LowlpValueError(f"scale: must be 'token', 'tensor' or scales, got {scale!r:.40}")
    name = scale if isinstance(scale, str) else "given"
    if not isinstance(symmetric, bool | np.bool_):
        raise LowlpTypeError(f"symmetric: expected a bool, got {symmetric!r:.40}")
    if not symmetric and (not kind.dtype.is_integer or kind.ternary):
        raise LowlpValueError(f"symmetric: must be True for {kind.name}, which has no zero points")
    if not symmetric and name == "given":
        raise LowlpValueError("symmetric: must be True with given scales, for which nobody gives zero points")
    if symmetric and kind.name == "uint1":
        raise LowlpValueError(
            "symmetric: must be False for uint1, whose one code beside 0 has one sign; or use bipolar1"
        )
    if isinstance(clip, bool) or not isinstance(clip, int | float | np.floating):
        raise LowlpTypeError(f"clip: expected a number, got {clip!r:.40}")
    if not 0 < clip <= 1:
        raise LowlpValueError(f"clip: must be above 0 and at most 1, got {clip}")
    if name == "given" and clip != 1:
        raise LowlpValueError(f"clip: must be 1 with given scales, got {clip}")
    if name == "tensor" and group is not None:
        raise LowlpValueError(f"group_size: must be None with scale='tensor', got {group}")
    size = 0 if block is None else checked_block(block, k, "hadamard")
    return Rule(kind, name, bool(symmetric), float(clip), size, group)


def _given_scales(scale: Any, shape: tuple[int, ...], grouped: bool) -> NDArray[np.float32]:
    """float32 [M, groups] of given scales."""
    if isinstance(scale, bool) or not (isinstance(scale, int | float) or hasattr(scale, "shape")):
        raise LowlpTypeError(f"scale: expected 'token', 'tensor', a number or an array, got {scale!r:.40}")
    array = np.asarray(scale, np.float32) if isinstance(scale, int | float) else as_host_array(scale, "scale")
    if array.dtype not in FLOAT_DTYPES.values() and array.dtype != np.float64:
        raise LowlpTypeError(f"scale: expected float32, got {array.dtype}")
    if array.shape == shape[:-1] and not grouped:
        array = array[..., None]
    if array.size != 1 and array.shape != shape:
        raise LowlpValueError(f"scale: must be one number or of shape {shape}, got shape {array.shape}")
    with np.errstate(over="ignore"):
        numbers = array.astype(np.float32)
    bad = ~(np.isfinite(numbers) & (numbers >= LEAST_SCALE))
    if bad.any():
        raise LowlpValueError(f"scale: must be finite and at least 2^-126, got {numbers[bad].flat[0]}")
    full = np.broadcast_to(numbers.reshape(()) if numbers.size == 1 else numbers, shape)
    return np.ascontiguousarray(full).reshape(math.prod(shape[:-1]), shape[-1])


def _smooth(smooth: Any, k: int) -> NDArray[np.float32] | None:
    """float32 [K], or None."""
    if smooth is None:
        return None
    array = as_host_array(smooth, "smooth")
    if array.dtype not in FLOAT_DTYPES.values():
        raise LowlpTypeError(f"smooth: expected float16, bfloat16 or float32, got {array.dtype}")
    if array.shape != (k,):
        raise LowlpValueError(f"smooth: must have shape ({k},), got {array.shape}")
    numbers = array.astype(np.float32)
    bad = ~(np.isfinite(numbers) & (numbers >= LEAST_SCALE))
    if bad.any():
        raise LowlpValueError(f"smooth: must be finite and at least 2^-126, got {numbers[bad].flat[0]}")
    return numbers
