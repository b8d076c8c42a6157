"""Codes of codebooks in another order for each token, so that lookups meet in no bank.

A warp looks up entries of several tokens at once: 4 lanes share the row of a key, 8 that of a value. The books of a
head lie side by side in a line of shared memory for each entry, so that each has banks of its own. But lanes that have
different tokens would read the same books. So in the row of token n the codes of `near` neighbouring groups of channels
are exchanged,

    slot s of the row has the code of group s ^ x(n),    bit 0 of x(n): parity of n & 5,  bit 1: parity of n & 2

    token       0 1 2 3   4 5 6 7   8 ...
    x           0 1 2 3   1 0 3 2   0 ...

and the lanes of a phase, which have slot s of tokens 0 to 3 (half of a key's warp) or 0, 2, 4, 6 (values), read
different books. A row of a product then has its channels in an order that depends on the token. Columns of the matrix
instruction that would be idle make up for it: each query has `CLASSES` of them, one for each x, whose channels are in
that order. A token counts in the column of its own class alone; the classes of a query are added at the end.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lowlp import language as ll
from lowlp.numeric.host_array import AnyArray

from .spec import ENTRIES, CacheType

KEY_LANES: Final = 4
VALUE_LANES: Final = 8
_MASKS: Final = (5, 2)
_LINE_BYTES: Final = 256
"""With lines of so many bytes a code is a byte of the address; a head's books fit into that up to 128 channels."""
CACHE: Final = ll.CodebookCache(shared=ENTRIES, line_bytes=_LINE_BYTES)


def near(kind: CacheType, head_dim: int, lanes: int) -> int:
    """How many neighbouring groups a lane of so many has side by side: up to 4."""
    groups = head_dim // kind.vector
    return next(count for count in (4, 2, 1) if groups % (lanes * count) == 0)


def neighbours_of(kind: CacheType, head_dim: int, is_value: bool) -> int:
    """How many groups lie side by side in a row of codes, in an order that depends on the token."""
    return near(kind, head_dim, VALUE_LANES if is_value else KEY_LANES)


def masks(kind: CacheType, head_dim: int, lanes: int) -> tuple[int, ...]:
    """By which bits of a token's number books are exchanged; none where a lane has no neighbours."""
    return _MASKS[: near(kind, head_dim, lanes).bit_length() - 1]


def class_of(token: ll.Tile) -> ll.Tile:
    """x of a token, from its number in a group of 16."""
    return ((token ^ (token >> 2)) & 1) | (token & 2)


def books_view(
    kind: CacheType,
    head_dim: int,
    kv_heads: int,
    books: ll.Pointer,
    times: int | None = None,
    by_entry: bool = False,
) -> ll.GlobalView:
    """Codebooks as [kv_heads, 2, groups of channels, entries, channels]; with `times` as [.., 2, times, groups, ..],
    so many times the same; `by_entry` as [.., 2, entries, groups, channels]. In memory books come one after the other;
    those that take lines of shared memory lie in lines there too, all books' entry 0 first."""
    groups, vector = head_dim // kind.vector, kind.vector
    in_part, of_part = [groups, ENTRIES, vector], groups * ENTRIES * vector
    strides = [vector, groups * vector, 1] if kind.is_staggered(head_dim) else [ENTRIES * vector, vector, 1]
    if by_entry:
        in_part, strides = ([numbers[1], numbers[0], numbers[2]] for numbers in (in_part, strides))
    repeated, standing = ([], []) if times is None else ([times], [0])
    return ll.view_global(
        books, shape=[kv_heads, 2, *repeated, *in_part], strides=[2 * of_part, of_part, *standing, *strides]
    )


def slots(kind: CacheType, head_dim: int, is_value: bool) -> AnyArray:
    """The place of each group's code in the row of a token of a class, [4, groups], and without classes the same for
    all: keys of a lane lie side by side, and so do values of neighbouring lanes."""
    groups = head_dim // kind.vector
    found: AnyArray = np.broadcast_to(np.arange(groups), (4, groups)).copy()
    if not kind.is_staggered(head_dim):
        return found
    neighbours = neighbours_of(kind, head_dim, is_value)
    found ^= np.arange(4)[:, None] & (neighbours - 1)
    return found if is_value else _by_lane(found, neighbours, groups)


def _by_lane(slot: Any, neighbours: int, groups: int) -> Any:
    part, lane, place = slot // (KEY_LANES * neighbours), slot // neighbours % KEY_LANES, slot % neighbours
    return lane * (groups // KEY_LANES) + part * neighbours + place


def strides_of_row(kind: CacheType, head_dim: int, is_value: bool, neighbours: int) -> list[int]:
    """How far apart in a row are parts, lanes and neighbours of its slots, [groups / (lanes * neighbours), lanes,
    neighbours]: as `slots` has them."""
    if kind.is_staggered(head_dim) and not is_value:
        return [neighbours, head_dim // kind.vector // KEY_LANES, 1]
    return [KEY_LANES * neighbours, neighbours, 1]


def places_of(kind: CacheType, head_dim: int, is_value: bool, group: ll.Tile, token_class: ll.Tile) -> ll.Tile:
    """As `slots`, in a kernel: where the codes of some groups go in the row of a token of that class."""
    neighbours = neighbours_of(kind, head_dim, is_value)
    slot: ll.Tile = group ^ (token_class & (neighbours - 1))
    place: ll.Tile = slot if is_value else _by_lane(slot, neighbours, head_dim // kind.vector)
    return place
