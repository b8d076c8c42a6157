"""Quantisation of weights: round to nearest, per group of K.

The scale is rounded to its own type first, and the codes are computed from the rounded scale: they are the best for the
scale that is stored. Rounding goes up where the nearest scale would leave the largest weight out of range, so within
the range of the type |w - value| <= scale / 2 for integers.

    integers, zero_point=False   s = max|w| / (2^(b-1) - 1), q = w / s. Unsigned types hold q + 2^(b-1) with zero
                                 points of 2^(b-1) everywhere; where no weight of the tensor is negative they hold q
                                 alone, with s = max|w| / (2^b - 1) and no zero points.
      of one bit                 q is -1 or 0, and the value -s or 0: -s is the weight of largest magnitude, so s may be
                                 negative
    integers, zero_point=True    s = (max(w, 0) - min(w, 0)) / (2^b - 1), z = -min(w, 0) / s: integers
    floats                       s = max|w| / (largest finite value)
    bipolar                      s = max|w| / (2^b - 1); for bipolar1 the mean of |w|, its least-squares choice
                                 (XNOR-Net, arXiv 1603.05279, section 3.1)

A group of zeros has the scale 1 (in bipolar types, which have no zero, 0) and dequantises to zeros.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from lowlp.dtypes import DType, dtype_among
from lowlp.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.quantized_tensor import BLOCK_ELEMENTS, QuantizedTensor, code_dtype, group_size_of, refuse_planned
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

__all__ = ["QuantizedTensor", "quantize"]

Floats: TypeAlias = NDArray[np.float32]
# Weights [rows, groups, group_size] -> codes of that shape, scales and zeros [rows, groups].
Scheme: TypeAlias = Callable[[Floats], tuple[NDArray[np.uint8], AnyArray, AnyArray | None]]


def quantize(
    w: object,
    dtype: str | DType = "int6",
    group_size: int | None = 128,
    zero_point: bool = False,
    scale_dtype: str | DType = "f16",
    progress: bool = False,
    *,
    lut: None = None,
) -> QuantizedTensor:
    """Quantises weights, each group of a row by itself, to nearest with ties to even.

    w            [N, K], float16, bfloat16, float32 or float64, finite in float32; numpy, or PyTorch on the CPU
    dtype        any type of 1 to 8 bits
    group_size   a divisor of K; None or -1: one group a row
    zero_point   integers only: an integer zero point a group, for weights that are not centred at 0
    scale_dtype  'f16', 'bf16' or 'f32'
    progress     show a bar, where tqdm is installed
    lut          None: tables of values are not offered yet

    The formulas are at the head of this module. Works in float32 on a few rows at a time. Raises `LowlpTypeError`
    for other types and `LowlpValueError` for a wrong shape, weights that are NaN or infinite, a group size that does
    not divide K, zero points with a type that has none, and weights too large for the type of the scale. Scales too
    small for it become its smallest positive value.
    """
    refuse_planned(lut=lut)
    found = code_dtype(dtype)
    weights = _weights(w)
    n, k = weights.shape
    size = group_size_of(k, group_size)
    if not isinstance(zero_point, bool | np.bool_):
        raise LowlpTypeError(f"zero_point: expected a bool, got {zero_point!r}")
    if zero_point and (not found.is_integer or _is_bipolar(found)):
        raise LowlpValueError(f"zero_point: allowed for integer types only, got dtype {found.name}")
    scale = dtype_among(scale_dtype, "scale_dtype", tuple(FLOAT_DTYPES))

    codes = np.empty((n, k), np.uint8)
    scales = np.empty((n, k // size), FLOAT_DTYPES[scale])
    zeros: AnyArray | None = None
    scheme = _choose_scheme(found, weights, size, bool(zero_point), scale)
    for part, block in _with_progress(list(_row_slices(n, k)), weights, size, progress):
        block_codes, scales[part], block_zeros = scheme(block)
        codes[part] = block_codes.reshape(codes[part].shape)
        if block_zeros is not None:
            zeros = np.empty(scales.shape, block_zeros.dtype) if zeros is None else zeros
            zeros[part] = block_zeros
    return QuantizedTensor(codes, dtype=found, scales=scales, zeros=zeros, group_size=size)


def _weights(w: object) -> AnyArray:
    weights = as_host_array(w, "w")
    if weights.dtype not in FLOAT_DTYPES.values() and weights.dtype != np.float64:
        raise LowlpTypeError(f"w: expected float16, bfloat16, float32 or float64, got {weights.dtype}")
    if weights.ndim != 2 or 0 in weights.shape:
        raise LowlpValueError(f"w: expected shape [N, K] with N, K >= 1, got {list(weights.shape)}")
    return weights


def _is_bipolar(dtype: DType) -> bool:
    return dtype.name.startswith("bipolar")


def _row_slices(n: int, k: int) -> Iterator[slice]:
    rows = max(1, BLOCK_ELEMENTS // k)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def _grouped(weights: AnyArray, part: slice, size: int) -> Floats:
    with np.errstate(over="ignore"):  # float64 beyond float32 becomes an infinity, and is refused as such
        block = weights[part].astype(np.float32)
    return block.reshape(block.shape[0], -1, size)


def _with_progress(parts: list[slice], weights: AnyArray, size: int, progress: bool) -> Iterator[tuple[slice, Floats]]:
    shown: Iterable[slice] = parts
    if progress:
        try:
            shown = cast(Iterable[slice], import_module("tqdm.auto").tqdm(parts, desc="quantize", unit="block"))
        except ImportError:
            shown = parts
    for part in shown:
        block = _grouped(weights, part, size)
        if not np.isfinite(block.min()) or not np.isfinite(block.max()):
            row, column = (int(i) for i in np.argwhere(~np.isfinite(block.reshape(block.shape[0], -1)))[0])
            row += part.start
            raise LowlpValueError(
                f"w: must be finite in float32, got {float(weights[row, column])} at [{row}, {column}]"
            )
        yield part, block


def _choose_scheme(dtype: DType, weights: AnyArray, size: int, zero_point: bool, scale_dtype: str) -> Scheme:
    if not dtype.is_integer or _is_bipolar(dtype):
        return lambda block: _encoded(block, dtype, scale_dtype)
    if zero_point:
        return lambda block: _asymmetric(block, dtype, scale_dtype)
    n, k = weights.shape
    if not dtype.is_signed and all(_grouped(weights, part, size).min() >= 0 for part in _row_slices(n, k)):
        return lambda block: _magnitudes(block, dtype, scale_dtype)
    return lambda block: _symmetric(block, dtype, scale_dtype)


def _stored_scale(exact: Floats, nonzero: NDArray[np.bool_], scale_dtype: str) -> tuple[AnyArray, Floats]:
    """The scale as it is stored, and the same in float32: the nearest value, or the next one up where the nearest is
    smaller than `exact` by more than float32's own noise; 1 where not `nonzero`."""
    exact = np.where(nonzero, np.maximum(exact, np.finfo(np.float32).smallest_subnormal), np.float32(1))
    with np.errstate(over="ignore"):
        stored = exact.astype(FLOAT_DTYPES[scale_dtype])
    # A positive float's successor has the successor of its bits.
    bits = stored.view(f"u{stored.dtype.itemsize}")
    bits += stored.astype(np.float32) < exact * np.float32(1 - 2.0**-22)
    if not np.isfinite(stored).all():
        allowed = "use scale_dtype='bf16' or 'f32'" if scale_dtype == "f16" else "make the weights smaller"
        raise LowlpValueError(
            f"scale_dtype: a scale of {float(exact.max()):g} is out of range of {scale_dtype}; {allowed}"
        )
    return stored, stored.astype(np.float32)


def _largest(block: Floats) -> Floats:
    # Two reductions, because they take no temporary of the block's size as abs would.
    return cast(Floats, np.maximum(block.max(axis=2), -block.min(axis=2)))


def _symmetric(block: Floats, dtype: DType, scale_dtype: str) -> tuple[NDArray[np.uint8], AnyArray, AnyArray | None]:
    """Codes q in -(2^(b-1) - 1)..2^(b-1) - 1; for one bit -1 and 0."""
    centre = 1 << (dtype.bits - 1)
    highest = max(centre - 1, 1)
    largest = _largest(block)
    stored, scale = _stored_scale(largest / np.float32(highest), largest > 0, scale_dtype)
    low, high = -highest, highest
    if dtype.bits == 1:
        # The code -1 must reach the weight of largest magnitude, of whichever sign.
        positive = block.max(axis=2) == largest
        stored, scale = np.where(positive, -stored, stored), np.where(positive, -scale, scale)
        low, high = -1, 0
    block /= scale[:, :, None]
    np.rint(block, out=block)
    np.clip(block, low, high, out=block)
    if dtype.is_signed:
        codes = block.astype(np.int8).view(np.uint8)
        codes &= np.uint8((1 << dtype.bits) - 1)
        return codes, stored, None
    block += np.float32(centre)
    return block.astype(np.uint8), stored, np.full(stored.shape, centre, np.uint8)


def _magnitudes(block: Floats, dtype: DType, scale_dtype: str) -> tuple[NDArray[np.uint8], AnyArray, AnyArray | None]:
    """Codes 0..2^b - 1 of weights none of which is negative."""
    highest = (1 << dtype.bits) - 1
    largest = block.max(axis=2)
    stored, scale = _stored_scale(largest / np.float32(highest), largest > 0, scale_dtype)
    block /= scale[:, :, None]
    np.rint(block, out=block)
    np.clip(block, 0, highest, out=block)
    return block.astype(np.uint8), stored, None


def _asymmetric(block: Floats, dtype: DType, scale_dtype: str) -> tuple[NDArray[np.uint8], AnyArray, AnyArray | None]:
    """Codes over min(w, 0)..max(w, 0), with 0 itself always among the values."""
    steps = (1 << dtype.bits) - 1
    low = np.minimum(block.min(axis=2), 0)
    with np.errstate(over="ignore"):
        span = np.maximum(block.max(axis=2), 0) - low
    stored, scale = _stored_scale(span / np.float32(steps), span > 0, scale_dtype)
    zero = np.clip(np.rint(-low / scale), 0, steps)
    block /= scale[:, :, None]
    np.rint(block, out=block)
    block += zero[:, :, None]
    np.clip(block, 0, steps, out=block)
    codes = block.astype(np.uint8)
    if not dtype.is_signed:
        return codes, stored, zero.astype(np.uint8)
    # The same values, with code and zero point moved down by half the range: the sign bit turns over.
    codes ^= np.uint8(1 << (dtype.bits - 1))
    return codes, stored, (zero - (1 << (dtype.bits - 1))).astype(np.int8)


@functools.lru_cache(maxsize=8)
def _encode_table(dtype: DType) -> NDArray[np.uint8]:
    """Codes by the upper 16 bits of a float32 and one bit that tells whether any of the lower 16 is set.

    These 17 bits decide the code. The values of a float or bipolar type of at most 8 bits have at most 8 significant
    bits, neighbours of that many have midpoints of no more (two floats of 1 + 6 bits: 8; two odd integers: the even one
    between them), and the upper half of a float32 holds 8. So the lower half only tells which side of a midpoint it is.
    """
    upper = np.arange(1 << 17, dtype=np.uint32)
    values = ((upper >> 1 << 16) | (upper & 1)).view(np.float32)
    return dtype.encode(np.where(np.isnan(values), np.float32(0), values))


def encode_fast(values: Floats, dtype: DType) -> NDArray[np.uint8]:
    """`dtype.encode` of float32 values none of which is NaN, several times as fast, by one table."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    index = bits >> np.uint32(15)
    index &= np.uint32(0x1FFFE)
    index |= (bits & np.uint32(0xFFFF)) != 0
    return np.take(_encode_table(dtype), index, mode="clip")


def _encoded(block: Floats, dtype: DType, scale_dtype: str) -> tuple[NDArray[np.uint8], AnyArray, AnyArray | None]:
    """Codes of floats and bipolar types: the type's own `encode`."""
    largest = _largest(block)
    if dtype.name == "bipolar1":
        exact = np.abs(block).mean(axis=2, dtype=np.float32)
    else:
        exact = largest / np.float32(dtype.max)
    stored, scale = _stored_scale(exact, largest > 0, scale_dtype)
    with np.errstate(over="ignore"):
        block /= scale[:, :, None]
    codes = encode_fast(block, dtype)
    if _is_bipolar(dtype):
        stored = np.where(largest > 0, stored, np.zeros((), stored.dtype))
    return codes, stored, None
