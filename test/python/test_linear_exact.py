"""`lowlp.linear` of x = I is `dequantize()` rounded once, for every codec; and its other numbers, on the CPU target."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import linear_matrix as matrix
import ml_dtypes
import numpy as np
import pytest
from linear_matrix import COVERING, EXTRAS, PRODUCTS, ROWS, TYPES, Config, relative_error

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import PaddingWarning
from lowlp.kernels.linear.operands import host_operands, spec_for, table_entries
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import COLUMNS, WARPS, Schedule

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")


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


@pytest.mark.parametrize(("config", "n", "k"), PRODUCTS, ids=lambda value: str(value))
def test_random_products(config: Config, n: int, k: int) -> None:
    qw = config.weights(n, k, seed=n)
    rng = np.random.default_rng(k)
    kind = TYPES[config.activation]
    every = rng.standard_normal((max(ROWS), k)).astype(np.float32).astype(kind)
    whole = lowlp.linear(every, qw)
    for m in ROWS:
        y = lowlp.linear(every[:m], qw)
        assert (y.shape, y.dtype) == ((m, n), kind)
        # A row does not depend on how many there are.
        assert y.tobytes() == whole[:m].tobytes()
    assert relative_error(whole, every, qw) <= matrix.ERROR_LIMITS[config.activation]


def test_no_result_depends_on_the_schedule() -> None:
    qw = Config("uint4", 48, "f16", "integer zeros").weights(130, 144)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((37, 144)).astype(np.float16)
    spec = spec_for(qw, "f16", "f32")
    results = []
    for columns, warps in itertools.product(COLUMNS, WARPS):
        y = np.full((37, 130), np.nan, np.float32)
        compile_cpu(linear_kernel(spec, Schedule(columns, warps)))(x, *host_operands(qw, "f16"), y, 37, 144)
        results.append(y.tobytes())
    assert len(set(results)) == 1
    assert relative_error(np.frombuffer(results[0], np.float32).reshape(37, 130), x, qw) <= 1e-5


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
    entries, unscale = table_entries(lut, activation)
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
    entries, unscale = table_entries(lut, "f16")
    assert entries.dtype == np.float16
    np.testing.assert_array_equal(entries.astype(np.float64) * unscale, lut)


def test_the_tables_of_a_tensor_have_one_factor() -> None:
    lut = np.array([[1e-6, 1], [1e6, -7]], np.float32)
    entries, unscale = table_entries(lut, "f16")
    np.testing.assert_allclose(entries.astype(np.float64) * unscale, lut, rtol=2e-3, atol=1e6 * 2.0**-39)


# --- padding ----------------------------------------------------------------------------------------------------------


def test_padded_groups_get_one_warning_with_their_bytes() -> None:
    def product(seed: int) -> None:
        qw = Config("int4", 24).weights(32, 192, seed)
        lowlp.linear(np.zeros((1, 192), np.float16), qw)

    # 8 groups of 24 become 8 of 32: 32 * 256 / 2 bytes instead of 32 * 192 / 2.
    with pytest.warns(
        PaddingWarning, match="groups of 24 in rows of 192 .* 4096 bytes instead of 3072; slower but exact"
    ):
        product(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        product(2)
        lowlp.linear(np.zeros((1, 192), np.float16), Config("int4", 64).weights(32, 192))


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
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
