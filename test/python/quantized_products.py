"""Products of quantised activations and weights, against numpy. All pairs of widths, on the CPU target:

python test/python/quantized_products.py
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np

import lowlp

WEIGHTS = [f"{kind}{bits}" for kind in ("int", "uint", "bipolar") for bits in range(1, 9)]
INTEGERS = [*(f"int{bits}" for bits in range(2, 9)), "ternary"]
OTHERS = [f"{kind}{bits}" for kind in ("uint", "bipolar") for bits in range(1, 9)]
FILLS = ("random", "largest", "alternating")


def codes_of(least: int, most: int, shape: tuple[int, ...], fill: str, seed: int) -> np.ndarray[Any, Any]:
    """Codes from least to most: random; all the one with the larger number; or both ends by turns."""
    if fill == "random":
        return np.random.default_rng(seed).integers(least, most + 1, shape)
    end = least if -least > most else most
    if fill == "largest":
        return np.full(shape, end)
    return np.where(np.indices(shape).sum(0) % 2, least, most)


def activations(dtype: str, m: int, k: int, fill: str = "random", seed: int = 1) -> lowlp.QuantizedActivations:
    """Codes of a type, with other scales in each row; of uint other zero points too."""
    element = lowlp.int2 if dtype == "ternary" else lowlp.dtype(dtype)
    is_signed = element.is_integer and element.is_signed
    least, most = (int(element.min), int(element.max)) if is_signed else (0, (1 << element.bits) - 1)
    if dtype == "ternary":
        least = -1
    codes = codes_of(least, most, (m, k), fill, seed).astype(np.int8 if is_signed else np.uint8)
    scales = np.random.default_rng(seed).uniform(0.5, 2.0, (m, 1)).astype(np.float32)
    zeros = (np.arange(m, dtype=np.int32) % (most + 1)).reshape(m, 1) if dtype.startswith("uint") else None
    return lowlp.QuantizedActivations(codes, dtype=dtype, scales=scales, zeros=zeros)


def weights(dtype: str, n: int, k: int, group_size: int = -1, fill: str = "random", seed: int = 2, **parts: Any) -> Any:
    """Codes of a type, packed for bytes; of uint with other zero points in each row."""
    element = lowlp.dtype(dtype)
    codes = codes_of(0, (1 << element.bits) - 1, (n, k), fill, seed).astype(np.uint8)
    if element.is_integer and element.is_signed and fill != "random":
        least, most = int(element.min), int(element.max)
        codes = (codes_of(least, most, (n, k), fill, seed) & ((1 << element.bits) - 1)).astype(np.uint8)
    groups = 1 if group_size == -1 else k // group_size
    scales = np.random.default_rng(seed).uniform(0.5, 2.0, (n, groups)).astype(np.float32)
    if dtype.startswith("uint") and "zeros" not in parts:
        parts["zeros"] = (np.arange(n * groups).reshape(n, groups) % 200).astype(np.uint8)
    parts = {"scales": scales, "activation": "int8", **parts}
    return lowlp.QuantizedTensor(codes, dtype=dtype, group_size=None if group_size == -1 else group_size, **parts)


def numbers_of_x(xq: lowlp.QuantizedActivations) -> np.ndarray[Any, Any]:
    """What codes mean before their scale."""
    numbers = np.asarray(xq.codes).astype(np.int64)
    if xq.dtype.name.startswith("bipolar"):
        numbers = 2 * numbers - ((1 << xq.dtype.bits) - 1)
    return numbers if xq.zeros is None else numbers - np.asarray(xq.zeros).astype(np.int64)


def numbers_of_weights(qw: Any) -> np.ndarray[Any, Any]:
    numbers = qw.codec.values().astype(np.int64)[qw.codes]
    if qw.zeros is None:
        return numbers
    grouped = numbers.reshape(len(numbers), -1, qw.group_size) - np.asarray(qw.zeros).astype(np.int64)[..., None]
    return grouped.reshape(numbers.shape)


def sums_of(xq: lowlp.QuantizedActivations, qw: Any) -> np.ndarray[Any, Any]:
    """The sums of products of numbers, as int32 wraps them."""
    return (numbers_of_x(xq) @ numbers_of_weights(qw).T).astype(np.int32)


def scaled(xq: lowlp.QuantizedActivations, qw: Any, bias: Any = None) -> np.ndarray[Any, Any]:
    """round(round(sum * s_w) * s_x) + bias, each step rounded to float32."""
    scales = np.asarray(qw.scales, np.float32).reshape(1, -1)
    y = (sums_of(xq, qw).astype(np.float32) * scales) * np.asarray(xq.scales)
    return y if bias is None else y + bias


def error_of(y: Any, xq: lowlp.QuantizedActivations, qw: Any) -> float:
    """The relative error in the norm of Frobenius, against float64."""
    expected = np.asarray(xq.dequantize(), np.float64) @ qw.dequantize().astype(np.float64).T
    return float(np.linalg.norm(y.astype(np.float64) - expected) / np.linalg.norm(expected))


def check_pair(weight: str, x: str, m: int, n: int, k: int, fill: str = "random") -> None:
    """Raises unless the sums of products are those of numpy."""
    xq, qw = activations(x, m, k, fill), weights(weight, n, k, fill=fill)
    np.testing.assert_array_equal(lowlp.linear(xq, qw, out_dtype="s32"), sums_of(xq, qw), f"{weight} x {x} {fill}")


def main() -> None:
    """All pairs of widths, and several shapes of each."""
    for number, (weight, x) in enumerate(itertools.product(WEIGHTS, [*INTEGERS, *OTHERS])):
        for fill, (m, n, k) in zip(FILLS, ((1 + number % 17, 70, 200), (33, 64, 256), (64, 48, 96)), strict=True):
            check_pair(weight, x, m, n, k, fill)
        print(f"{weight} x {x}: exact", flush=True)


if __name__ == "__main__":
    sys.exit(main())
