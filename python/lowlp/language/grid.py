"""The grid of a kernel: its extents as expressions over the integer parameters.

The callable that a user gives runs once, on `Extent` values that record what is done with them; the record then becomes
an affine map, which the verifier checks and the run time evaluates without a compiler.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lowlp._mlir import ir
from lowlp.errors import LowlpTypeError, LowlpValueError

from .parameters import Parameter

MAX_EXTENTS = 3


@dataclass(frozen=True, eq=False)
class Extent:
    """An expression over integer parameters: + and - of two, * by a number, // % and ceildiv by a positive number."""

    operator: str
    operands: tuple[Extent | int | str, ...]

    @staticmethod
    def parameter(name: str) -> Extent:
        """The value of the parameter `name` at launch."""
        return Extent("parameter", (name,))

    def __add__(self, other: object) -> Extent:
        return Extent("+", (self, _extent(other)))

    def __radd__(self, other: object) -> Extent:
        return Extent("+", (_extent(other), self))

    def __sub__(self, other: object) -> Extent:
        return Extent("+", (self, Extent("*", (_extent(other), -1))))

    def __rsub__(self, other: object) -> Extent:
        return Extent("+", (_extent(other), Extent("*", (self, -1))))

    def __neg__(self) -> Extent:
        return Extent("*", (self, -1))

    def __mul__(self, other: object) -> Extent:
        if isinstance(other, Extent):
            raise LowlpValueError("grid: a product of two parameters is not affine; one factor must be an int")
        return Extent("*", (self, _extent(other)))

    __rmul__ = __mul__

    def __floordiv__(self, other: object) -> Extent:
        return Extent("floordiv", (self, _divisor("//", other)))

    def __mod__(self, other: object) -> Extent:
        return Extent("mod", (self, _divisor("%", other)))

    def ceildiv(self, other: object) -> Extent:
        """The quotient by a positive int, rounded up."""
        return Extent("ceildiv", (self, _divisor("ceildiv", other)))

    def __bool__(self) -> bool:
        raise LowlpTypeError("grid: an extent is known at launch only and cannot be compared or tested")


def _unsupported(name: str) -> Callable[..., Any]:
    def refuse(*_: object) -> Any:
        raise LowlpTypeError(f"grid: extents allow +, -, *, //, % and ll.ceildiv; found {name}")

    return refuse


for _method, _name in {
    "truediv": "/ (write // or ll.ceildiv)",
    "pow": "**",
    "matmul": "@",
    "lshift": "<<",
    "rshift": ">>",
    "and": "&",
    "or": "|",
    "xor": "^",
}.items():
    setattr(Extent, f"__{_method}__", _unsupported(_name))
    setattr(Extent, f"__r{_method}__", _unsupported(_name))
for _method, _name in {"rfloordiv": "an int // a parameter", "rmod": "an int % a parameter"}.items():
    setattr(Extent, f"__{_method}__", _unsupported(_name))
for _method in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Extent, f"__{_method}__", _unsupported("a comparison"))
for _method in ("index", "int", "float"):
    setattr(Extent, f"__{_method}__", _unsupported("a conversion to a number"))


def _extent(value: object) -> Extent | int:
    if isinstance(value, Extent):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise LowlpTypeError(f"grid: extents are made of integer parameters and ints; found {value!r}")
    return operator.index(value)


def _divisor(name: str, value: object) -> int:
    number = _extent(value)
    if isinstance(number, Extent):
        raise LowlpValueError(f"grid: the divisor of {name} must be an int, found a parameter")
    if number < 1:
        raise LowlpValueError(f"grid: the divisor of {name} must be positive, found {number}")
    return number


def grid_extents(grid: object, parameters: Sequence[Parameter]) -> tuple[Extent | int, ...]:
    """The extents of a grid, 1 to 3.

    grid  a tuple of ints, or a callable whose parameters are named as integer parameters of the kernel and which
          returns one extent or a tuple of them

    Raises LowlpTypeError and LowlpValueError for anything else.
    """
    if callable(grid):
        grid = _call(grid, parameters)
    extents = tuple(_extent(extent) for extent in grid) if isinstance(grid, tuple | list) else (_extent(grid),)
    if not 1 <= len(extents) <= MAX_EXTENTS:
        raise LowlpValueError(f"grid: must have 1 to {MAX_EXTENTS} extents, found {len(extents)}")
    for extent in extents:
        if isinstance(extent, int) and extent < 1:
            raise LowlpValueError(f"grid: extents must be at least 1, found {extent}")
    return extents


def _call(grid: Callable[..., object], parameters: Sequence[Parameter]) -> object:
    integers = [parameter.name for parameter in parameters if parameter.kind == "integer"]
    names = list(inspect.signature(grid).parameters)
    for name in names:
        if name not in integers:
            raise LowlpValueError(
                f"grid: names {name!r}, but the integer parameters of the kernel are {', '.join(integers) or 'none'}"
            )
    return grid(**{name: Extent.parameter(name) for name in names})


def affine_map(extents: Sequence[Extent | int], parameters: Sequence[Parameter]) -> ir.AffineMap:
    """The map from all integer parameters, in order, to the extents, in the current context."""
    integers = [parameter.name for parameter in parameters if parameter.kind == "integer"]
    dims = {name: ir.AffineExpr.get_dim(index) for index, name in enumerate(integers)}
    return ir.AffineMap.get(len(dims), 0, [_affine(extent, dims) for extent in extents])


def _affine(extent: Extent | int | str, dims: dict[str, ir.AffineExpr]) -> ir.AffineExpr:
    if isinstance(extent, int):
        return ir.AffineExpr.get_constant(extent)
    if isinstance(extent, str):
        return dims[extent]
    operands = [_affine(operand, dims) for operand in extent.operands]
    build = {
        "+": ir.AffineExpr.get_add,
        "*": ir.AffineExpr.get_mul,
        "mod": ir.AffineExpr.get_mod,
        "floordiv": ir.AffineExpr.get_floor_div,
        "ceildiv": ir.AffineExpr.get_ceil_div,
    }.get(extent.operator)
    return build(*operands) if build else operands[0]
