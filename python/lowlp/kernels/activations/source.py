"""The rows that are quantised: loaded, and all that comes before their scales."""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.kernels.epilogues import silu

from .spec import Division, RowsSpec
from .transform import transformed


class Source:
    """Rows of x, as they are traced.

    Parameters: x, rows `x_stride` elements apart, of groups `x_outer_stride` the rows of x; with silu the place `ups`
    of the first up after that of the first gate; with `smooth` f32, of which rows take parts `smooth_stride` apart; of
    a norm weight [k], residual as x and the stored sums `residual_out`;
    numbers rows and outer.
    """

    def __init__(self, spec: RowsSpec, division: Division, operands: dict[str, Any]) -> None:
        self.spec, self.division, self.operands = spec, division, operands
        indices = ll.block_indices()
        place, self.outer = reversed(indices) if spec.grouped else indices
        self.first = place * division.rows

    def view(self, name: str, columns: Any, stride: Any, outer_stride: Any) -> ll.GlobalView:
        """Rows of `columns` numbers, of all outer indices."""
        operands = self.operands
        shape = [operands["outer"], operands["rows"], columns]
        return ll.view_global(operands[name], shape=shape, strides=[outer_stride, stride, 1])

    def dense(self, name: str, columns: int) -> ll.GlobalView:
        """Rows that lie one after the other, in the order of groups."""
        operands = self.operands
        return ll.view_global(operands[name], shape=[operands["outer"], operands["rows"], columns])

    def at(self, column: Any = 0) -> list[Any]:
        """Where the block's rows begin."""
        return [self.outer, self.first, column]

    def rounded(self, x: ll.Tile) -> ll.Tile:
        """To the type of x, as f32."""
        return x if self.spec.source == "f32" else ll.cast(ll.cast(x, self.spec.source), "f32")

    def rows_of(self, name: str, column: Any = 0) -> ll.Tile:
        """The block's rows of x or the residual as f32, from a column on."""
        operands = self.operands
        view = self.view(name, self.spec.k, operands[f"{name}_stride"], operands["x_outer_stride"])
        return ll.cast(ll.load_global(view, offsets=self.at(column), layout=self.division.layout), "f32")

    def load(self, column: Any = 0) -> ll.Tile:
        """The block's rows as f32, from a column on; 0 beyond their end."""
        spec, operands = self.spec, self.operands
        x = self.rows_of("x", column)
        if spec.silu:
            x = self.gated(x)
        if spec.norm:
            x = self.normed(x)
        if spec.smooth:
            # One vector for all rows, or a part of it for each group.
            factors = self.view("smooth", spec.k, operands["smooth_stride"], 0)
            x = x * ll.load_global(factors, offsets=self.at(column), layout=self.division.layout)
        if spec.hadamard:
            x = self.rounded(transformed(x, self.division, spec.hadamard))
        return x

    def gated(self, gates: ll.Tile) -> ll.Tile:
        """silu(gate) * up, rounded to the type of x."""
        operands, start = self.operands, self.operands["ups"]
        view = self.view("x", start + self.spec.k, operands["x_stride"], operands["x_outer_stride"])
        ups = ll.cast(ll.load_global(view, offsets=self.at(start), layout=self.division.layout), "f32")
        return self.rounded(silu(gates) * ups)

    def normed(self, x: ll.Tile) -> ll.Tile:
        """x * (1 / sqrt(mean of squares + eps)) * weight, rounded to the type of x, of x with the residual added."""
        norm, k = self.spec.norm, self.spec.k
        assert norm is not None
        if norm.residual:
            x = self.rounded(x + self.rows_of("residual"))
            stored = ll.cast(x, self.spec.source)
            ll.store_global(stored, self.dense("residual_out", k), offsets=self.at())
        mean = ll.sum(x * x, 1, keep_dims=True) / float(k)
        weights = self.view("weight", k, 0, 0)
        weight = ll.cast(ll.load_global(weights, offsets=self.at(), layout=self.division.layout), "f32")
        return self.rounded(x * (1.0 / ll.sqrt(mean + norm.eps)) * weight)


def source_parameters(spec: RowsSpec) -> dict[str, ll.Parameter]:
    """What a kernel takes for `Source`, but for numbers of rows."""
    align, whole = (16, spec.whole) if spec.aligned else (None, None)
    parameters = {"x": ll.pointer(spec.source, align=align), "x_stride": ll.integer(64, divisible_by=whole)}
    parameters["x_outer_stride"] = ll.integer(64, divisible_by=whole)
    if spec.silu:
        parameters["ups"] = ll.integer(64, divisible_by=whole)
    if spec.smooth:
        parameters |= {"smooth": ll.pointer("f32", align=16), "smooth_stride": ll.integer(64, divisible_by=whole)}
    if spec.norm:
        parameters["weight"] = ll.pointer(spec.norm.weight, align=align)
        if spec.norm.residual:
            parameters["residual"] = ll.pointer(spec.source, align=align)
            parameters["residual_stride"] = ll.integer(64, divisible_by=whole)
            parameters["residual_out"] = ll.pointer(spec.source, align=16)
    return parameters
