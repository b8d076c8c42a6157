"""What a block does with rows that it holds: codes, scales, sums of codes, and planes.

Rows are in its registers, as f32: each number is read once and its code written once.
"""

from __future__ import annotations

import math
from typing import Any

from lowlp import language as ll
from lowlp.activations.quantize import LEAST_SCALE, Rule
from lowlp.numeric.bit_planes import WORD_CODES

from .planes import PlanesView, planes_view, store_planes
from .rounding import Codes, Extremes, codes_of, extremes_of, scales_of, sums_of_row, zeros_of
from .source import Source
from .spec import Division, RowsSpec


class Block:
    """What a block does, as it is traced."""

    def __init__(self, spec: RowsSpec, division: Division, operands: dict[str, Any]) -> None:
        self.spec, self.division, self.operands = spec, division, operands
        self.source = Source(spec, division, operands)

    @property
    def rule(self) -> Rule:
        """How numbers become codes."""
        assert self.spec.rule is not None
        return self.spec.rule

    def run(self) -> None:
        """Loads the block's rows, and stores what is made of them."""
        x = self.source.load()
        if self.spec.rule is None:
            self.store("y", ll.cast(x, self.spec.source), self.spec.k)
            return
        found = extremes_of(x, self.rule.symmetric)
        x = ll.where(found.is_finite, x, 0.0)
        scales, zeros = self.scales_and_zeros(found)
        made = codes_of(self.rule, x, 1.0 / scales, zeros)
        self.store_codes(made, 0)
        self.store_sums(made.sums, zeros, self.division.padded)

    def scales_and_zeros(self, found: Extremes) -> tuple[ll.Tile, ll.Tile | None]:
        """Scales and zero points of the rows, which are stored too."""
        rule = self.rule
        if rule.scale == "tensor":
            found = self.of_tensor(found)
        scales = self.given_scales(found) if rule.scale == "given" else scales_of(rule, found)
        zeros = zeros_of(rule, found, 1.0 / scales)
        self.store("scales", ll.where(found.is_finite & (scales < math.inf), scales, math.nan), 1)
        if zeros is not None:
            self.store("zeros", ll.cast(zeros, "int32"), 1)
        elif rule.has_zeros:
            self.store("zeros", ll.full(1 << (rule.kind.dtype.bits - 1), "int32", layout=scales.layout), 1)
        return scales, zeros

    def of_tensor(self, found: Extremes) -> Extremes:
        """The extremes of all rows, which another launch has found, in place of those of the row."""
        view = self.source.view("extremes", 2, 0, 0)
        held = found.high.layout
        words = [ll.load_global(view, offsets=self.source.at(place), layout=held) for place in range(2)]
        low, high = (ll.view(word, dtype="f32", layout=held) for word in words)
        return Extremes(found.is_finite, None if found.low is None else -low, high)

    def given_scales(self, found: Extremes) -> ll.Tile:
        """The scale of each row, which the caller gives."""
        given = ll.load_global(self.source.dense("given", 1), offsets=self.source.at(), layout=found.high.layout)
        # Rows beyond the last one would divide by 0.
        scales: ll.Tile = ll.maximum(given, float(LEAST_SCALE))
        return scales

    def store(self, name: str, tile: ll.Tile, columns: int, column: Any = 0) -> None:
        """Rows that lie one after the other, in the order of groups, from a column on."""
        if columns > 1 and tile.layout != self.division.layout:
            tile = ll.convert_layout(tile, self.division.layout)
        ll.store_global(tile, self.source.dense(name, columns), offsets=self.source.at(column))

    def store_codes(self, made: Codes, column: Any) -> None:
        """Codes and planes, from a column on, which is the first one of a word."""
        division, codes = self.division, made.codes
        if codes.layout != division.layout:
            codes = ll.convert_layout(codes, division.layout)
        self.store("codes", codes, self.spec.k, column)
        if self.spec.planes:
            rows = self.source.at()[:2]
            store_planes(codes, division.by_words, self.rule.kind, self.planes(), rows, column // WORD_CODES)

    def store_sums(self, sums: ll.Tile | None, zeros: ll.Tile | None, numbers: int) -> None:
        """Sums of the codes of rows of so many numbers, with those beyond the end."""
        if sums is not None:
            self.store("sums", sums_of_row(self.rule, sums, zeros, numbers - self.spec.k), 1)

    def planes(self) -> PlanesView:
        """Where planes go."""
        return planes_view(self.operands, self.rule.kind.dtype.bits, self.spec.plane_words, self.spec.k)
