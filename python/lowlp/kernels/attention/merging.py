"""The end of a part of attention: the results of its warps, and those of the sequence's other parts, put together.

Each result is a reference score m (the largest, or somewhat below), a sum l and accumulators o, of all warps or parts
alike. With M the largest of all m,

    l = sum of l_i 2**(m_i - M),   o = sum of o_i 2**(m_i - M),   result = o / l,   lse = ln 2 (M + log2 l)

in the order of the warps, and then of the last part and the others in their order.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from lowlp import language as ll

from .codes import value_unit

_PARTS_AT_ONCE = 8
_PADDING = 4
"""Words after the channels of a column in shared memory, so that columns lie in different banks."""
NO_ROW = -(2**30)
"""An index that lies in no view."""


class Part(NamedTuple):
    """What the warps of a block have when their tokens end.

    top           [warps, 1, columns], the reference scores
    total         [warps, 1, 1, columns], the sums
    accumulators  [warps, channels, columns]
    """

    top: ll.Tile
    total: ll.Tile
    accumulators: ll.Tile


class _Sum(NamedTuple):
    """m and l as [columns, 1], o as [columns, channels]."""

    top: ll.Tile
    total: ll.Tile
    result: ll.Tile


def _sum_of(tops: ll.Tile, totals: ll.Tile, results: ll.Tile) -> _Sum:
    """The sum along the first dimension, all of which each thread holds."""
    top = ll.max(tops, 0, keep_dims=True)
    mend = ll.exp2(tops - top)
    flat = ll.view(top, dtype="f32", layout=tops.layout.reduce([0]))
    return _Sum(flat, ll.sum(totals * mend, 0), ll.sum(results * mend, 0))


def _sum_of_warps(block: Any, part: Part) -> _Sum:
    """The sum over the warps, through shared memory."""
    spec, results, warps = block.spec, block.results, block.schedule.warps
    natural = ll.view(part.accumulators, dtype="f32", layout=results.natural)
    column = part.top.layout.reduce([1]).unsqueeze(2)
    tiles = {
        "accumulators": (ll.transpose(natural, [0, 2, 1]), spec.head_dim + _PADDING, results.gathered),
        "tops": (ll.view(part.top, dtype="f32", layout=column), 1, results.gathered_column),
        "totals": (ll.view(part.total, dtype="f32", layout=column), 1, results.gathered_column),
    }
    places = {}
    for name, (tile, width, _) in tiles.items():
        places[name] = ll.alloc_shared("f32", [warps, spec.columns, width])
        ll.store_shared(tile, places[name], offsets=[0, 0, 0], in_bounds=True)
    ll.synchronize()
    gathered = {
        name: ll.load_shared(places[name], offsets=[0, 0, 0], layout=held, in_bounds=True)
        for name, (_, _, held) in tiles.items()
    }
    return _sum_of(gathered["tops"], gathered["totals"], gathered["accumulators"])


def _sum_of_classes(block: Any, part: Part) -> _Sum:
    """The sum over the warps and then over the classes of tokens, of which a query has a column each, with the channels
    of each class brought into their own order."""
    spec, held = block.spec, block.results.by_class
    columns = _sum_of_warps(block, part)
    queries, classes, *channels = held.columns.shape
    # Neighbours apart, so that threads side by side read side by side.
    results = ll.alloc_shared("f32", [queries, classes, held.near, channels[0], channels[2]])
    by_group = ll.view(columns.result, dtype="f32", layout=held.columns)
    ll.store_shared(ll.transpose(by_group, [0, 1, 3, 2, 4]), results, offsets=[0] * 5, in_bounds=True)
    numbers = {}
    for name in ("top", "total"):
        numbers[name] = ll.alloc_shared("f32", [queries, classes])
        of_columns = ll.view(getattr(columns, name), dtype="f32", layout=held.numbers)
        ll.store_shared(of_columns, numbers[name], offsets=[0, 0], in_bounds=True)
    ll.synchronize()

    def of_class(name: str, number: int) -> ll.Tile:
        """A number of each query."""
        return ll.load_shared(numbers[name], offsets=[0, number], layout=held.number, in_bounds=True)

    tops = [of_class("top", number) for number in range(spec.classes)]
    top = tops[0]
    for other in tops[1:]:
        top = ll.maximum(top, other)
    mends = [ll.exp2(other - top) for other in tops]
    total = of_class("total", 0) * mends[0]
    for number in range(1, spec.classes):
        total = ll.fma(of_class("total", number), mends[number], total)
    of_piece = [ll.view(mend, dtype="f32", layout=held.number.unsqueeze(2)) for mend in mends]
    joined = ll.full(0.0, "f32", layout=held.joined)
    for place in range(held.near):
        piece = ll.full(0.0, "f32", layout=held.piece)
        for number, mend in enumerate(of_piece):
            at = [0, number, place ^ (number & (held.near - 1)), 0, 0]
            found = ll.load_shared(results, offsets=at, layout=held.piece.unsqueeze(1, 2), in_bounds=True)
            piece = piece + ll.view(found, dtype="f32", layout=held.piece) * mend
        piece = ll.view(piece, dtype="f32", layout=held.joined.reduce([2], keep_dims=True))
        chosen = ll.equal(ll.iota(2, layout=held.joined, dtype="int32"), place)
        joined = ll.where(chosen, ll.broadcast_to(piece, held.joined), joined)
    whole, column = block.results.result, block.results.column
    top = ll.view(top, dtype="f32", layout=column)
    return _Sum(top, ll.view(total, dtype="f32", layout=column), ll.view(joined, dtype="f32", layout=whole))


@ll.inline
def finish(block, part):  # type: ignore[no-untyped-def]
    """Stores the result of a sequence's last part with all others, or leaves that of another part for it."""
    of_block = (_sum_of_warps if block.spec.classes == 1 else _sum_of_classes)(block, part)
    kept, dim = block.results.kept, block.spec.head_dim
    left = ll.alloc_global("f32", lambda pairs, splits: (pairs, splits, kept, dim))
    tops = ll.alloc_global("f32", lambda pairs, splits: (pairs, splits, kept, 1))
    totals = ll.alloc_global("f32", lambda pairs, splits: (pairs, splits, kept, 1))
    arrived = ll.alloc_global("int32", lambda pairs: (pairs,), zeroed=True)
    if block.split + 1 < block.parts:
        at = [block.pair, block.split, 0, 0]
        ll.store_global(of_block.result, left, offsets=at, in_bounds=True)
        ll.store_global(of_block.top, tops, offsets=at, in_bounds=True)
        ll.store_global(of_block.total, totals, offsets=at, in_bounds=True)
        ll.semaphore_release(arrived, offsets=[block.pair], value=1, add=True)
    else:
        if block.parts > 1:
            ll.semaphore_acquire(arrived, offsets=[block.pair], value=block.parts - 1)
        top, total, result = of_block
        for chunk in ll.range(ll.ceildiv(block.parts - 1, _PARTS_AT_ONCE)):
            top, total, result = _with_parts(block, chunk * _PARTS_AT_ONCE, top, total, result, (tops, totals, left))
        if block.parts > 1:
            ll.semaphore_release(arrived, offsets=[block.pair], value=0)
        _store(block, top, total, result)


def _with_parts(
    block: Any, first: Any, top: ll.Tile, total: ll.Tile, result: ll.Tile, left: tuple[Any, Any, Any]
) -> _Sum:
    """The sum with some of the other parts, from number `first` on: all are loaded before the first is added."""
    parts = [_load_part(block, first + number, left) for number in range(_PARTS_AT_ONCE)]
    of_all = top
    for part in parts:
        of_all = ll.maximum(of_all, part.top)
    mend = ll.exp2(top - of_all)
    total, result = total * mend, result * mend
    for part in parts:
        weight = ll.exp2(part.top - of_all)
        total, result = ll.fma(part.total, weight, total), ll.fma(part.result, weight, result)
    return _Sum(of_all, total, result)


@ll.inline
def _load_part(block, number, left):  # type: ignore[no-untyped-def]
    """What the block of a part has left; nothing for those that are not before the last."""
    column, whole = block.results.column, block.results.result
    top = ll.full(-math.inf, "f32", layout=column)
    total, result = ll.full(0.0, "f32", layout=column), ll.full(0.0, "f32", layout=whole)
    if number + 1 < block.parts:
        tops, totals, results = left
        at = [block.pair, number, 0, 0]
        top = ll.load_global(tops, offsets=at, layout=column, in_bounds=True)
        total = ll.load_global(totals, offsets=at, layout=column, in_bounds=True)
        result = ll.load_global(results, offsets=at, layout=whole, in_bounds=True)
    return _Sum(top, total, result)


def _store(block: Any, top: ll.Tile, total: ll.Tile, result: ll.Tile) -> None:
    """Stores o / l, and the logarithm of the denominator."""
    spec, operands = block.spec, block.operands
    column = block.results.column
    rows = operands["batch"] * (spec.queries * spec.heads)
    numbers = block.row_of(ll.iota(0, layout=column, dtype="int32"), spec.heads)
    first = block.first_row(spec.heads)
    if spec.sinks:
        heads = ll.view_global(operands["sinks"], shape=[spec.heads, 1])
        head = (ll.iota(0, layout=column, dtype="int32") + ll.full(block.first, "int32", layout=column)) % spec.group
        sink = ll.gather_global(heads, head, dim=0, offsets=[block.head * spec.group, 0], layout=column)
        sink = ll.cast(sink, "f32") * math.log2(math.e)
        of_all = ll.maximum(top, sink)
        mend = ll.exp2(top - of_all)
        # The largest weighs 1, a sink of infinity too, beside which nothing counts.
        weight = ll.where(ll.equal(sink, of_all), 1.0, ll.exp2(sink - of_all))
        total, result, top = total * mend + weight, result * mend, of_all
    is_empty = ll.equal(total, 0.0)
    inverse = value_unit(spec.kind) / ll.where(is_empty, 1.0, total)
    result = ll.cast(result * inverse, spec.activation)
    if spec.ordered:
        held = block.results.channels
        number = ll.iota(0, layout=held, dtype="int32")
        row = block.row_of(number // spec.head_dim, spec.heads)
        out = ll.view_global(operands["out"], shape=[rows * spec.head_dim, 1])
        place = block.places_in_order(row, number % spec.head_dim)
        result = ll.view(result, dtype=spec.activation, layout=held)
        ll.scatter_global(result, out, place, dim=0, offsets=[first * spec.head_dim, 0])
    else:
        out = ll.view_global(operands["out"], shape=[rows, spec.head_dim])
        ll.scatter_global(result, out, numbers, dim=0, offsets=[first, 0])
    if spec.lse:
        lse = (top + ll.log2(total)) * math.log(2)
        lse = ll.where(is_empty, ll.full(-math.inf, "f32", layout=column), lse)
        view = ll.view_global(operands["lse"], shape=[rows, 1])
        ll.scatter_global(lse, view, numbers, dim=0, offsets=[first, 0])
