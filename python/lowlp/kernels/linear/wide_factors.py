"""What weights of kernels by warpgroups are multiplied by: scales, zero points and second scales, one for each row
that a thread has (`warpgroups`)."""

from __future__ import annotations

from typing import Any, NamedTuple

from lowlp import language as ll
from lowlp.numeric.group_codes import PACKED_CODE_TYPES

from .parts import (
    UNIT_K,
    Arguments,
    Views,
    as_activation,
    as_f32,
    power_in_f16,
    scale_and_zero,
)
from .scaled_weights import prescale_of_codes
from .segments import Segment
from .two_levels import fills_stages, number_of_fields, rounds_once, stored_groups
from .warpgroup_layouts import Plan

# Bounds, with its inverse, of the power of two that brings weights with scales of up to 16 bits into the range of f16.
_MOST_FIT = 2.0**56


class Place(NamedTuple):
    """A segment of a stage, and what its segments have in common and was loaded, by view, number and row."""

    segment: Segment
    stage: ll.Scalar
    loaded: dict[Any, ll.Tile]


def is_one(factor: Any) -> bool:
    """Whether a number of the kernel is known to be 1."""
    return isinstance(factor, float) and factor == 1.0


def of_rows(plan: Plan, view: Any, group: ll.Scalar | int, row: ll.Scalar) -> ll.Tile:
    """Scales or zero points of a group, one for each row."""
    tile = ll.load_global(view, offsets=[group, row], layout=plan.layouts.rows)
    return ll.view(tile, dtype=tile.dtype, layout=plan.layouts.column)


def unscale_of(plan: Plan, operands: Arguments) -> Any:
    """The power of two by which codes, or entries of a table, are divided; 1 where they are not."""
    return operands.table_unscale if plan.spec.table else 1.0 / prescale_of_codes(plan.spec)


class WeightFactors:
    """What the weights of a block are multiplied by.

    fit  the power of two that scales need; None of others
    """

    def __init__(self, plan: Plan, operands: Arguments, views: Views) -> None:
        self.plan, self.operands, self.views = plan, operands, views
        spec = plan.spec
        if spec.row_scale2:
            self.scale2_view = ll.view_global(operands.scale2, shape=[1, spec.rows_of_weights])
        self.fit = operands.fit if plan.is_fitted else None
        if plan.is_fitted and plan.in_f32 and not spec.table and (spec.super_scale or spec.scale) in ("f16", "e4m3"):
            # So large it may be, which lets scales take the powers of two of `lowlp-plan-decode`.
            self.fit = ll.maximum(ll.minimum(operands.fit, _MOST_FIT), 1 / _MOST_FIT)

    def group_of(self, segment: Segment, stage: ll.Scalar) -> ll.Scalar | int:
        """The group of a segment of a stage."""
        stage_k, group = self.plan.schedule.stage_k, self.plan.spec.group_size
        if self.plan.spec.k % UNIT_K and self.plan.spec.groups == 1:
            return 0
        if stage_k % group == 0 and group % UNIT_K:
            return stage * (stage_k // group) + segment.group
        unit = stage * (stage_k // UNIT_K) + segment.group * (min(stage_k, group) // UNIT_K)
        return unit // (group // UNIT_K)

    def in_f32(
        self, view: Any, kind: str, supers: Any, at: Place, row: ll.Scalar, fit: ll.Scalar | None = None
    ) -> ll.Tile:
        """Scales or zero points of a segment in f32, times those of its super-group where `supers` is their view, and
        times `fit`, a power of two."""
        spec, stage_k = self.plan.spec, self.plan.schedule.stage_k

        def load(array: Any, number: Any, known: Any) -> ll.Tile:
            # What several segments have in common is loaded once.
            key = (id(array), known, id(row))
            if known is None or key not in at.loaded:
                at.loaded[key] = of_rows(self.plan, array, number, row)
            return at.loaded[key]

        if kind in PACKED_CODE_TYPES and fills_stages(spec, stage_k):
            first = at.stage * stored_groups(spec, kind, stage_k // spec.group_size)
            values = number_of_fields(kind, at.segment.group, lambda byte: load(view, first + byte, byte))
        elif kind in PACKED_CODE_TYPES:
            group = self.group_of(at.segment, at.stage)
            values = number_of_fields(kind, group, lambda byte: load(view, byte, None))
        else:
            values = as_f32(load(view, self.group_of(at.segment, at.stage), None), kind)
        if supers is None:
            return values if fit is None else values * fit
        size = spec.super_group_size
        number: Any = 0
        in_stage = 0
        if spec.supers > 1 and stage_k >= size:
            begin = at.segment.granules[0]
            in_stage = (begin.unit * UNIT_K + begin.first_step * spec.step_k) // size
            number = at.stage * (stage_k // size) + in_stage
        elif spec.supers > 1:
            number = at.stage // (size // stage_k)
        super_scale = ll.cast(load(supers, number, in_stage), "f32")
        return values * (super_scale if fit is None else super_scale * fit)

    def scales_of(self, at: Place, row: ll.Scalar) -> ll.Tile:
        """Scales of a segment in f32, for sums of products."""
        views = self.views
        return self.in_f32(views.scales, self.plan.spec.scale, views.super_scales, at, row)

    def second_scale(self, row: ll.Scalar) -> Any:
        """The second scale of weights that are made in f32, or those of rows, with the power of two that f16 needs."""
        scale2 = of_rows(self.plan, self.scale2_view, 0, row) if self.plan.spec.row_scale2 else self.operands.scale2
        return scale2 * self.operands.fit if self.plan.is_fitted else scale2

    def of_segment(self, at: Place, row: ll.Scalar) -> tuple[ll.Tile, ll.Tile | None, ll.Tile | None]:
        """What goes on the weights of a segment: scales, zero points, and second scales of rows."""
        spec, views = self.plan.spec, self.views
        fit = self.fit
        if spec.super_scale:
            factor = self.factor_of_scales(fit)
            scale = self.in_f32(views.scales, spec.scale, views.super_scales, at, row, factor)
            if not spec.corrector:
                return scale, None, None
            of_offsets = fit if spec.offsets else None
            return scale, self.in_f32(views.correctors, spec.corrector, views.super_offsets, at, row, of_offsets), None
        group = self.group_of(at.segment, at.stage)
        scale = of_rows(self.plan, views.scales, group, row)
        if self.plan.in_f32:
            zero = of_rows(self.plan, views.correctors, group, row) if spec.corrector else None
            scale2 = self.second_scale(row) if spec.scale2 else None
            # A second scale, where there is one, takes the power of two.
            fit = None if spec.scale2 else fit
            zero = None if zero is None else as_f32(zero, spec.corrector, fit if spec.offsets else None)
            scale = as_f32(scale, spec.scale, self.factor_of_scales(fit))
            if spec.f32_differences:
                zero = zero * (scale * -1.0)
            return scale, zero, scale2
        if self.plan.has_powers:
            # Times 2^-p before f16 has to hold them.
            assert fit is not None, "powers are fitted"
            scale, fit = power_in_f16(scale, fit), None
        else:
            scale = as_activation(scale, spec.scale, spec.activation)
        zero = of_rows(self.plan, views.correctors, group, row) if spec.corrector else None
        return *scale_and_zero(spec, scale, zero, fit), None

    def factor_of_scales(self, fit: ll.Scalar | None) -> Any:
        """What scales of weights that are made in f32 are multiplied by, once for a group: `fit`, and what codes are
        divided by. bf16 has weights so small that f32 lacks bits of that product, so there it goes on weights."""
        unscale = unscale_of(self.plan, self.operands) if self.plan.spec.activation == "f16" else 1.0
        if fit is None:
            return None if is_one(unscale) else unscale
        return fit if is_one(unscale) else fit * unscale

    def scaled(self, values: ll.Tile, scale: ll.Tile, zero: ll.Tile | None, scale2: Any) -> ll.Tile:
        """Weights, by the steps of `dequantize` and rounded once."""
        spec = self.plan.spec
        if not self.plan.in_f32:
            return (values if zero is None else values - zero) * scale
        wide = ll.cast(values, "f32")
        unscale = 1.0 if spec.activation == "f16" else unscale_of(self.plan, self.operands)
        if not is_one(unscale):
            wide = wide * unscale
        if spec.is_bipolar:
            wide = wide * 2.0 - float((1 << spec.bits) - 1)
        if spec.offsets or spec.f32_differences:
            assert zero is not None
            is_exact = spec.f32_differences or rounds_once(spec)
            wide = ll.fma(wide, scale, zero) if is_exact else wide * scale + zero
        else:
            wide = (wide if zero is None else wide - zero) * scale
        return ll.cast(wide if scale2 is None else wide * scale2, spec.activation)
