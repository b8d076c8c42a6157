"""Rows that are longer than what a block holds: read in parts, once for their extremes and once for their codes."""

from __future__ import annotations

from typing import Any, Final

from lowlp import language as ll

from .block import Block
from .rounding import Extremes, codes_of, finite_extremes
from .spec import Division, RowsSpec

_THREADS: Final = 256
_HELD: Final = 32


def division_of_parts(spec: RowsSpec) -> Division:
    """How a block divides a part of its row."""
    vector = spec.whole if spec.aligned else 1
    return Division(1, _HELD // vector, _THREADS, vector)


class LongRow(Block):
    """What a block does, as it is traced. It has one row."""

    def __init__(self, spec: RowsSpec, operands: dict[str, Any]) -> None:
        super().__init__(spec, division_of_parts(spec), operands)
        self.parts = -(-spec.k // self.division.padded)

    def extremes(self) -> Extremes:
        """Of the row."""
        least, most = self.numbers()
        high = ll.max(most, 1, keep_dims=True)
        return finite_extremes(None if self.rule.symmetric else ll.min(least, 1, keep_dims=True), high)

    @ll.inline
    def numbers(self):  # type: ignore[no-untyped-def]
        """For each number of a part the least and the most of all parts; where scales are symmetric the magnitude."""
        least = ll.full(0.0, "f32", layout=self.division.layout)
        most = ll.full(0.0, "f32", layout=self.division.layout)
        for part in ll.range(self.parts):
            x = self.source.load(part * self.division.padded)
            if self.rule.symmetric:
                most = ll.maximum(most, ll.abs(x))
            else:
                least, most = ll.minimum(least, x), ll.maximum(most, x)
        return least, most

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """Quantises the row."""
        found = self.extremes()
        scales, zeros = self.scales_and_zeros(found)
        inverse = 1.0 / scales
        total = ll.full(0, "int32", layout=scales.layout)
        for part in ll.range(self.parts):
            x = ll.where(found.is_finite, self.source.load(part * self.division.padded), 0.0)
            made = codes_of(self.rule, x, inverse, zeros)
            self.store_codes(made, part * self.division.padded)
            if not self.rule.kind.is_float:
                total = total + made.sums
        self.store_sums(None if self.rule.kind.is_float else total, zeros, self.parts * self.division.padded)
