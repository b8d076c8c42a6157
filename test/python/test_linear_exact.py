"""`lowlp.linear` of x = I is `dequantize()` rounded once, for every codec; and its other numbers, on the CPU target."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import linear_matrix as matrix
import ml_dtypes
import numpy as np
import pytest
from codec_samples import EXTRAS as EXTRAS_OF_CODECS
from codec_samples import SCALES
from linear_matrix import COVERING, EXTRAS, PRODUCTS, ROWS, TYPES, Config, is_offered, relative_error

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import PaddingWarning
from lowlp.kernels.linear.candidates import CLASSES, candidates
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.scaled_weights import can_scale_weights
from lowlp.kernels.linear.schedule import COLUMNS, WARPS, Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import can_stream
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide
from lowlp.numeric.codec import Codec
from lowlp_runtime.operand_arrays import filled

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")


@pytest.mark.sampled(24)
@pytest.mark.parametrize("config", COVERING + EXTRAS, ids=str)
def test_the_identity_gives_dequantize(config: Config) -> None:
    index = (COVERING + EXTRAS).index(config)
    k = 2 * config.k if config in EXTRAS and config.group else config.k
    k -= k % (config.group or 1)
    qw = config.weights(17 + 7 * index % 60, k, seed=index)
    out = None if index % 3 == 0 else "f32"
    y = lowlp.linear(np.eye(k, dtype=TYPES[config.activation]), qw, out_dtype=out)
    assert y.dtype == TYPES[out or config.activation]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y.T, qw.dequantize().astype(y.dtype))


def test_the_covering_configs_cover() -> None:
    assert {config.code for config in COVERING} == {config.code for config in matrix.FULL} == set(matrix.CODES)
    for kind, zeros in ((matrix.INTEGERS, matrix.ZEROS), (matrix.BIPOLAR, ("",)), (matrix.FLOATS, ("",))):
        found = {(c.group, c.activation, c.extra) for c in COVERING if c.code in kind}
        assert found >= set(itertools.product(matrix.GROUPS, matrix.ACTIVATIONS, zeros))
    for scope in matrix.SCOPES:
        found = {(c.group, c.activation, c.extra) for c in COVERING if c.code.endswith(scope)}
        assert found >= set(itertools.product(matrix.GROUPS, matrix.ACTIVATIONS, ("",)))
    assert {config.scale for config in COVERING} == set(matrix.SCALES)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("config", "n", "k"), PRODUCTS, ids=lambda value: str(value))
def test_random_products(config: Config, n: int, k: int) -> None:
    qw = config.weights(n, k, seed=n)
    rng = np.random.default_rng(k)
    kind = TYPES[config.activation]
    every = rng.standard_normal((max(ROWS), k)).astype(np.float32).astype(kind)
    few = lowlp.linear(every[:16], qw)
    for m in ROWS:
        y = lowlp.linear(every[:m], qw)
        assert (y.shape, y.dtype) == ((m, n), kind)
        # Up to 16 rows, a row does not depend on how many there are.
        if m <= 16:
            assert y.tobytes() == few[:m].tobytes()
        else:
            assert relative_error(y, every[:m], qw) <= matrix.ERROR_LIMITS[config.activation]


def test_no_result_depends_on_the_schedule() -> None:
    qw = Config("uint4", 48, "f16", "integer zeros").weights(130, 144)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((37, 144)).astype(np.float16)
    spec = spec_for(qw, "f16", "f32")
    results = []
    # Few columns with many warps and the other way round: what is compiled grows with both.
    pairs = list(zip(itertools.cycle(COLUMNS), sorted(WARPS, reverse=True), strict=False))
    for columns, warps in [*pairs[::6], pairs[-1]]:
        y = np.full((37, 130), np.nan, np.float32)
        kernel = compile_cpu(linear_kernel(spec, Schedule(columns, warps)))
        kernel(x=x, **host_operands(qw, "f16"), y=y, m=37, x_stride=144)
        results.append(y.tobytes())
    assert len(set(results)) == 1
    assert relative_error(np.frombuffer(results[0], np.float32).reshape(37, 130), x, qw) <= 1e-5


# --- every form of kernel with every form of scale -------------------------------------------------------------------

FORMS = {
    "plain": Schedule(16, 1),
    "streamed": Schedule(32, warps=1, row_tiles=4, slices=2, stages=2, producer=False),
    **{
        f"{tiles}, scales on {where}": Schedule(
            32, stages=2, warpgroups=1, row_tiles=4, steps=2, producer=False, scales_on=where, **fields
        )
        for where in ("accumulators", "weights", "rows")
        for tiles, fields in {"shared": {}, "a tile each": {"share_tiles": False}}.items()
    },
}


def extras_of(form: str) -> list[str]:
    """What kernels of a form take beside scales."""
    if not FORMS[form].warpgroups:
        return EXTRAS_OF_CODECS
    on_weights = ["", "integer zeros", "float zeros", "zeros and scale2"]
    return {"accumulators": ["", "scale2"], "weights": on_weights, "rows": ["", "scale2"]}[FORMS[form].scales_on]


def drawn(form: str, extra: str) -> tuple[Config, LinearSpec, lowlp.QuantizedTensor]:
    """Of the weights with such extras that a form of kernel takes, one at random."""
    rng = np.random.default_rng([list(FORMS).index(form), EXTRAS_OF_CODECS.index(extra)])
    schedule = FORMS[form]
    for _ in range(100):
        code, scale, activation = (str(rng.choice(list(among))) for among in (matrix.CODES, SCALES, matrix.ACTIVATIONS))
        if is_offered(code, activation, "zeros" if "zeros" in extra else ""):
            group = None if schedule.scales_on == "rows" else 64
            config = Config(code, group, activation, extra, scale)
            qw = config.weights(70, 128, seed=int(rng.integers(100)))
            spec = spec_for(qw, activation, activation, aligned=True)
            has_program = can_go_wide if schedule.warpgroups else can_stream
            if not schedule.stages or has_program(spec, schedule):
                return config, spec, qw
    raise AssertionError("no kernel of this form")


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("form", "extra"), [(form, extra) for form in FORMS for extra in extras_of(form)])
def test_the_identity_in_every_form_of_kernel(form: str, extra: str) -> None:
    config, spec, qw = drawn(form, extra)
    schedule, kind = FORMS[form], TYPES[config.activation]
    kernel = compile_cpu(linear_kernel(spec, schedule))
    product = product_of(spec, schedule)
    numbers = product.by_name(product.launch_numbers(128, 128, None, multiprocessors=2))
    y = np.full((128, 70), np.nan, kind)
    kernel(x=np.eye(128, dtype=kind), **host_operands(qw, config.activation, schedule=schedule), y=y, **numbers)
    np.testing.assert_array_equal(y.T, qw.dequantize().astype(kind), err_msg=str(config))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("activation", matrix.ACTIVATIONS)
@pytest.mark.parametrize("extra", ["float zeros", "scale2"])
def test_the_identity_by_the_schedule_of_many_rows(extra: str, activation: str) -> None:
    """512 x 512, where scales go on weights from 65 rows on if that is exact."""
    qw = Config("uint4", 64, activation, extra, activation).weights(512, 512, seed=3)
    y = lowlp.linear(np.eye(65, 512, dtype=TYPES[activation]), qw)
    np.testing.assert_array_equal(y.T, qw.dequantize()[:, :65].astype(y.dtype))


@pytest.mark.parametrize(
    ("codec", "activation", "exact"),
    [
        ("uint4 g128 f16 zeros:uint8", "f16", True),
        ("int8 g128 f16 zeros:uint8", "f16", True),
        ("uint8 g128 bf16 zeros:uint8", "bf16", True),
        ("int8 g128 bf16 zeros:uint8", "bf16", False),
        ("uint4 g128 f16 zeros:f16", "f16", False),
        ("int4 g128 f16 scale2", "f16", False),
        ("f6e5m0 g128 f16", "f16", False),
        ("f6e5m0 g128 bf16", "bf16", True),
        ("int4 g128 bf16", "f16", False),
        ("uint8 g16 e4m3", "f16", True),
        ("int6 g16 e4m3", "bf16", True),
        ("int6 g16 e4m3 scale2", "bf16", False),
        ("f8e4m3 g16 e4m3", "f16", False),
    ],
)
def test_scales_go_on_weights_where_that_is_exact(codec: str, activation: str, exact: bool) -> None:
    spec = LinearSpec(512, 512, Codec.parse(codec), activation)
    assert can_scale_weights(spec) == exact
    divisions = [division for rows in CLASSES[1:] for division in candidates(spec, rows)]
    # Else they are scaled in f32 there.
    assert any(division.scales_on == "weights" for division in divisions)


def test_few_rows_of_f32_have_exact_weights() -> None:
    spec = LinearSpec(4096, 4096, Codec.parse("uint4 g128 f16 zeros:uint8"), aligned=True)
    chosen = {out: [schedule_for(replace(spec, out=out), m) for m in (64, 128)] for out in ("f16", "f32")}
    rounds = {out: [bool(one.warpgroups) for one in found] for out, found in chosen.items()}
    assert rounds == {"f16": [True, True], "f32": [False, True]}


# --- tables whose values the activation type does not hold ------------------------------------------------------------

SPREADS = {
    "normal floats": lowlp.nf(4),
    "beyond f16": np.array([-1.1e30, 3e29, 1.7e30, 123.456], np.float32),
    "below f16": np.array([-1.1e-30, 3e-31, 1.7e-30, 0], np.float32),
    "largest of f32": np.array([3.4e38, -3.4e38, 1e38, 0], np.float32),
    "subnormal in f32": np.array([2**-149, -(2**-130), 2**-127 + 2**-149, 0], np.float32),
}


@pytest.mark.parametrize("activation", ["f16", "bf16"])
@pytest.mark.parametrize("table", SPREADS)
def test_tables_are_rounded(table: str, activation: str) -> None:
    rng = np.random.default_rng(1)
    lut = SPREADS[table]
    codes = rng.integers(0, lut.size, (20, 64)).astype(np.uint8)
    scales = np.ones((20, 1), np.float32)
    qw = lowlp.QuantizedTensor(codes, lut=lut, scales=scales)
    bits, unscale = filled(lut, activation)
    entries = bits.view(TYPES[activation])
    assert np.isfinite(entries).all()
    # Half a unit in the last place, of entries that are not small against the largest.
    large = np.abs(lut) >= np.abs(lut).max() * 2.0**-14
    found = entries.astype(np.float64) * unscale
    limit = {"f16": 2.0**-11, "bf16": 2.0**-8}[activation]
    assert (np.abs(found - lut)[large] <= limit * np.abs(lut)[large].astype(np.float64)).all()
    y = lowlp.linear(np.eye(64, dtype=TYPES[activation]), qw, out_dtype="f32")
    np.testing.assert_array_equal(y.T, found.astype(np.float32)[codes])


def test_a_table_of_powers_that_fit_together_is_exact() -> None:
    lut = np.array([0, 2.0**-30, -3 * 2.0**-28, 5 * 2.0**-20], np.float32)
    entries, unscale = filled(lut, "f16")
    assert entries.dtype == np.float16
    np.testing.assert_array_equal(entries.astype(np.float64) * unscale, lut)


def test_the_tables_of_a_tensor_have_one_factor() -> None:
    lut = np.array([[1e-6, 1], [1e6, -7]], np.float32)
    entries, unscale = filled(lut, "f16")
    np.testing.assert_allclose(entries.astype(np.float64) * unscale, lut, rtol=2e-3, atol=1e6 * 2.0**-39)


# --- padding ----------------------------------------------------------------------------------------------------------


# Groups of a part of a step, of whole steps, and of a unit and a part, each with one kind of weights of three.
PARTS_OF_UNITS = [
    *(Config("int4", group) for group in (1, 24, 48, 100)),
    *(Config("lut3 group", group) for group in (5, 33, 80, 160)),
    *(Config("uint2", group, "bf16") for group in (8, 40, 96)),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("config", PARTS_OF_UNITS, ids=str)
def test_units_with_parts_of_several_groups(config: Config) -> None:
    """Each group is multiplied by its own x alone, in the steps of a unit that it has, or in whole units."""
    assert config.group
    k = 4 * config.group if config.group > 24 else 12 * config.group
    qw = config.weights(20, k, seed=config.group)
    y = lowlp.linear(np.eye(k, dtype=TYPES[config.activation]), qw, out_dtype="f32")
    np.testing.assert_array_equal(y.T, qw.dequantize())


def test_padded_rows_get_one_warning_at_the_users_line_with_their_bytes() -> None:
    def product(k: int, seed: int) -> None:
        qw = Config("int4", 24).weights(32, k, seed)
        lowlp.linear(np.zeros((1, k), np.float16), qw)

    # Rows of 24 become 32: 32 * 32 / 2 bytes instead of 32 * 24 / 2.
    with pytest.warns(
        PaddingWarning, match="rows of 24 weights are padded to 32, .* 512 bytes instead of 384"
    ) as given:
        product(24, 1)
    assert [warning.filename for warning in given] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        product(24, 2)
        # Groups are not padded, and few weights of a long row are.
        product(192, 3)
        lowlp.linear(np.zeros((1, 1032), np.float16), Config("int4", 24).weights(32, 1032))


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, np.float16), (np.inf, ml_dtypes.bfloat16), (-np.inf, np.float16)])
def test_not_a_number_stays_in_its_row(bad: float, kind: Any) -> None:
    activation = "f16" if kind is np.float16 else "bf16"
    configs = [Config("uint4", 33, activation, "integer zeros"), Config("int6", 16, activation)]
    configs += [Config("lut3 channel", None, activation), Config("bipolar2", 8, activation)]
    for config in configs:
        k = (config.group or 24) * 6
        qw = config.weights(40, k, seed=13)
        x = np.random.default_rng(14).standard_normal((18, k)).astype(np.float32).astype(kind)
        clean = lowlp.linear(x, qw)
        assert np.isfinite(clean.astype(np.float32)).all()
        for column in (0, k // 2, k - 1):
            spoilt = x.copy()
            spoilt[5, column] = bad
            y = lowlp.linear(spoilt, qw)
            assert not np.isfinite(y[5].astype(np.float32)).any()
            assert np.delete(y, 5, 0).tobytes() == np.delete(clean, 5, 0).tobytes()
