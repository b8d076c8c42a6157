"""Tiles in registers, views of global memory and pointers, and arithmetic on tiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from lowlp._mlir import ir
from lowlp.errors import LowlpError
from lowlp.layouts.register_layout import Layout, layout
from lowlp.numeric.dtypes import DType, dtype, named_dtype

from .free_layouts import FREE_LAYOUT, Choice, coalesced
from .scalars import Scalar, describe, is_int, is_number
from .source import type_error, value_error
from .tracing import Trace, TracedValue, current_trace

COMPUTE_DTYPES: Final = ("f16", "bf16", "f32")
SIGNED_DTYPES: Final = (*COMPUTE_DTYPES, "int16", "int32")
ARITHMETIC_DTYPES: Final = (*SIGNED_DTYPES, "uint16", "uint32")
WIDE_INTEGER_DTYPES: Final = ("int16", "int32", "uint16", "uint32")
INTEGER_DTYPES: Final = (*(f"{kind}{bits}" for kind in ("int", "uint") for bits in (*range(1, 9), 16, 32)),)
_LARGEST_FINITE: Final = {"f16": 65504.0, "bf16": 255 * 2.0**120, "f32": (2 - 2.0**-23) * 2.0**127}
_MAX_CODE_BITS: Final = 8
_OPS: Final = {"+": "lowlp.add", "-": "lowlp.sub", "*": "lowlp.mul", "/": "lowlp.div"}
_PREDICATES: Final = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}


class Pointer(TracedValue):
    """A pointer parameter: the address of elements of `dtype` in global memory."""

    __slots__ = ("dtype", "name")

    def __init__(self, trace: Trace, value: ir.Value, element: DType, name: str) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.name = name

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"the pointer `{self.name}` to {self.dtype}"

    def __getitem__(self, index: object) -> NoReturn:
        raise type_error(f"{self.describe()} has no elements to index: use ll.view_global and ll.load_global")

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise type_error(f"{self.describe()} has no elements to index: use ll.view_global and ll.store_global")


class GlobalView(TracedValue):
    """A tensor in global memory; `shape` has None for extents that are known at launch.

    Along `contiguous`, a dimension counted from the last one, -1, neighbours lie side by side.
    """

    __slots__ = ("contiguous", "dtype", "shape")

    def __init__(
        self, trace: Trace, value: ir.Value, element: DType, shape: Sequence[int | None], contiguous: int = -1
    ) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.shape = tuple(shape)
        self.contiguous = contiguous

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"a view of {self.dtype} of shape [{', '.join('?' if n is None else str(n) for n in self.shape)}]"

    def __getitem__(self, index: object) -> NoReturn:
        raise type_error(f"{self.describe()} has no elements to index: use ll.load_global")

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise type_error(f"{self.describe()} has no elements to index: use ll.store_global")


class Tile(TracedValue):
    """A tile in the registers of a block's threads: elements of `dtype`, spread by `layout` (Tilus, section 4).

    `+ - * /` take two tiles of one type, or a tile and a number, and round once; unary `-` negates. `< <= > >=` give
    a tile of uint1, for `ll.where`; `==` compares the Python objects, `ll.equal` the elements. The element type is
    f16, bf16, f32, int16, uint16, int32 or uint32 (`/` is for floats, unary `-` for signed types; integers wrap
    around); cast others first. Integers of any width have `& | ^ ~ << >>`, those of 16 and 32 bits `//` and `%`,
    which round down as Python's do, and the CPU target reports a division by zero. A tile with extents of 1 is
    repeated along them, where its threads hold what they then need.

    A tile made from a `shape` has a layout that nobody chose; where it meets another, it takes that one's layout.
    """

    __slots__ = ("choice", "dtype", "layout", "reduced_dim")

    def __init__(
        self, trace: Trace, value: ir.Value, element: DType, tile_layout: Layout, choice: Choice = Choice.NAMED
    ) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.layout = tile_layout
        self.choice = choice
        self.reduced_dim: int | None = None  # which dimension a reduction took away to make it, for messages

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile, which are those of its layout."""
        return self.layout.shape

    @property
    def bits_per_thread(self) -> int:
        """Bits of registers that one thread gives to the tile."""
        return self.dtype.bits * self.layout.num_local

    def describe(self) -> str:
        """What the value is, for messages: with the layout only where the user has named it."""
        held = f"with layout {self.layout}" if self.choice is Choice.NAMED else f"of shape {list(self.shape)}"
        return f"a tile of {self.dtype} {held}"

    def like(self, value: ir.Value) -> Tile:
        """Another value of the same type, of the innermost region."""
        return Tile(self._trace, value, self.dtype, self.layout, self.choice)

    def __add__(self, other: object) -> Tile:
        return combine(_OPS["+"], "+", self, other)

    def __radd__(self, other: object) -> Tile:
        return combine(_OPS["+"], "+", other, self)

    def __sub__(self, other: object) -> Tile:
        return combine(_OPS["-"], "-", self, other)

    def __rsub__(self, other: object) -> Tile:
        return combine(_OPS["-"], "-", other, self)

    def __mul__(self, other: object) -> Tile:
        return combine(_OPS["*"], "*", self, other)

    def __rmul__(self, other: object) -> Tile:
        return combine(_OPS["*"], "*", other, self)

    def __truediv__(self, other: object) -> Tile:
        return combine(_OPS["/"], "/", self, other, COMPUTE_DTYPES)

    def __rtruediv__(self, other: object) -> Tile:
        return combine(_OPS["/"], "/", other, self, COMPUTE_DTYPES)

    def __floordiv__(self, other: object) -> Tile:
        return combine("lowlp.floor_div", "//", self, other, WIDE_INTEGER_DTYPES)

    def __rfloordiv__(self, other: object) -> Tile:
        return combine("lowlp.floor_div", "//", other, self, WIDE_INTEGER_DTYPES)

    def __mod__(self, other: object) -> Tile:
        return combine("lowlp.mod", "%", self, other, WIDE_INTEGER_DTYPES)

    def __rmod__(self, other: object) -> Tile:
        return combine("lowlp.mod", "%", other, self, WIDE_INTEGER_DTYPES)

    def __and__(self, other: object) -> Tile:
        return combine("lowlp.and", "&", self, other, INTEGER_DTYPES)

    __rand__ = __and__

    def __or__(self, other: object) -> Tile:
        return combine("lowlp.or", "|", self, other, INTEGER_DTYPES)

    __ror__ = __or__

    def __xor__(self, other: object) -> Tile:
        return combine("lowlp.xor", "^", self, other, INTEGER_DTYPES)

    __rxor__ = __xor__

    def __lshift__(self, other: object) -> Tile:
        return combine("lowlp.shl", "<<", self, other, INTEGER_DTYPES)

    def __rlshift__(self, other: object) -> Tile:
        return combine("lowlp.shl", "<<", other, self, INTEGER_DTYPES)

    def __rshift__(self, other: object) -> Tile:
        return combine("lowlp.shr", ">>", self, other, INTEGER_DTYPES)

    def __rrshift__(self, other: object) -> Tile:
        return combine("lowlp.shr", ">>", other, self, INTEGER_DTYPES)

    def __invert__(self) -> Tile:
        require_dtype("~", self, INTEGER_DTYPES)
        return emit_tile("lowlp.not", self.dtype, self.layout, [self])

    def __lt__(self, other: object) -> Tile:
        return compare_tiles("<", self, other)

    def __le__(self, other: object) -> Tile:
        return compare_tiles("<=", self, other)

    def __gt__(self, other: object) -> Tile:
        return compare_tiles(">", self, other)

    def __ge__(self, other: object) -> Tile:
        return compare_tiles(">=", self, other)

    def __neg__(self) -> Tile:
        require_dtype("-", self, SIGNED_DTYPES)
        return emit_tile("lowlp.neg", self.dtype, self.layout, [self])

    def __pos__(self) -> Tile:
        return self

    def __bool__(self) -> bool:
        self._refuse("no truth value")

    def __iter__(self) -> Any:
        self._refuse("no elements while the kernel is traced")

    def __getitem__(self, index: object) -> Any:
        self._refuse("no elements while the kernel is traced")

    def _refuse(self, has: str) -> NoReturn:
        raise type_error(f"{self.describe()} has {has}; tiles are used as a whole")


# --- arguments --------------------------------------------------------------------------------------------------------


def as_dtype(argument: str, value: object) -> DType:
    """An element type of tiles; raises an error that names the argument."""
    try:
        element = named_dtype(value, argument)
    except LowlpError as error:
        raise (type_error if isinstance(error, TypeError) else value_error)(str(error)) from None
    try:
        _ = element.mlir
    except LowlpError as error:
        raise value_error(f"{argument}: {error}") from None
    return element


def as_layout(argument: str, value: object) -> Layout:
    """A layout that the threads of the block can hold; raises an error that names the argument."""
    if not isinstance(value, Layout | str):
        raise type_error(f"{argument}: must be a Layout or its text, found {describe(value)}")
    try:
        result = layout(value)
    except LowlpError as error:
        raise value_error(f"{argument}: {error}") from None
    num_threads = current_trace(argument).num_threads
    if result.num_threads != num_threads:
        raise value_error(f"{argument}: {result} is for {result.num_threads} threads, but the block has {num_threads}")
    return result


def as_extents(argument: str, values: object) -> list[int]:
    """A list of extents. Raises KernelTypeError and KernelValueError for anything else."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not all(is_int(value) for value in values):
        raise type_error(f"{argument}: must be a list of ints, found {describe(values)}")
    if not values or min(values) < 1:
        raise value_error(f"{argument}: must have extents of at least 1, found {list(values)}")
    return [int(value) for value in values]


def named_or_default(layout_of_user: object, shape: object, element: DType, dim: int = -1) -> tuple[Layout, Choice]:
    """The layout that the user has named; or, where a shape is given instead, one that is coalesced along `dim`."""
    if (layout_of_user is None) == (shape is None):
        raise value_error("layout: give a layout, or a shape alone to leave the layout to the compiler")
    if shape is None:
        return as_layout("layout", layout_of_user), Choice.NAMED
    extents = as_extents("shape", shape)
    num_threads = current_trace("shape").num_threads
    return coalesced(extents, element.bits, num_threads, max(dim, -len(extents))), Choice.DEFAULT


def as_tile(argument: str, value: object) -> Tile:
    """A tile; raises KernelTypeError that names the argument."""
    if not isinstance(value, Tile):
        raise type_error(f"{argument}: must be a tile, found {describe(value)}")
    return value


def as_named_tile(argument: str, value: object) -> Tile:
    """A tile for an instruction that sees registers as they are; raises KernelValueError unless its layout is named."""
    tile = as_tile(argument, value)
    if tile.choice is not Choice.NAMED:
        raise value_error(
            f"{argument}: what the result is depends on the layout, which is left to the compiler here: name it with "
            "layout= where the tile is made, or by ll.convert_layout"
        )
    return tile


def require_dtype(what: str, tile: Tile, allowed: Sequence[str]) -> None:
    """Raises KernelTypeError unless the tile's elements are of one of the types."""
    if allowed is INTEGER_DTYPES and not tile.dtype.is_integer:
        raise type_error(f"{what}: works on integers, but the tile holds {tile.dtype}; cast it first")
    if tile.dtype.name not in allowed:
        names = " or ".join(filter(None, [", ".join(allowed[:-1]), allowed[-1]]))
        raise type_error(f"{what}: computes in {names}, but the tile holds {tile.dtype}; cast it first")


def require_compute(what: str, tile: Tile) -> None:
    """Raises KernelTypeError unless functions are defined for the tile's elements."""
    require_dtype(what, tile, COMPUTE_DTYPES)


# --- operations -------------------------------------------------------------------------------------------------------


def emit_tile(
    name: str,
    element: DType,
    tile_layout: Layout,
    operands: Sequence[TracedValue],
    attributes: dict[str, ir.Attribute] | None = None,
    choice: Choice | None = None,
) -> Tile:
    """Adds an op of the block dialect with one tile as its result.

    choice  who has chosen the layout, where the op gives the tile one; left out, the layout is that of the operands
    """
    trace = current_trace(name)
    if choice is None:
        choice = max((tile.choice for tile in operands if isinstance(tile, Tile)), default=Choice.NAMED)
    elif choice is not Choice.NAMED:
        attributes = (attributes or {}) | {FREE_LAYOUT: ir.UnitAttr.get()}
    shape = "x".join(str(extent) for extent in tile_layout.shape)
    result = trace.type(f"!lowlp.tile<{shape}x{element.mlir}, {tile_layout}>")
    values = [operand.ir_value for operand in operands]
    return Tile(trace, trace.emit(name, [result], values, attributes).results[0], element, tile_layout, choice)


def held_as(tile: Tile, tile_layout: Layout, choice: Choice) -> Tile:
    """The tile in a layout that somebody else has chosen."""
    if tile.layout == tile_layout:
        return tile
    return emit_tile("lowlp.convert_layout", tile.dtype, tile_layout, [tile], choice=choice)


def _check_range(what: str, number: int, element: DType) -> None:
    if not element.min <= number <= element.max:
        raise value_error(f"{what}: {element} holds numbers from {element.min} to {element.max}, found {number}")


def _splat_integer(what: str, value: object, element: DType, tile_layout: Layout, choice: Choice) -> Tile:
    trace = current_trace(what)
    if element.bits <= _MAX_CODE_BITS:
        if not is_int(value):
            raise type_error(f"{what}: must be an int for {element}, found {describe(value)}")
        _check_range(what, int(value), element)  # type: ignore[call-overload]
        wide = _splat_integer(what, value, dtype("int32"), tile_layout, choice)
        return emit_tile("lowlp.cast", element, tile_layout, [wide])
    if isinstance(value, Scalar):
        if value.dtype != "index":
            raise type_error(f"{what}: an index scalar fills tiles of integers, found {value.describe()} for {element}")
        cast = trace.emit("arith.index_cast", [trace.type(f"i{element.bits}")], [value.ir_value])
        return emit_tile("lowlp.splat", element, tile_layout, [TracedValue(trace, cast.results[0])], None, choice)
    if not is_int(value):
        raise type_error(f"{what}: must be an int or an index scalar for {element}, found {describe(value)}")
    number = int(value)  # type: ignore[call-overload]
    _check_range(what, number, element)
    # The attributes of integers without a sign are read as signed ones.
    bits = number - (1 << element.bits) if number >> (element.bits - 1) > 0 else number
    scalar = TracedValue(trace, trace.constant(f"i{element.bits}", bits), trace.root)
    return emit_tile("lowlp.splat", element, tile_layout, [scalar], None, choice)


def splat(what: str, value: object, element: DType, tile_layout: Layout, choice: Choice = Choice.NAMED) -> Tile:
    """A tile with one number everywhere: a number of Python, an f32 scalar for a tile of f32, or an index scalar for
    one of integers, of which it gets the low bits.
    """
    if element.is_integer:
        return _splat_integer(what, value, element, tile_layout, choice)
    if isinstance(value, Scalar):
        if value.dtype != "f32" or element.name != "f32":
            raise type_error(f"{what}: an f32 scalar fills tiles of f32, found {value.describe()} for {element}")
        return emit_tile("lowlp.splat", element, tile_layout, [value], None, choice)
    if not is_number(value):
        raise type_error(f"{what}: must be a number or an f32 scalar, found {describe(value)}")
    number = float(value)  # type: ignore[arg-type]
    if math.isfinite(number) and abs(number) > _LARGEST_FINITE[element.name]:
        raise value_error(f"{what}: {number} is beyond the largest {element}, {_LARGEST_FINITE[element.name]}")
    trace = current_trace(what)
    scalar = TracedValue(trace, trace.constant(element.mlir, number), trace.root)
    return emit_tile("lowlp.splat", element, tile_layout, [scalar], None, choice)


def extends(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """True when a tile of the shape is repeated, rather than only laid out anew, to have the shape `to`."""
    matched = zip(reversed(shape), reversed(to), strict=False)
    return shape != to and len(shape) <= len(to) and all(extent in (1, other) for extent, other in matched)


def repeat(tile: Tile, tile_layout: Layout, choice: Choice = Choice.NAMED) -> Tile:
    """The tile repeated along its dimensions of extent 1, for `tile_layout`, which somebody has chosen."""
    if min(tile.choice, choice) is not Choice.NAMED and extends(tile.shape, tile_layout.shape):
        tile = held_as(tile, extended_by(tile.shape, tile_layout), choice)
    result = emit_tile("lowlp.broadcast", tile.dtype, tile_layout, [tile])
    result.choice = choice
    return result


def extended_by(shape: tuple[int, ...], tile_layout: Layout) -> Layout:
    """How a tile of the shape is held that is repeated for `tile_layout`, so that nothing moves between threads."""
    missing = tile_layout.rank - len(shape)
    ones = [dim + missing for dim, extent in enumerate(shape) if extent == 1]
    held = tile_layout.reduce([*range(missing), *ones], keep_dims=True)
    return held.squeeze(list(range(missing))) if missing else held


def to_one_layout(symbol: str, tiles: Sequence[Tile]) -> list[Tile]:
    """The tiles in the layout of the largest, those repeated that have extents of 1 where it has more.

    Of several that are largest it is the one whose layout was chosen; others that were not chosen are converted.
    """
    model = max(tiles, key=lambda tile: (tile.layout.num_elements, tile.layout.rank, tile.choice))
    result = []
    for tile in tiles:
        if tile.shape == model.shape and (tile.layout == model.layout or tile.choice is not Choice.NAMED):
            result.append(held_as(tile, model.layout, model.choice))
        elif extends(tile.shape, model.shape):
            _check_direction(symbol, tile, model)
            result.append(repeat(tile, model.layout, model.choice))
        elif tile.shape == model.shape:
            names = " and ".join(str(other.layout) for other in tiles)
            raise type_error(f"{symbol}: layouts must match: {names}; ll.convert_layout changes that of a tile")
        else:
            raise type_error(_shapes_differ(symbol, tile, model))
    return result


def _shapes_differ(symbol: str, tile: Tile, model: Tile) -> str:
    """Why a tile cannot be repeated to have the shape of another."""
    message = (
        f"{symbol}: the tiles have shapes {list(model.shape)} and {list(tile.shape)}; extents must be equal, or 1 "
        "where a tile is to be repeated, counted from the last dimension"
    )
    dim = tile.reduced_dim
    if dim is None:
        return message
    kept = (*tile.shape[:dim], 1, *tile.shape[dim:])
    if not extends(kept, model.shape):
        return message
    return f"{message}: with keep_dims=True the reduction along dimension {dim} gives {list(kept)}, which fits"


def _check_direction(symbol: str, tile: Tile, model: Tile) -> None:
    """Refuses a tile that a reduction of a square one made, where it would be repeated along another dimension than the
    reduced one, and no thread holds it so."""
    dim = tile.reduced_dim
    if dim is None or min(tile.choice, model.choice) is not Choice.NAMED:
        return
    kept = (*tile.shape[:dim], 1, *tile.shape[dim:])
    if kept[0] != 1 and extends(kept, model.shape) and extended_by(tile.shape, model.layout) != tile.layout:
        raise type_error(
            f"{symbol}: a tile of shape {list(tile.shape)} is repeated along the first dimension of "
            f"{list(model.shape)}, but this one is the reduction along dimension {dim}: keep_dims=True there gives "
            f"{list(kept)}, which is repeated along that"
        )


def match_tiles(symbol: str, values: Sequence[object], allowed: Sequence[str]) -> list[Tile]:
    """The operands as tiles of one type, one of those allowed; one of them is a tile, the others may be numbers."""
    tiles = [value for value in values if isinstance(value, Tile)]
    model = as_tile(symbol, tiles[0] if tiles else values[-1])
    require_dtype(symbol, model, allowed)
    operands: list[Tile] = []
    for operand in values:
        if not isinstance(operand, Tile):
            if not is_number(operand) and not isinstance(operand, Scalar):
                found = " and ".join(map(describe, values))
                raise type_error(f"{symbol}: operands must be tiles or numbers, found {found}")
            operand = splat(symbol, operand, model.dtype, model.layout, model.choice)
        if operand.dtype != model.dtype:
            names = " and ".join(str(tile.dtype) for tile in tiles)
            raise type_error(f"{symbol}: element types must match: {names}; cast one of them")
        operands.append(operand)
    return to_one_layout(symbol, operands)


def combine(name: str, symbol: str, lhs: object, rhs: object, allowed: Sequence[str] = ARITHMETIC_DTYPES) -> Tile:
    """The op `name`, which messages call `symbol`, on two tiles of one of the types, or a tile and a number."""
    operands = match_tiles(symbol, (lhs, rhs), allowed)
    return emit_tile(name, operands[0].dtype, operands[0].layout, operands)


def compare_tiles(symbol: str, lhs: object, rhs: object) -> Tile:
    """A tile of uint1: 1 where the comparison of two tiles, or a tile and a number, holds."""
    operands = match_tiles(symbol, (lhs, rhs), ARITHMETIC_DTYPES)
    predicate = ir.IntegerAttr.get(current_trace(symbol).type("i32"), _PREDICATES[symbol])
    return emit_tile("lowlp.compare", dtype("uint1"), operands[0].layout, operands, {"predicate": predicate})
