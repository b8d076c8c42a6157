"""Which types activations may have in products, and what follows from them.

    f16, bf16       halves: products of 16 along K, accumulators of f32
    int8, uint8     integers of 1 to 8 bits, a byte each: products of 32 along K, sums of int32, which are exact
    f8e4m3, f8e5m2  bytes too: products of 32 along K, sums of f32, which begin anew every 128 along K

Weights of integer products are decoded to bytes without sign: the stored codes u, which count up from 0. A code means
the number a u + c with integers a and c (WEIGHTS), so that

    sum of numbers * x = a * (sum of u * x) + c * (sum of x)

whatever the type of the weights; the sums of x are those of a row, an operand, or of a group, products with ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from lowlp.errors import LowlpValueError
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType

HALVES: Final = ("f16", "bf16")
INTEGERS: Final = ("int8", "uint8")
FLOATS: Final = ("f8e4m3", "f8e5m2")
BYTES: Final = (*INTEGERS, *FLOATS)

FAMILIES: Final = {"f16": "f16", "bf16": "bf16", "int8": "s8", "uint8": "s8", "f8e4m3": "e4m3", "f8e5m2": "e4m3"}
"""Activation -> the family of packed weights that it takes (`lowlp.weights.families`)."""
PLACED_FOR: Final = {
    "f16": "f16",
    "bf16": "bf16",
    "int8": "int8",
    "uint8": "int8",
    "f8e4m3": "f8e4m3",
    "f8e5m2": "f8e4m3",
}
"""Activation -> the compute type for which weights are packed."""
DECODED_TO: Final = {
    "f16": "f16",
    "bf16": "bf16",
    "int8": "uint8",
    "uint8": "uint8",
    "f8e4m3": "f8e4m3",
    "f8e5m2": "f8e4m3",
}
"""Activation -> the type of the weights that it is multiplied by."""

_MOST_FP8_BITS: Final = 4
"""Of integers that f8e4m3 holds, and whose codes lie in its bytes as they are."""
_LARGEST: Final = {"int8": 128, "uint8": 255}
_MOST_SUM: Final = 1 << 31


class Meaning(NamedTuple):
    """A stored code u is the number `factor * u + offset`."""

    factor: int
    offset: int


def meaning_of(code: DType) -> Meaning:
    """Of an integer or bipolar type."""
    if not code.is_integer:
        return Meaning(2, 1 - (1 << code.bits))
    return Meaning(1, -(1 << (code.bits - 1)) if code.is_signed else 0)


def check_bytes(codec: Codec, activation: str, argument: str) -> None:
    """Raises `LowlpValueError`, which names `argument`, unless products of these weights and bytes are exact."""
    code = codec.code
    if activation in INTEGERS:
        if not isinstance(code, DType) or code.is_float or code.bits > 8:
            raise LowlpValueError(
                f"{argument}: {activation} activations take integer and bipolar weights of 1 to 8 bits, got {code}; "
                "use f16 or bf16 activations, or f8e4m3 for floats that it holds"
            )
        return
    if not isinstance(code, DType):
        raise LowlpValueError(f"{argument}: {activation} activations take no tables, got {code}; use f16 or bf16")
    if not code.is_float and code.bits > _MOST_FP8_BITS:
        raise LowlpValueError(
            f"{argument}: f8e4m3 does not hold the values of {code.name}, or only by many instructions: with "
            f"{activation} activations integers have up to {_MOST_FP8_BITS} bits; use int8 activations"
        )
    if code.is_float and Codec(code, "channel").prescale("f8e4m3") is None:
        raise LowlpValueError(
            f"{argument}: f8e4m3 does not hold the values of {code.name}; use f16 or bf16 activations"
        )


def most_k(activation: str) -> int:
    """The longest rows of which no sum of products of bytes leaves int32, whatever the codes."""
    return (_MOST_SUM - 1) // (255 * _LARGEST[activation])


def needs_parts(activation: str, bits: int, k: int) -> bool:
    """Whether sums of rows of `k` weights of so many bits are to be added up in parts of `most_k`: where weights take
    the upper bits of their bytes, sums are multiples of powers of two that may leave int32 before they are taken off;
    sums of codes of 8 bits wrap around and come back."""
    return bits < 8 and k > most_k(activation)
