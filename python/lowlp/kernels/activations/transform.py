"""The Hadamard transform of tiles of f32 [rows, numbers], step for step as `lowlp.activations.hadamard` says.

Of two numbers that are a power of two apart, each becomes a sum: that of both, or the first less the second. Where one
thread has both, that is an addition each; where they are in two lanes of a warp, one exchange and one fused addition.
Those of several warps are brought into one thread before, which gives its neighbours away.
"""

from __future__ import annotations

from typing import Final

from lowlp import language as ll
from lowlp.activations.hadamard import factors_of, inverse_root, odd_signs
from lowlp.layouts.register_layout import Layout, local, spatial

from .spec import Division

_LANES: Final = 32


def transformed(x: ll.Tile, division: Division, block: int) -> ll.Tile:
    """The transform of blocks of each row of `x`, which is held as the division says; in a layout of its own."""
    factors = factors_of(block)
    assert factors is not None, "a block that checked_block refuses"
    odd, power = factors
    of_thread, of_warp = division.vector, division.vector * min(division.threads, _LANES)
    step = 1
    while step < min(power, of_thread):
        x, step = _local_step(x, step), 2 * step
    while step < min(power, of_warp):
        x, step = _lane_step(x, step), 2 * step
    of_block = division.vector * division.threads
    while step < min(power, of_block):
        gathered = min(division.vector, of_block // step)
        x = ll.convert_layout(x, _swapped(division, step, gathered))
        for _ in range(gathered.bit_length() - 1):
            if step < power:
                x, step = _local_step(x, step), 2 * step
    while step < power:
        x, step = _local_step(x, step), 2 * step
    if odd > 1:
        x = _by_signs(x, odd, power)
    return x * float(inverse_root(block))


def _swapped(division: Division, step: int, gathered: int) -> Layout:
    """Threads whose numbers are `step` and its multiples apart, `gathered` of them, have given each other their
    neighbours: each has numbers of one place of all of them."""
    low = step // division.vector
    high = division.threads // (low * gathered)
    return (
        spatial(division.rows, 1)
        * local(1, division.chunks)
        * spatial(1, high)
        * local(1, gathered)
        * spatial(1, low)
        * local(1, division.vector // gathered)
        * spatial(1, gathered)
    )


def _in_pairs(x: ll.Tile, step: int) -> ll.Tile:
    """The tile as [rows, pairs of runs, 2, step]."""
    rows, count = x.shape
    return ll.view(x, dtype="f32", layout=x.layout.reshape(rows, count // (2 * step), 2, step))


def _local_step(x: ll.Tile, step: int) -> ll.Tile:
    """Sums and differences of numbers `step` apart that a thread has both."""
    pairs = _in_pairs(x, step)
    is_first = ll.equal(ll.iota(2, layout=pairs.layout, dtype="int32"), 0)
    sums = ll.sum(pairs, 2, keep_dims=True)
    differences = ll.sum(ll.where(is_first, pairs, -pairs), 2, keep_dims=True)
    result = ll.where(is_first, ll.broadcast_to(sums, pairs.layout), ll.broadcast_to(differences, pairs.layout))
    return ll.view(result, dtype="f32", layout=x.layout)


def _lane_step(x: ll.Tile, step: int) -> ll.Tile:
    """The same of numbers that two lanes of a warp have."""
    pairs = _in_pairs(x, step)
    of_lane = pairs.layout.reduce([0, 1, 3], keep_dims=True)
    number = ll.iota(2, layout=of_lane)
    signs = 1.0 - 2.0 * number
    lane = step // x.layout.contiguous_locals(1)
    result = ll.fma(pairs, ll.broadcast_to(signs, pairs.layout), ll.warp_shuffle(pairs, "xor", lane))
    return ll.view(result, dtype="f32", layout=x.layout)


def _by_signs(x: ll.Tile, odd: int, power: int) -> ll.Tile:
    """Sums of `odd` numbers that are `power` apart, which a thread has all, by the signs of the matrix."""
    rows, count = x.shape
    parts = ll.view(x, dtype="f32", layout=x.layout.reshape(rows, count // (odd * power), odd, power))
    place = ll.iota(2, layout=parts.layout, dtype="int32")
    signs = odd_signs(odd)
    result = None
    for column in range(odd):
        # Nothing but the number itself is left of the sum: -0 is what addition leaves as it is.
        one = ll.sum(ll.where(ll.equal(place, column), parts, -0.0), 2, keep_dims=True)
        number = ll.broadcast_to(one, parts.layout)
        negative = None
        for row in range(odd):
            if signs[row, column] < 0:
                here = ll.equal(place, row)
                negative = here if negative is None else negative | here
        term = number if negative is None else ll.where(negative, -number, number)
        result = term if result is None else result + term
    assert result is not None
    return ll.view(result, dtype="f32", layout=x.layout)
