"""Bulk copies: runs of bytes, and boxes of tensors, that one thread copies for its block (PTX ISA, `cp.async.bulk`)."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp._mlir import ir

from .mbarriers import Mbarriers, as_mbarrier
from .scalars import Scalar, describe, is_int
from .shared import MAX_GROUPS, SharedTile, as_offsets, as_shared, check_part
from .source import type_error, value_error
from .tiles import GlobalView, as_extents
from .tracing import TracedValue, current_trace


def _emit_copy(
    name: str,
    operands: Sequence[Sequence[TracedValue]],
    shape: Sequence[int],
) -> None:
    """Emits a copy whose operands come in groups, one for each operand of the op."""
    attributes: dict[str, ir.Attribute] = {
        "shape": ir.DenseI64ArrayAttr.get(list(shape)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(group) for group in operands]),
    }
    values = [operand.ir_value for group in operands for operand in group]
    current_trace(f"ll.{name}").emit(f"lowlp.{name}", [], values, attributes)


def _part(
    view: object, view_offsets: object, shared: object, offsets: object, shape: object, argument: str
) -> tuple[list[Sequence[TracedValue]], list[Sequence[TracedValue]], list[int]]:
    """The view with its offsets, the shared tile with its, and the extents of the part."""
    if not isinstance(view, GlobalView):
        raise type_error(f"view: must be a view made by ll.view_global, found {describe(view)}")
    tile = as_shared(argument, shared)
    extents = as_extents("shape", shape)
    check_part(view, tile, extents)
    return (
        [[view], as_offsets("view_offsets", view_offsets, view.rank)],
        [[tile], as_offsets("offsets", offsets, len(tile.shape))],
        extents,
    )


def copy_bulk(
    view: GlobalView,
    destination: SharedTile,
    *,
    view_offsets: Sequence[int | Scalar],
    offsets: Sequence[int | Scalar],
    shape: Sequence[int],
    barriers: Mbarriers,
    index: int | Scalar,
) -> None:
    """Begins a bulk copy of a part of a view to shared memory.

    view_offsets  where the part begins in the view, for each of its dimensions
    offsets       where it begins in the shared tile, for each of its dimensions
    shape         the extents of the part, which lies along the last dimensions of both, and inside of both
    barriers      mbarrier `index` of these counts the bytes; tell it with `mbarrier_expect_bytes`

    Rows, along the last dimension, are runs of bytes in both memories that begin at multiples of 16 bytes and take one;
    the shared tile has no swizzle within a row. The bytes are there after `mbarrier_wait`. Needs sm_90. Raises
    KernelTypeError and KernelValueError for other arguments.
    """
    source, target, extents = _part(view, view_offsets, destination, offsets, shape, "destination")
    barrier = [[operand] for operand in as_mbarrier(barriers, index)]
    _emit_copy("copy_bulk", [*source, *target, *barrier], extents)


def copy_bulk_to_global(
    source: SharedTile,
    view: GlobalView,
    *,
    offsets: Sequence[int | Scalar],
    view_offsets: Sequence[int | Scalar],
    shape: Sequence[int],
) -> None:
    """Begins a bulk copy of a part of a shared tile to a view; see `copy_bulk` for the arguments.

    What was stored to the shared tile goes along if `fence_async` and `synchronize` lie in between. The tile may be
    written again after `copy_bulk_wait` with `read` and `synchronize`. The same wait must come before the kernel ends,
    since its shared memory ends with it. Needs sm_90. Raises KernelTypeError and KernelValueError for other arguments.
    """
    target, start, extents = _part(view, view_offsets, source, offsets, shape, "source")
    _emit_copy("copy_bulk_to_global", [*start, *target], extents)


def copy_tensor(
    view: GlobalView,
    destination: SharedTile,
    *,
    view_offsets: Sequence[int | Scalar],
    offsets: Sequence[int | Scalar],
    shape: Sequence[int],
    barriers: Mbarriers,
    index: int | Scalar,
) -> None:
    """Begins a tensor copy of a part of a view to shared memory: by one instruction, or one for each panel.

    What lies outside of the view arrives as zero. The arguments are those of `copy_bulk`; a launch makes the tensor
    map. The view, of 1 to 5 dimensions, is of a pointer parameter aligned to 16 bytes; its extents and strides are
    affine functions of the kernel's integers, the last stride is 1, the others multiples of 16 bytes; elements have 8,
    16 or 32 bits. An extent of `shape` is at most 256, and `shape` is the shared tile's but for its first dimensions;
    the offsets along it are 0. The layout is row-major, or for rows of 32, 64 or 128 bytes
    `lowlp.swizzle(lowlp.local(rows, row bytes // 16), dim=1, log_step=n).local(1, 16 // element bytes)` with n = 2, 1
    or 0; longer rows, of P times 128 bytes, are P panels: `lowlp.local(1, P).swizzle(lowlp.local(rows, 8),
    dim=1).local(1, 16 // element bytes)` for a multiple of 8 rows.

    The mbarrier counts the bytes of the whole part. Needs sm_90. Raises KernelTypeError and KernelValueError for other
    arguments.
    """
    source, target, extents = _part(view, view_offsets, destination, offsets, shape, "destination")
    barrier = [[operand] for operand in as_mbarrier(barriers, index)]
    _emit_copy("copy_tensor", [*source, *target, *barrier], extents)


def copy_bulk_commit() -> None:
    """Makes one group of all bulk copies to global memory since the last commit."""
    current_trace("ll.copy_bulk_commit").emit("lowlp.copy_bulk_commit")


def copy_bulk_wait(n: int, *, read: bool = False) -> None:
    """Waits until all but the last `n` groups of bulk copies, 0 to 7, have arrived or, with `read`, been read.

    The first thread waits, whose copies they are. Raises KernelValueError for other arguments.
    """
    trace = current_trace("ll.copy_bulk_wait")
    if not is_int(n) or not 0 <= n <= MAX_GROUPS:
        raise value_error(f"n: must be an int from 0 to {MAX_GROUPS}, found {describe(n)}")
    attributes: dict[str, ir.Attribute] = {"n": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)}
    if read:
        attributes["read"] = ir.UnitAttr.get()
    trace.emit("lowlp.copy_bulk_wait", attributes=attributes)
