"""Functions, comparisons and choices on tiles, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowlp.numeric.dtypes import dtype as dtype_of

from . import scalars
from .scalars import Scalar, describe, is_number
from .source import type_error
from .tiles import (
    ARITHMETIC_DTYPES,
    COMPUTE_DTYPES,
    SIGNED_DTYPES,
    Tile,
    as_tile,
    combine,
    compare_tiles,
    emit_tile,
    match_tiles,
    require_dtype,
    splat,
    to_one_layout,
)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two numbers: index or f32 scalars, or tiles, element by element. NaN wins over numbers."""
    if isinstance(a, Tile) or isinstance(b, Tile):
        return combine("lowlp.minimum", "minimum", a, b)
    return scalars.minimum(a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two numbers: index or f32 scalars, or tiles, element by element. NaN wins over numbers."""
    if isinstance(a, Tile) or isinstance(b, Tile):
        return combine("lowlp.maximum", "maximum", a, b)
    return scalars.maximum(a, b)


def fma(a: Any, b: Any, c: Any) -> Tile:
    """a * b + c of tiles of f16, bf16 or f32, rounded once, element by element; numbers and smaller tiles are repeated.

    Raises KernelTypeError for operands that do not match.
    """
    operands = match_tiles("fma", (a, b, c), COMPUTE_DTYPES)
    return emit_tile("lowlp.fma", operands[0].dtype, operands[0].layout, operands)


def rescale(values: Tile, factors: Tile) -> Tile:
    """values * factors of tiles of f32, where factors are mostly 1: a warp whose factors are all 1 skips the products.

    values   what is multiplied, such as the accumulators of online softmax
    factors  a tile whose extents are those of `values` or 1, which is repeated

    The result is that of `values * factors`, to the bit. Raises KernelTypeError for other types, and VerificationError
    where a thread does not hold the factors of its values.
    """
    tiles = as_tile("values", values), as_tile("factors", factors)
    for name, tile in zip(("values", "factors"), tiles, strict=True):
        require_dtype(name, tile, ("f32",))
    return emit_tile("lowlp.rescale", tiles[0].dtype, tiles[0].layout, tiles)


def clamp(tile: Tile, low: Any, high: Any) -> Any:
    """Each element, but at least `low` and at most `high`, which are numbers or tiles; NaN stays NaN.

    Raises KernelTypeError for operands that do not match.
    """
    return minimum(maximum(tile, low), high)


def _function(name: str, tile: object, allowed: Sequence[str] = COMPUTE_DTYPES) -> Tile:
    operand = as_tile("tile", tile)
    require_dtype(name, operand, allowed)
    return emit_tile(f"lowlp.{name}", operand.dtype, operand.layout, [operand])


def absolute(tile: Tile) -> Tile:
    """The absolute value of each element, exact; the smallest integer stays as it is.

    Raises KernelTypeError unless the tile is of f16, bf16, f32, int16 or int32.
    """
    return _function("abs", tile, SIGNED_DTYPES)


def exp(tile: Tile) -> Tile:
    """e to the power of each element, in f32 within a relative error of 2^-21; f16 and bf16 are rounded once.

    `exp2` is cheaper. Raises KernelTypeError unless the tile is of f16, bf16 or f32.
    """
    return _function("exp", tile)


def exp2(tile: Tile) -> Tile:
    """2 to the power of each element, in f32 within a relative error of 2^-21; f16 and bf16 are rounded once. Below the
    normal numbers of f32 a GPU gives 0.

    Raises KernelTypeError unless the tile is of f16, bf16 or f32.
    """
    return _function("exp2", tile)


def log2(tile: Tile) -> Tile:
    """The logarithm to the base of 2 of each element, in f32; f16 and bf16 are rounded once.

    The error is at most 2^-21, absolute between 0.5 and 2, else relative. Raises KernelTypeError unless the tile is of
    f16, bf16 or f32.
    """
    return _function("log2", tile)


def sqrt(tile: Tile) -> Tile:
    """The square root of each element, rounded to nearest.

    Raises KernelTypeError unless the tile is of f16, bf16 or f32.
    """
    return _function("sqrt", tile)


def rsqrt(tile: Tile) -> Tile:
    """One over the square root of each element, in f32 within a relative error of 2^-22; f16 and bf16 are rounded once.

    Raises KernelTypeError unless the tile is of f16, bf16 or f32.
    """
    return _function("rsqrt", tile)


def tanh(tile: Tile) -> Tile:
    """The hyperbolic tangent of each element, in f32 within a relative error of 2^-20; f16 and bf16 are rounded once.

    Raises KernelTypeError unless the tile is of f16, bf16 or f32.
    """
    return _function("tanh", tile)


def equal(a: Any, b: Any) -> Tile:
    """A tile of uint1: 1 where two tiles, or a tile and a number, are equal. NaN equals nothing.

    Raises KernelTypeError for operands that do not match.
    """
    return compare_tiles("==", a, b)


def not_equal(a: Any, b: Any) -> Tile:
    """A tile of uint1: 1 where two tiles, or a tile and a number, differ. NaN differs from everything.

    Raises KernelTypeError for operands that do not match.
    """
    return compare_tiles("!=", a, b)


def where(condition: Tile, a: Any, b: Any) -> Tile:
    """The element of `a` where the condition is 1, else that of `b`.

    condition  a tile of uint1, as comparisons give it
    a, b       tiles of one element type, or one of them a number

    Tiles of extent 1 along a dimension are repeated along it. Raises KernelTypeError for other arguments.
    """
    choice = as_tile("condition", condition)
    if choice.dtype != dtype_of("uint1"):
        raise type_error(f"condition: must be a tile of uint1, found {choice.describe()}")
    model = a if isinstance(a, Tile) else as_tile("b", b)
    tiles = []
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, Tile):
            if not is_number(value) and not isinstance(value, Scalar):
                raise type_error(f"{name}: must be a tile or a number, found {describe(value)}")
            require_dtype(name, model, ARITHMETIC_DTYPES)
            value = splat(name, value, model.dtype, model.layout, model.choice)
        tiles.append(value)
    if tiles[0].dtype != tiles[1].dtype:
        raise type_error(f"where: element types must match: {tiles[0].dtype} and {tiles[1].dtype}; cast one of them")
    choice, yes, no = to_one_layout("where", [choice, *tiles])
    return emit_tile("lowlp.select", yes.dtype, yes.layout, [choice, yes, no])
