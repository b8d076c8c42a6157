"""By which products quantised activations are multiplied: bits, bytes of integers, bytes of floats, or halves.

    planes  bits of both, each of p planes of weights with each of q planes of x: p q products
    s8      weights decoded to bytes, integers, one product
    fp8     weights decoded to f8e4m3, one product
    f16     x as halves, times weights as for x that was never quantised

Where weights were not packed yet the fastest by the planner is chosen, of those that are exact; weights that are packed
have it in their words, and keep it where it is possible. 'f16' is taken where it is asked for: x times its scale is
rounded to halves before it is multiplied, where sums of integers are promised to be exact.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from lowlp.compiler.targets import target
from lowlp.errors import LowlpValueError
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType
from lowlp.weights.family_choice import LEAST_GAIN, obstacle_of_planes

from .activations import FLOATS, INTEGERS, check_bytes
from .planner import planned_gain

PATHS: Final = ("planes", "s8", "fp8", "f16")
FAMILIES_OF_PATHS: Final = {"planes": "b1", "s8": "s8", "fp8": "e4m3"}
"""Path -> the family of packed weights that it takes; 'f16' takes that of the halves."""

_OF_FLOATS: Final = "mma.sync.m16n8k32 e4m3, e5m2"
_LEAST_GROUP: Final = 1024
"""Weights of a row that share a scale where planes are worth it: each group takes their sums apart."""


class Path(NamedTuple):
    """A path, and why it is taken."""

    name: str
    reason: str


def check_path(value: object) -> str | None:
    """A path by name, or None. Raises `LowlpValueError`."""
    if value is None:
        return None
    if isinstance(value, str) and value in PATHS:
        return value
    raise LowlpValueError(f"path: must be None or one of {', '.join(PATHS)}, got {value!r:.40}")


def obstacle(path: str, codec: Codec, k: int, activation: str) -> str:
    """Why a path does not take these weights and activations exactly; '' where it does.

    activation  'int8', 'uint8', 'f8e4m3' or 'f8e5m2', as elements of x are stored
    """
    if path == "f16":
        return ""
    takes = FLOATS if path == "fp8" else INTEGERS
    if activation not in takes:
        return f"{path} takes activations that are {'floats' if path == 'fp8' else 'integers'}, got {activation}"
    if path == "planes":
        return obstacle_of_planes(codec, k)
    try:
        check_bytes(codec, activation, "qw")
    except LowlpValueError as error:
        return str(error).removeprefix("qw: ")
    return ""


def _check_floats(activation: str, arch: str) -> None:
    if not target(arch).instructions[_OF_FLOATS]:
        raise LowlpValueError(
            f"activation: {activation} is multiplied by {_OF_FLOATS}, which {arch} does not have; use int8 activations"
        )


def choose_path(
    codec: Codec,
    n: int,
    k: int,
    activation: str,
    x_bits: int,
    arch: str,
    wanted: str | None = None,
    family: str = "",
    rows: int | None = None,
) -> Path:
    """The path for weights of a codec, [n, k].

    activation  as elements of x are stored: 'int8', 'uint8', 'f8e4m3' or 'f8e5m2'
    x_bits      of the codes of x
    wanted      by the user
    family      of weights that are packed; '': they are not
    rows        of x; None: many

    Raises `LowlpValueError` for a path that is wanted, or the only one left, and not exact.
    """
    if wanted:
        if why := obstacle(wanted, codec, k, activation):
            raise LowlpValueError(f"path: {wanted!r} does not serve: {why}")
        if wanted == "fp8":
            _check_floats(activation, arch)
        return Path(wanted, "as asked for")
    if activation in FLOATS:
        if why := obstacle("fp8", codec, k, activation):
            raise LowlpValueError(f"qw: {why}")
        _check_floats(activation, arch)
        return Path("fp8", f"activations are {activation}")
    if family == "b1" and not obstacle("planes", codec, k, activation):
        return Path("planes", "the weights are packed as planes")
    if why := obstacle("s8", codec, k, activation):
        raise LowlpValueError(f"qw: {why}")
    if family == "s8":
        return Path("s8", "the weights are packed for bytes")
    is_grouped = isinstance(codec.group, int) and codec.group < min(k, _LEAST_GROUP)
    why = f"groups of {codec.group} have fewer than {_LEAST_GROUP} weights" if is_grouped else ""
    if why := why or obstacle("planes", codec, k, activation):
        return Path("s8", f"no planes: {why}")
    gain = planned_gain(codec, n, k, x_bits, rows, arch)
    of_planes = f"{codec.bits} x {x_bits} planes would be {gain.times:.2f} times as fast as bytes: {gain.reason}"
    return Path("planes" if gain.times >= LEAST_GAIN else "s8", of_planes)


def bits_of(code: object) -> int:
    """Of the codes of a type of activations."""
    assert isinstance(code, DType)
    return code.bits
