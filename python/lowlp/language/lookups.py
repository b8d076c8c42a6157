"""Lookup tables in shared memory: the values that codes name (FLUTE, sections 3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lowlp._mlir import ir

from .scalars import Scalar, as_index
from .shared import SharedTile, as_shared
from .source import type_error, value_error
from .tiles import INTEGER_DTYPES, Tile, as_extents, as_named_tile, as_tile, emit_tile, require_dtype
from .tracing import current_trace

_PAIRED_DTYPES: Final = tuple(f"uint{bits}" for bits in range(1, 7))
_ENTRY_DTYPES: Final = ("f16", "bf16")


def _as_table(argument: str, value: object, ranks: tuple[int, ...]) -> SharedTile:
    table = as_shared(argument, value)
    if len(table.shape) not in ranks:
        wanted = " or ".join(map(str, ranks)) + (" dimension" if ranks == (1,) else " dimensions")
        raise value_error(f"{argument}: must have {wanted}, found {len(table.shape)}")
    return table


def _check_halves(argument: str, table: SharedTile) -> None:
    if table.dtype.name not in _ENTRY_DTYPES:
        raise type_error(f"{argument}: must hold f16 or bf16, found {table.describe()}")


def lookup(table: SharedTile, codes: Tile) -> Tile:
    """The entries of a table that the codes name, in the layout of the codes (FLUTE: weights by lookup table).

    table  a shared tile of one dimension, of any element type; or of two, with copies: entry c of copy k at (c, k), of
           which thread t reads copy t mod C. The layout `lowlp.local(2**(b - 1), C).local(2, 1)` gives each of C = 32
           copies of 2**b halves banks of its own
    codes  integers of any width; each must be the number of an entry, which the CPU target checks

    Raises VerificationError where the copies are no such power of two, KernelTypeError and KernelValueError for
    other arguments.
    """
    held = _as_table("table", table, (1, 2))
    tile = as_tile("codes", codes)
    require_dtype("codes", tile, INTEGER_DTYPES)
    return emit_tile("lowlp.lookup", held.dtype, tile.layout, [held, tile])


def lookup_pairs(table: SharedTile, *slices: Tile) -> Tile:
    """The entries that the codes name, those of neighbours by one load of 32 bits (FLUTE, section 3.2).

    table   f16 or bf16, of 4**b x C x 2 for codes of b = 1 to 6 bits, filled by `expand_table`. Thread t reads copy
            t mod C; C is a power of two up to 32, and with 32 copies each lane has a bank of its own; or C is 64, and
            thread t reads copy t mod 32, where pairs of up to 4 bits are a byte of the address
    slices  a tile of b bits; or several in one layout whose widths add up to b, the lowest bits first, as of 3 bits
            those of uint2 and of uint1 (FLUTE, section 3.1). A thread must hold an even number of codes

    The result has the layout of the codes. Raises VerificationError where shapes and layouts do not fit,
    KernelTypeError and KernelValueError for other arguments.
    """
    held = _as_table("table", table, (3,))
    _check_halves("table", held)
    if not slices:
        raise value_error("slices: expected at least one tile of codes")
    tiles = [as_named_tile(f"slices[{number}]", value) for number, value in enumerate(slices)]
    for number, tile in enumerate(tiles):
        require_dtype(f"slices[{number}]", tile, _PAIRED_DTYPES)
    return emit_tile("lowlp.lookup_pairs", held.dtype, tiles[0].layout, [held, *tiles])


def expand_table(table: SharedTile, expanded: SharedTile, *, slices: Sequence[int] | None = None) -> None:
    """Fills a table of copies or of pairs from one that holds entry c at c; all threads of the block do it together.

    table     a shared tile of one dimension, of f16 or bf16. After what wrote it stands `synchronize`
    expanded  of [2**b, C] for `lookup`, or of [4**b, C, 2] for `lookup_pairs`; before the first lookup stands another
              `synchronize`
    slices    the widths of the tiles that `lookup_pairs` takes; one of b bits if left out

    Raises VerificationError where shapes and layouts do not fit, KernelTypeError and KernelValueError for other
    arguments.
    """
    trace = current_trace("ll.expand_table")
    source, target = _as_table("table", table, (1,)), _as_table("expanded", expanded, (2, 3))
    for argument, held in (("table", source), ("expanded", target)):
        _check_halves(argument, held)
    attributes: dict[str, ir.Attribute] = {}
    if slices is not None:
        attributes["slices"] = ir.DenseI64ArrayAttr.get(as_extents("slices", slices))
    trace.emit("lowlp.expand_table", [], [source.ir_value, target.ir_value], attributes)


def add_lookups(codes: Tile, table: SharedTile, sums: Tile, *, column: int | Scalar = 0) -> Tile:
    """The sums with what the codes name, each in the table of its column: `table[code, column + j]`, for a code of
    column j. A thread adds what its codes of a row name to its element of that row.

    codes   unsigned integers, [rows, columns]; each must be the number of an entry, which the CPU target checks
    table   a shared tile of f32, in row-major order, of entries by columns, which may be several dimensions
    sums    f32, in the layout of the codes without what a thread holds along the columns: codes
            `local(4, 1).spatial(8, 4).local(1, 8)` have sums `local(4, 1).spatial(8, 4)`

    Where entries are products of x and vectors of a codebook, these are products of x and rows of weights (CodeGEMM).
    Raises VerificationError where shapes and layouts do not fit, KernelTypeError for other
    arguments.
    """
    tile, held = as_named_tile("codes", codes), as_shared("table", table)
    added = as_named_tile("sums", sums)
    require_dtype("codes", tile, tuple(name for name in INTEGER_DTYPES if name.startswith("uint")))
    require_dtype("sums", added, ("f32",))
    start = as_index("column", column)
    return emit_tile("lowlp.add_lookups", added.dtype, added.layout, [tile, held, start, added])
