"""What the blocks of a launch share: memory, semaphores that order them, and atomics (Tilus, section 5)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

from lowlp._mlir import ir
from lowlp.errors import LowlpError
from lowlp.numeric.dtypes import DType

from .grid import Extent, affine_map
from .instructions import view_global
from .scalars import Scalar, as_index, describe, is_int
from .shared import SharedTile
from .source import type_error, value_error
from .tiles import GlobalView, Pointer, Tile, as_dtype, as_named_tile, as_tile
from .tracing import Trace, current_trace

ATOMIC_KINDS: Final = ("add", "min", "max", "and", "or", "xor", "exchange")
_INTEGER_WORDS: Final = ("int32", "uint32")
_ADDED_FLOATS: Final = ("f32", "f16", "bf16")


def _starts(offsets: object, rank: int) -> list[Scalar]:
    if isinstance(offsets, str) or not isinstance(offsets, Sequence):
        raise type_error(f"offsets: must be a list of ints and index scalars, found {describe(offsets)}")
    if len(offsets) != rank:
        raise value_error(f"offsets: expected one for each of the {rank} dimensions, found {len(offsets)}")
    return [as_index(f"offsets[{dim}]", offset) for dim, offset in enumerate(offsets)]


def _semaphore(view: object, offsets: object, value: object) -> list[ir.Value]:
    if not isinstance(view, GlobalView):
        raise type_error(f"view: must be a view made by ll.view_global or ll.alloc_global, found {describe(view)}")
    if view.dtype.name != "int32":
        raise type_error(f"view: semaphores must be int32, but the view holds {view.dtype}")
    return [operand.ir_value for operand in (view, *_starts(offsets, view.rank), as_index("value", value))]


def semaphore_acquire(view: GlobalView, *, offsets: Sequence[int | Scalar], value: int | Scalar) -> None:
    """The block waits until a word of global memory is `value` (Tilus, LockSemaphore).

    view     a view of int32 in global memory
    offsets  which of its elements, for each dimension
    value    of which the low 32 bits count

    After it all threads of the block see what other blocks did before the `semaphore_release` that wrote the value. A
    block may wait for blocks of lower index; those of a higher one may not have started. Raises KernelTypeError and
    KernelValueError for other arguments.
    """
    operands = _semaphore(view, offsets, value)
    current_trace("ll.semaphore_acquire").emit("lowlp.semaphore_acquire", [], operands)


def semaphore_release(
    view: GlobalView, *, offsets: Sequence[int | Scalar], value: int | Scalar, add: bool = False
) -> None:
    """Gives a word of global memory a value for other blocks to wait for (Tilus, ReleaseSemaphore).

    add  adds `value` to the word instead, so that several blocks may count themselves in

    All else is as for `semaphore_acquire`. A block whose acquire reads the word sees what all threads of this block did
    before.
    """
    operands = _semaphore(view, offsets, value)
    attributes: dict[str, ir.Attribute] = {"add": ir.UnitAttr.get()} if add else {}
    current_trace("ll.semaphore_release").emit("lowlp.semaphore_release", [], operands, attributes)


def exchange_in_cluster(parts: Tile) -> Tile:
    """Gives each block of the cluster its part of a tile (PTX ISA, `mapa` and `st.async`).

    parts  a tile whose first dimension counts the blocks of the cluster, as `ll.KernelSchedule(cluster=...)` says; each
           thread holds all parts, one after the other, as in `local(2, 1).spatial(1, 128)`, in words of 32 bits each

    The result, held alike, has at s what block s of the cluster gave to this one. All blocks of a cluster come here,
    once. With `ll.sum(..., 0)` after it each block has its part of the sum of all, in the order of the blocks. Raises
    KernelTypeError for other arguments.
    """
    value = as_named_tile("parts", parts)
    trace = current_trace("ll.exchange_in_cluster")
    operation = trace.emit("lowlp.exchange_in_cluster", [value.ir_value.type], [value.ir_value])
    return Tile(trace, operation.results[0], value.dtype, value.layout)


def atomic_rmw(
    kind: str,
    tile: Tile,
    destination: GlobalView | SharedTile,
    *,
    offsets: Sequence[int | Scalar],
    fetch: bool = False,
) -> Tile | None:
    """Combines a tile with memory, each element in one step: memory[i] = kind(memory[i], tile[i]).

    kind         'add', 'min', 'max', 'and', 'or', 'xor' or 'exchange' of int32 and uint32; 'add' of f32, f16 and bf16
    destination  a view of global memory or a shared tile, with elements of the tile's type
    offsets      where the tile begins, for each dimension of the destination; it lies along the last ones
    fetch        return the tile of what was there before, zero for elements outside; the tile's layout must then hold
                 each element once

    Elements outside are not touched; of several threads that hold an element the first does it. Nothing is ordered by
    it, and threads come to an element in any order, which sums of floats show. Raises KernelTypeError and
    KernelValueError for other arguments.
    """
    trace = current_trace("ll.atomic_rmw")
    if kind not in ATOMIC_KINDS:
        raise value_error(f"kind: must be one of {', '.join(ATOMIC_KINDS)}, found {kind!r}")
    value = as_tile("tile", tile)
    if not isinstance(destination, GlobalView | SharedTile):
        raise type_error(f"destination: must be a view or a shared tile, found {describe(destination)}")
    if value.dtype != destination.dtype:
        raise type_error(
            f"tile: element types must match: the tile holds {value.dtype}, memory {destination.dtype}; use ll.cast"
        )
    if value.dtype.name not in _INTEGER_WORDS and (kind != "add" or value.dtype.name not in _ADDED_FLOATS):
        raise type_error(
            f"tile: there is no atomic {kind} of {value.dtype}; int32 and uint32 have all kinds, "
            "f32, f16 and bf16 have add"
        )
    starts = _starts(offsets, len(destination.shape))
    if len(value.shape) > len(destination.shape):
        raise value_error(f"tile: has {len(value.shape)} dimensions, but memory has only {len(destination.shape)}")
    if fetch and value.layout.num_threads * value.layout.num_local != value.layout.num_elements:
        raise value_error(f"fetch: needs a layout that holds each element once, found {value.layout}")
    number = ir.IntegerAttr.get(trace.type("i32"), ATOMIC_KINDS.index(kind))
    operands = [operand.ir_value for operand in (value, destination, *starts)]
    results = [value.ir_value.type] if fetch else []
    operation = trace.emit("lowlp.atomic_rmw", results, operands, {"kind": number})
    return Tile(trace, operation.results[0], value.dtype, value.layout, value.choice) if fetch else None


def alloc_global(
    dtype: str | DType, shape: Sequence[int] | Callable[..., object], *, zeroed: bool = False
) -> GlobalView:
    """Memory that all blocks of the launch share, as a row-major view (Tilus, AllocateGlobal).

    dtype   the type of the elements
    shape   ints; or, as a kernel's grid, a callable whose parameters are named as integer parameters of the kernel and
            which returns extents made of them: `lambda m: (ll.ceildiv(m, 16), 128)`
    zeroed  it is zero at first, and the kernel must leave it zero, which the CPU target checks; else it holds anything

    Every call is one place, wherever it stands. Launches on one stream follow each other in the same memory. Raises
    KernelTypeError and KernelValueError for other arguments.
    """
    trace = current_trace("ll.alloc_global")
    element = as_dtype("dtype", dtype)
    extents, view_shape = _shape(trace, shape)
    attributes: dict[str, ir.Attribute] = {"shape": ir.AffineMapAttr.get(affine_map(extents, trace.parameters))}
    if zeroed:
        attributes["zeroed"] = ir.UnitAttr.get()
    operation = trace.emit("lowlp.alloc_global", [trace.type(f"!lowlp.ptr<{element.mlir}>")], attributes=attributes)
    return view_global(Pointer(trace, operation.results[0], element, "alloc_global"), shape=view_shape)


def _shape(trace: Trace, shape: object) -> tuple[list[Extent | int], list[int | Scalar]]:
    """The extents over parameters, and the same as values of the kernel."""
    if not callable(shape):
        known = _extents(shape)
        for dim, extent in enumerate(known):
            if not is_int(extent):
                raise type_error(f"shape[{dim}]: must be an int, found {describe(extent)}; see shape=lambda ...")
            if extent < 1:
                raise value_error(f"shape[{dim}]: must be at least 1, found {extent}")
        return [int(extent) for extent in known], [int(extent) for extent in known]
    integers = [parameter.name for parameter in trace.parameters if parameter.kind == "integer"]
    names = list(inspect.signature(shape).parameters)
    for name in names:
        if name not in integers:
            raise value_error(
                f"shape: names {name!r}, but the integer parameters of the kernel are {', '.join(integers) or 'none'}"
            )
    try:
        extents = _extents(shape(**{name: Extent.parameter(name) for name in names}))
    except LowlpError as error:
        make = type_error if isinstance(error, TypeError) else value_error
        raise make(f"shape: {str(error).removeprefix('grid: ')}") from None
    for dim, extent in enumerate(extents):
        if not is_int(extent) and not isinstance(extent, Extent):
            raise type_error(f"shape[{dim}]: must be made of integer parameters and ints, found {describe(extent)}")
    return extents, _extents(shape(**{name: trace.arguments[name] for name in names}))


def _extents(shape: object) -> list[Any]:
    if isinstance(shape, Extent | Scalar) or is_int(shape):
        return [shape]
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise type_error(f"shape: must be a list of ints or a callable, found {describe(shape)}")
    if not shape:
        raise value_error("shape: must have at least one dimension")
    return list(shape)
