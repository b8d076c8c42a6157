"""Codes of vectors that are spread when they are packed, so that lanes which read together read different banks
(docs/packed-format.md, "Codes that are spread").

What is chosen depends on the codes alone that some lanes have. A search looks at one lane after the other, a few times:
each takes the bank that the fewest others read. numpy and PyTorch find the same.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.spread_books import entries_at, second_places
from lowlp_runtime.vector_order import LANES

_PHASE_BYTES: Final = 128
_MOST_BYTES: Final = 16
"""Of what a lane reads at a time."""
_ROUNDS: Final = 3
_AT_ONCE: Final = {"numpy": 1 << 18, "torch": 1 << 24}
"""Codes that are looked at at a time."""


def spread_codes(codes: Any, bits: int, entry_bytes: int, spread: str) -> Any:
    """The codes of packed words.

    codes        integers [rows, K / v, R], of rows from the first of a unit on: numpy's, or a tensor of PyTorch
    bits         of a code
    entry_bytes  of a vector in shared memory
    spread       'copies' or, of two books, 'exchange'

    Returns int64 of the same shape, in 0 .. 2**(bits + 1) - 1.
    """
    is_numpy = isinstance(codes, np.ndarray)
    wide = codes.astype(np.int64) if is_numpy else codes.long().clone()
    lanes = _PHASE_BYTES // min(entry_bytes, _MOST_BYTES)
    rows, columns, books = wide.shape
    of_rows = lanes // LANES
    more = (-rows % of_rows, -columns % LANES)
    if any(more):
        shape = (rows + more[0], columns + more[1], books)
        padded = np.zeros(shape, np.int64) if is_numpy else wide.new_zeros(shape)
        padded[:rows, :columns] = wide
        wide = padded
    at_once = max(1, _AT_ONCE["numpy" if is_numpy else "torch"] // (wide.shape[1] * books * of_rows)) * of_rows
    for first in range(0, len(wide), at_once):
        part = wide[first : first + at_once]
        # Lanes are rows, and LANES codes of each.
        by_lane = part.reshape(len(part) // of_rows, of_rows, -1, LANES, books).swapaxes(1, 2)
        groups = by_lane.reshape(-1, lanes, books)
        chosen = (_with_copies if spread == "copies" else _exchanged)(groups, bits, entry_bytes)
        part[...] = chosen.reshape(by_lane.shape).swapaxes(1, 2).reshape(part.shape)
    return wide[:rows, :columns]


def gathered_codes(stored: AnyArray, bits: int, spread: str) -> AnyArray:
    """The inverse: codes [rows, K / v, R] of those that packed words have; the other arguments are the same."""
    if spread == "copies":
        found: AnyArray = entries_at(stored, bits)
        return found
    entries = 1 << bits
    codes = stored & (entries - 1)
    return np.where(stored[..., :1] >= entries, codes[..., ::-1], codes)


class _Readers:
    """How many lanes of each group read each bank."""

    def __init__(self, groups: Any, banks: int) -> None:
        count = len(groups)
        if isinstance(groups, np.ndarray):
            self.counts: Any = np.zeros(count * banks, np.int64)
            self.first: Any = np.arange(count) * banks
        else:
            self.counts = groups.new_zeros(count * banks)
            self.first = groups.new_ones(count).cumsum(0) * banks - banks

    def of(self, bank: Any) -> Any:
        """Lanes that read a bank of each group."""
        return self.counts[self.first + bank]

    def add(self, bank: Any, number: Any) -> None:
        """Counts `number` lanes more of each group that read a bank."""
        self.counts[self.first + bank] += number


def _with_copies(groups: Any, bits: int, entry_bytes: int) -> Any:
    """Codes that name one of two places of an entry, [groups, lanes, books]."""
    banks = _PHASE_BYTES // entry_bytes
    chosen = groups * 0
    for book in range(groups.shape[-1]):
        codes = groups[..., book]
        second = second_places(codes, bits)
        places = (codes % banks, second % banks)
        readers, takes_second = _Readers(groups, banks), codes * 0
        for turn in range(_ROUNDS):
            for lane in range(codes.shape[1]):
                plain, other, takes = places[0][:, lane], places[1][:, lane], takes_second[:, lane]
                if turn:
                    readers.add(plain + (other - plain) * takes, takes * 0 - 1)
                takes = _takes_other(readers.of(plain), readers.of(other), takes)
                takes_second[:, lane] = takes
                readers.add(plain + (other - plain) * takes, takes * 0 + 1)
        chosen[..., book] = codes + (second - codes) * takes_second
    return chosen


def _exchanged(groups: Any, bits: int, entry_bytes: int) -> Any:
    """Codes [groups, lanes, 2] of two books one after the other, in the order in which entries are read."""
    size, banks = 1 << bits, _PHASE_BYTES // entry_bytes
    first, second = groups[..., 0], groups[..., 1]
    places, exchanges = (first % banks, second % banks), first * 0
    readers = _Readers(groups, banks), _Readers(groups, banks)
    for turn in range(_ROUNDS):
        for lane in range(first.shape[1]):
            one, other, before = places[0][:, lane], places[1][:, lane], exchanges[:, lane]
            if turn:
                _count(readers, one, other, before, -1)
            as_they_are = readers[0].of(one) + readers[1].of(other)
            exchanged = readers[0].of(other) + readers[1].of(one)
            exchanges[:, lane] = _takes_other(as_they_are, exchanged, before)
            _count(readers, one, other, exchanges[:, lane], 1)
    chosen = groups * 0
    of_second = second + size
    chosen[..., 0] = first + (of_second - first) * exchanges
    chosen[..., 1] = of_second + (first - of_second) * exchanges
    return chosen


def _takes_other(one: Any, other: Any, before: Any) -> Any:
    """1 where the other choice has fewer readers than the one, else 0. Of two with as many the one that was not taken
    before: it may make room for others."""
    return 2 * (other - one) + 2 * before - 1 >> 63 & 1


def _count(readers: tuple[_Readers, _Readers], one: Any, other: Any, exchanges: Any, number: int) -> None:
    """Counts what is read first, and what then, once more or once less."""
    added = exchanges * 0 + number
    readers[0].add(one + (other - one) * exchanges, added)
    readers[1].add(other + (one - other) * exchanges, added)
