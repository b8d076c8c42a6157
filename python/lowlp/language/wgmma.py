"""Products of warpgroups: tensor cores multiply while the block goes on (PTX ISA, "Asynchronous Warpgroup Level Matrix
Multiply-Accumulate Instructions").
"""

from __future__ import annotations

from collections.abc import Sequence

from lowlp._mlir import ir
from lowlp.layouts.register_layout import Layout
from lowlp.numeric.dtypes import DType

from .instructions import accumulator_dtype
from .scalars import Scalar, describe, is_int
from .shared import MAX_GROUPS, SharedTile, as_offsets, as_shared
from .source import type_error, value_error
from .tiles import Tile, as_dtype, as_layout, as_named_tile
from .tracing import Trace, TracedValue, current_trace


class Accumulators(TracedValue):
    """Accumulators in flight: `wgmma` adds products to them, and `wgmma_wait` makes them a tile. Each has one use."""

    __slots__ = ("dtype", "layout")

    def __init__(self, trace: Trace, value: ir.Value, element: DType, tile_layout: Layout) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.layout = tile_layout

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile that they become."""
        return self.layout.shape

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"accumulators in flight of {self.dtype} with layout {self.layout}; ll.wgmma_wait makes a tile of them"

    def like(self, value: ir.Value) -> Accumulators:
        """Another value of the same type, of the innermost region."""
        return Accumulators(self._trace, value, self.dtype, self.layout)


def _type(name: str, element: DType, layout: Layout) -> ir.Type:
    text = f"!lowlp.{name}<{'x'.join(map(str, layout.shape))}x{element.mlir}, {layout}>"
    return current_trace(f"ll.{name}").type(text)


def wgmma(
    a: Tile,
    b: SharedTile,
    c: Tile | Accumulators | None = None,
    *,
    offsets: Sequence[int | Scalar],
    layout: Layout | str | None = None,
) -> Accumulators:
    """Begins the product a * b^T + c (PTX ISA, `wgmma.mma_async`; sm_90a).

    a        [M, K] in registers of f16, bf16, f8e4m3, f8e5m2, int8, uint8 or uint1; each warpgroup, 128 threads, has 64
             rows
    b        a shared tile whose last dimensions are [N, K], of the same type or another 8-bit one of the same kind, in
             one of the layouts of the hardware, such as `lowlp.swizzle(lowlp.local(N, 8), dim=1).local(1, 8)` for
             K = 64 elements of 16 bits; see `lowlp.wgmma` in the reference of the dialect for all. Where a is of uint1,
             [N, K / 32] of uint32: 32 bits of K each, low ones first, of which the product is the bitwise and
    c        [M, N] of f32 for floats, of int32 for integers: a tile, or accumulators in flight; zero if left out
    offsets  where the part of b begins, for each of its dimensions: multiples of 8 rows and of 32 bytes of K
    layout   how the accumulators are held, where c is left out

    K is a multiple of 32 bytes, N of 8, and of 16 for integers from 32 on; N is at most 256. What was stored to b comes
    before the product if `fence_async` and `synchronize` lie in between; nobody may write to it before `wgmma_wait`. A
    loop must wait for a product before it comes to the same line again, since that writes the registers of a.

    Raises KernelTypeError and KernelValueError for other arguments.
    """
    trace = current_trace("ll.wgmma")
    as_named_tile("a", a), as_shared("b", b)
    starts = as_offsets("offsets", offsets, len(b.shape))
    are_bits = (a.dtype.name, b.dtype.name) == ("uint1", "uint32")
    dtype_of_c = accumulator_dtype(a.dtype, a.dtype if are_bits else b.dtype)
    if not dtype_of_c or (a.dtype.bits < 8 and not are_bits):
        raise type_error(
            "a and b must both hold f16, both bf16, 8-bit integers, f8e4m3 and f8e5m2, or uint1 and uint32, "
            f"found {a.dtype} and {b.dtype}"
        )
    if c is not None and not isinstance(c, Tile | Accumulators):
        raise type_error(f"c: must be a tile, accumulators in flight or None, found {describe(c)}")
    if (c is None) == (layout is None):
        raise value_error("layout: must be given where c is not, and only there")
    if c is not None and c.dtype.name != dtype_of_c:
        raise type_error(f"c: must hold {dtype_of_c}, found {c.dtype}")
    held = as_layout("layout", layout) if c is None else c.layout
    element = as_dtype("c", dtype_of_c)
    operands: list[TracedValue] = [a, b, *starts, *([] if c is None else [c])]
    segments = ir.DenseI32ArrayAttr.get([1, 1, len(starts), int(c is not None)])
    values = [operand.ir_value for operand in operands]
    operation = trace.emit(
        "lowlp.wgmma", [_type("accumulators", element, held)], values, {"operandSegmentSizes": segments}
    )
    return Accumulators(trace, operation.results[0], element, held)


def wgmma_commit() -> None:
    """Makes one group of all products since the last commit (PTX ISA, `wgmma.commit_group`)."""
    current_trace("ll.wgmma_commit").emit("lowlp.wgmma_commit")


def wgmma_wait(n: int, *accumulators: Accumulators) -> list[Tile]:
    """Waits until all but the last `n` groups, 0 to 7, are complete (PTX ISA, `wgmma.wait_group`).

    accumulators  of products of complete groups

    The result is a tile for each of them. The shared tiles of complete groups may be written after `synchronize`.
    Raises KernelTypeError and KernelValueError for other arguments.
    """
    trace = current_trace("ll.wgmma_wait")
    if not is_int(n) or not 0 <= n <= MAX_GROUPS:
        raise value_error(f"n: must be an int from 0 to {MAX_GROUPS}, found {describe(n)}")
    for value in accumulators:
        if not isinstance(value, Accumulators):
            raise type_error(f"accumulators: must be made by ll.wgmma, found {describe(value)}")
    types = [_type("tile", value.dtype, value.layout) for value in accumulators]
    attributes = {"n": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)}
    operation = trace.emit("lowlp.wgmma_wait", types, [value.ir_value for value in accumulators], attributes)
    return [
        Tile(trace, result, value.dtype, value.layout)
        for result, value in zip(operation.results, accumulators, strict=True)
    ]
