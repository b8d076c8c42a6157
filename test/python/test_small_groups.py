"""Groups that are no whole units, in the kernels with stages: x of rows of I gives `dequantize()` rounded once.

Combinations that formats have, and those that are easily mistaken; `test_linear_cover.py` has every codec, group and
form of scales.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import linear_matrix as matrix
import numpy as np
import pytest
from linear_matrix import TYPES, Config, relative_error

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import for_weights, host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.scaled_weights import can_scale_weights
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.segments import segments, units_of_period
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import can_stream
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide
from lowlp.numeric.codec import Codec

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

K = 192
"""A multiple of all groups and of units."""
ROWS = 40


@dataclass(frozen=True)
class Case:
    """Weights, and a form of kernel."""

    config: Config
    form: str
    n: int
    k: int = K

    def __str__(self) -> str:
        return f"{self.config}-{self.form}-{self.n}x{self.k}"

    def schedule(self, spec: LinearSpec) -> Schedule:
        """Of the form, with stages of whole groups."""
        period = units_of_period(spec)
        if self.form == "streamed":
            slices = 2 if period == 1 and self.k == K and spec.table != "group" else 1
            return Schedule(16, row_tiles=4, slices=slices, units=period, stages=2, producer=False)
        fields = {"a tile each": {"share_tiles": False}, "shared": {"columns": 24}}[self.form]
        division = Schedule(32, stages=2, warpgroups=1, row_tiles=4, steps=period, producer=False, scales_on="weights")
        return replace(division, **fields)


PAIRS = (
    [
        # Scales that are divided by a power of two, and what is added beside them.
        Case(Config("int4", 32, "bf16", extra, "e4m3"), form, 64)
        for extra in ("offsets", "integer zeros", "scale2", "row scale2")
        for form in ("streamed", "shared")
    ]
    + [
        # GGUF's K-quants and QServe.
        Case(Config(code, group, activation, extra, scale), form, 64)
        for code, group, activation, extra, scale in (
            ("uint2", 16, "f16", "offsets", "uint4"),
            ("int3", 16, "bf16", "", "int6"),
            ("uint4", 32, "f16", "offsets", "uint8"),
            ("int6", 16, "f16", "", "int8"),
            ("uint4", 32, "bf16", "integer zeros", "uint8"),
        )
        for form in ("streamed", "a tile each", "shared")
    ]
    + [
        # Tables of rows and of groups.
        Case(Config("lut4 channel", 32, "f16", "", "f16"), "shared", 70),
        Case(Config("lut3 group", 48, "bf16", "offsets", "f32"), "a tile each", 64),
        Case(Config("lut4 group", 16, "f16", "scale2", "e4m3"), "streamed", 64),
    ]
    + [Case(Config("uint3", 112, "bf16", "integer zeros", "bf16"), "streamed", 64, 448)]
)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_rows_of_the_identity(case: Case) -> None:
    config, index = case.config, PAIRS.index(case)
    qw = config.weights(case.n, case.k, seed=index)
    kind = TYPES[config.activation]
    # Results of f32 have weights that are not rounded, and so no place for scales on them.
    out = "f32" if case.form == "streamed" and index % 2 else config.activation
    spec = for_weights(spec_for(qw, config.activation, out, aligned=True), qw)
    schedule = case.schedule(spec)
    if schedule.warpgroups and not spec.scales_weights:
        pytest.skip("f16 holds no such weights, whatever they are multiplied by")
    assert (can_go_wide if schedule.warpgroups else can_stream)(spec, schedule)
    kernel, product = compile_cpu(linear_kernel(spec, schedule)), product_of(spec, schedule)
    numbers = product.by_name(product.launch_numbers(ROWS, case.k, None, multiprocessors=2))
    rows = np.random.default_rng(index).permutation(case.k)[:ROWS]
    y = np.full((ROWS, case.n), np.nan, TYPES[out])
    kernel(
        x=np.eye(case.k, dtype=kind)[rows], **host_operands(qw, config.activation, schedule=schedule), y=y, **numbers
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y.T, qw.dequantize()[:, rows].astype(y.dtype))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "int4 in groups of 48"])
@pytest.mark.parametrize("m", [3, 40, 90])
def test_products_with_random_numbers(name: str, m: int) -> None:
    rng = np.random.default_rng(m)
    weights = rng.normal(size=(136, K)).astype(np.float32)
    qw = lowlp.quantize(weights, "int4", group_size=48) if " " in name else lowlp.quantize(weights, name)
    x = rng.normal(size=(m, K)).astype(np.float16)
    assert relative_error(lowlp.linear(x, qw), x, qw) <= matrix.ERROR_LIMITS["f16"]


@pytest.mark.parametrize(
    "codec", ["int4 g32 f16", "f4e2m1 g16 e4m3 scale2", "int3 g48 f16", "uint4 g96 f32 offsets:f32"]
)
@pytest.mark.parametrize("m", [1, 16, 24, 100, 300, 5000])
def test_every_number_of_rows_has_a_kernel_with_stages(codec: str, m: int) -> None:
    for k in (5376, 1440):
        schedule = schedule_for(LinearSpec(5376, k, Codec.parse(codec), aligned=True), m)
        assert schedule.stages and (schedule.warpgroups > 0 or m <= 32)


def test_scales_that_the_activations_hold_go_on_weights_as_they_are() -> None:
    def is_exact(codec: str, activation: str) -> bool:
        return can_scale_weights(LinearSpec(512, 512, Codec.parse(codec), activation))

    assert is_exact("f4e2m1 g32 e8m0", "bf16") and not is_exact("f4e2m1 g32 e8m0", "f16")
    # Products of 4 and 2 significant bits are exact, so that the second scale rounds them alone.
    assert is_exact("f4e2m1 g16 e4m3 scale2", "f16") and is_exact("f4e2m1 g16 e4m3 scale2", "bf16")
    assert not is_exact("int8 g16 e4m3 scale2", "bf16")
    assert not is_exact("uint4 g32 f16 offsets:f16", "f16")


def test_segments_are_the_parts_of_groups() -> None:
    found = segments(192, 48, 16, 16)
    assert [segment.group for segment in found] == [0, 1, 2, 3]
    assert [tuple(granule) for granule in found[1].granules] == [(0, 3), (1, 0), (1, 1)]
    assert [len(segment.granules) for segment in segments(64, 128, 64, 16)] == [1]
