"""Epilogues and residuals of `lowlp.linear` on the CPU target: against float64, in all kernels, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_matrix import TYPES, Config
from numpy.typing import NDArray

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels import epilogues
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import EPILOGUES, GATED, LinearSpec
from lowlp.kernels.linear.tiles import tiles_of
from lowlp.numeric.host_array import memory_of_rows

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

F64 = NDArray[np.float64]
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def gelu(x: F64) -> F64:
    return x * _erfc(-x / math.sqrt(2)) / 2


def gelu_tanh(x: F64) -> F64:
    z = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x / (1 + np.exp(-2 * z))


def silu(x: F64) -> F64:
    return x / (1 + np.exp(-x))


def silu_mul(x: F64) -> F64:
    gate, up = np.split(x, 2, axis=-1)
    return silu(gate) * up


def gpt_oss(x: F64) -> F64:
    gate, up = np.split(x, 2, axis=-1)
    # NaN stays NaN.
    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
    return (up + 1) * gate / (1 + np.exp(-1.702 * gate))


FUNCTIONS: dict[str | None, Callable[[F64], F64]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "silu": silu,
    "silu_mul": silu_mul,
    "gpt_oss": gpt_oss,
}
WEIGHTS = [
    Config("int4", 128),
    Config("uint4", 64, extra="integer zeros"),
    Config("lut4 tensor", 128, "bf16"),
    Config("f6e3m2", 64),
    Config("int2", 128),
    Config("bipolar3", 32, "bf16"),
    Config("int5", 64, extra="scale2"),
    Config("lut3 channel", 64),
]
IDS = [str(config) for config in WEIGHTS]


def small_weights(config: Config, n: int, k: int) -> lowlp.QuantizedTensor:
    """Weights with sums near 1, where the functions bend."""
    qw = config.weights(n, k)
    size = float(np.sqrt(np.mean(qw.dequantize().astype(np.float64) ** 2)) * math.sqrt(k)) / 1.5
    parts: dict[str, Any] = {} if qw.lut is None else {"lut": qw.lut}
    if qw.lut is None:
        parts["dtype"] = qw.dtype
    if qw.zeros is not None:
        parts["zeros"] = qw.zeros
    if qw.scale2 is not None:
        parts["scale2"] = qw.scale2
    scales = (qw.scales.astype(np.float64) / size).astype(qw.scales.dtype)
    return lowlp.QuantizedTensor(qw.codes, scales=scales, group_size=config.group, **parts)


def wanted_of(x: Any, qw: lowlp.QuantizedTensor, epilogue: str | None, bias: Any = 0.0, residual: Any = 0.0) -> F64:
    sums = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T + np.asarray(bias, np.float64)
    return FUNCTIONS[epilogue](sums) + np.asarray(residual, np.float64)


def assert_near(y: Any, wanted: F64, activation: str) -> None:
    limit = {"f16": 2e-3, "bf16": 1.1e-2}[activation]
    assert y.shape == wanted.shape
    error = np.linalg.norm(y.astype(np.float64) - wanted) / np.linalg.norm(wanted)
    assert error <= limit


@pytest.mark.sampled(8)
@pytest.mark.parametrize("m", [1, 5, 40, 130])
@pytest.mark.parametrize("epilogue", [None, *EPILOGUES])
def test_all_at_once_against_float64(epilogue: str | None, m: int) -> None:
    config = WEIGHTS[(m + len(epilogue or "")) % 4]
    n, k = 74, 256
    qw = small_weights(config, n, k)
    rng = np.random.default_rng(m)
    x = rng.standard_normal((m, k)).astype(TYPES[config.activation])
    bias = rng.standard_normal(n).astype(np.float32)
    columns = n // 2 if epilogue in GATED else n
    residual = rng.standard_normal((m, columns + 6))[:, 3 : 3 + columns].astype(np.float16)
    y = lowlp.linear(x, qw, bias=bias, epilogue=epilogue, residual=residual, out_dtype="f32")
    assert_near(y, wanted_of(x, qw, epilogue, bias, residual), config.activation)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("epilogue", ["gelu", "silu_mul"])
@pytest.mark.parametrize("config", WEIGHTS, ids=IDS)
def test_kinds_of_weights(config: Config, epilogue: str) -> None:
    n = 130 if epilogue == "silu_mul" else 131
    qw = small_weights(config, n, 256)
    x = np.random.default_rng(1).standard_normal((5, 256)).astype(TYPES[config.activation])
    y = lowlp.linear(x, qw, epilogue=epilogue)
    assert y.dtype == x.dtype
    assert_near(y, wanted_of(x, qw, epilogue), config.activation)


# --- the functions ----------------------------------------------------------------------------------------------------


def of_f32(name: str, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """What a kernel makes of numbers by a function of `epilogues`."""
    layout = lowlp.local(4).spatial(32)

    def body(x, y, n):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        tile = ll.load_global(ll.view_global(x, shape=[n]), offsets=[block * 128], layout=layout)
        result = epilogues.applied(name, (tile,))
        ll.store_global(result, ll.view_global(y, shape=[n]), offsets=[block * 128])

    parameters = {"x": ll.pointer("f32"), "y": ll.pointer("f32"), "n": ll.i32}
    kernel = ll.make_kernel(
        body, name="function", parameters=parameters, grid=lambda n: (ll.ceildiv(n, 128),), num_threads=32
    )
    result = np.empty_like(values)
    kernel(values, result, values.size)
    return result


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu"])
def test_functions_are_accurate_on_both_sides(name: str) -> None:
    """Also where x is far below 0 and the result small, as far as it is a normal number of f32."""
    lowest = {"relu": -100.0, "gelu": -12.9, "gelu_tanh": -9.0, "silu": -88.0}[name]
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.uniform(lowest, 20, 4000), rng.normal(size=4000), np.exp2(rng.uniform(-60, 100, 500))])
    values = values.astype(np.float32)
    with np.errstate(over="ignore"):
        wanted = FUNCTIONS[name](values.astype(np.float64))
    error = np.abs(of_f32(name, values) - wanted)
    bound = np.where((values < -3) & (name == "gelu_tanh"), 1e-5, 1e-6)
    assert np.all(error <= bound * np.abs(wanted))


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu"])
def test_functions_of_what_is_not_finite(name: str) -> None:
    values = np.array([np.nan, np.inf, -np.inf, -1e30, 1e30, 0.0], np.float32)
    nan, inf, minus_inf, low, high, zero = of_f32(name, values)
    assert np.isnan(nan)
    assert inf == np.inf
    assert high == np.float32(1e30)
    assert low == zero == 0.0
    assert minus_inf == 0.0 if name == "relu" else np.isnan(minus_inf)


# --- the kernels ------------------------------------------------------------------------------------------------------

# Of one product; with gate and up a warp has twice the tiles of rows.
SCHEDULES = {
    "plain": Schedule(16, 2),
    "streamed": Schedule(8, 2, stages=3, row_tiles=2),
    "slices": Schedule(16, 1, stages=3, row_tiles=4, slices=2, steps=2),
    "wide": Schedule(32, stages=3, warpgroups=1, row_tiles=1, steps=2, producer=False),
    "two parts": Schedule(32, stages=2, warpgroups=2, row_tiles=2, steps=2, scales_on="weights"),
    "cluster": Schedule(32, stages=2, warpgroups=2, row_tiles=1, steps=2, cluster=2),
}
# Fewer than there are tiles, and no divisor of the stages, so that blocks share some.
BLOCKS = 3


def run(
    schedule: Schedule,
    qw: lowlp.QuantizedTensor,
    x: Any,
    epilogue: str = "",
    bias: Any = None,
    residual: Any = None,
    out: str = "f32",
) -> Any:
    """y of one kernel."""
    names = {TYPES[name]: name for name in TYPES}
    kinds = ["" if part is None else names[part.dtype.type] for part in (bias, residual)]
    spec = spec_for(qw, "f16", out, kinds[0], True, epilogue, kinds[1])
    kernel = compilation.compile_cpu(linear_kernel(spec, schedule))
    y = np.full((x.shape[0], spec.columns_of_y), np.nan, TYPES[out])
    given: dict[str, Any] = {"x": memory_of_rows(x), "bias": bias, "y": y, "m": x.shape[0]}
    given["x_stride"] = x.strides[0] // x.itemsize
    if residual is not None:
        given["residual"] = memory_of_rows(residual)
        given["residual_stride"] = residual.strides[0] // residual.itemsize
    if schedule.stages:
        given["blocks"] = tiles_of(spec, schedule, x.shape[0]) if schedule.cluster > 1 else BLOCKS
    operands = host_operands(qw, "f16", epilogue, schedule)
    kernel(**operands, **{name: part for name, part in given.items() if part is not None})
    return y


def doubled(schedule: Schedule) -> Schedule:
    """The schedule of gate and up, of which each is divided as by this one."""
    return Schedule(**{**vars(schedule), "row_tiles": 2 * schedule.row_tiles})


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "epilogue"), list(zip(SCHEDULES, ["relu", "gelu", "silu", "gelu_tanh", "gelu", "silu"], strict=True))
)
def test_an_epilogue_is_a_function_of_the_sums(name: str, epilogue: str) -> None:
    qw = small_weights(Config("int4", 128), 203, 512)
    rng = np.random.default_rng(6)
    x, bias = rng.standard_normal((37, 512)).astype(np.float16), rng.standard_normal(203).astype(np.float16)
    residual = rng.standard_normal((37, 208)).astype(np.float32)[:, :203]
    sums = run(SCHEDULES[name], qw, x, bias=bias)
    wanted = FUNCTIONS[epilogue](sums.astype(np.float64)) + residual
    found = run(SCHEDULES[name], qw, x, epilogue, bias, residual)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "half"), [*((name, 101) for name in SCHEDULES), ("wide", 192)])
def test_gate_and_up_are_the_products_of_their_rows(name: str, half: int) -> None:
    config = Config("int2", 128) if name == "plain" else Config("int6", 128)
    qw = small_weights(config, 2 * half, 512)
    rng = np.random.default_rng(7)
    x, bias = rng.standard_normal((37, 512)).astype(np.float16), rng.standard_normal(2 * half).astype(np.float32)
    residual = rng.standard_normal((37, 200)).astype(np.float16)[:, :half]
    parts = []
    for rows in (slice(0, half), slice(half, None)):
        part = lowlp.QuantizedTensor(qw.codes[rows], dtype=qw.dtype, scales=qw.scales[rows], group_size=128)
        parts.append(run(SCHEDULES[name], part, x, bias=bias[rows]).astype(np.float64))
    found = run(doubled(SCHEDULES[name]), qw, x, "silu_mul", bias, residual)
    np.testing.assert_allclose(found, silu(parts[0]) * parts[1] + residual, rtol=1e-6, atol=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("config", "epilogue"), list(zip(itertools.cycle(WEIGHTS[:2]), EPILOGUES, strict=False)), ids=str
)
def test_a_row_alone_and_in_a_batch_has_the_same_bits(config: Config, epilogue: str) -> None:
    qw = small_weights(config, 200, 512)
    rng = np.random.default_rng(8)
    x, bias = rng.standard_normal((16, 512)).astype(np.float16), rng.standard_normal(200).astype(np.float16)
    residual = rng.standard_normal((16, 200)).astype(np.float16)[:, : 100 if epilogue in GATED else 200]
    whole = lowlp.linear(x, qw, bias=bias, epilogue=epilogue, residual=residual)
    for rows in (slice(0, 1), slice(9, 10), slice(3, 12)):
        part = lowlp.linear(x[rows], qw, bias=bias, epilogue=epilogue, residual=residual[rows])
        np.testing.assert_array_equal(part, whole[rows])
    invariant = lowlp.linear(x, qw, bias=bias, epilogue=epilogue, residual=residual, batch_invariant=True)
    more = lowlp.linear(
        np.repeat(x, 3, axis=0),
        qw,
        bias=bias,
        epilogue=epilogue,
        residual=np.repeat(residual, 3, axis=0),
        batch_invariant=True,
    )
    np.testing.assert_array_equal(more[::3], invariant)


@pytest.mark.parametrize("m", [3, 40])
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_a_row_that_is_not_finite_stays_so_and_spoils_no_other(epilogue: str, m: int) -> None:
    qw = small_weights(WEIGHTS[0], 64, 256)
    x = np.random.default_rng(9).standard_normal((m, 256)).astype(np.float16)
    clean = lowlp.linear(x, qw, epilogue=epilogue)
    x[1, 7] = np.nan
    y = lowlp.linear(x, qw, epilogue=epilogue)
    assert np.all(np.isnan(y[1]))
    np.testing.assert_array_equal(np.delete(y, 1, axis=0), np.delete(clean, 1, axis=0))


def test_residuals_of_any_stride_and_type() -> None:
    qw = small_weights(WEIGHTS[0], 40, 128)
    rng = np.random.default_rng(10)
    x = rng.standard_normal((2, 3, 128)).astype(np.float16)
    for kind in TYPES.values():
        wide = rng.standard_normal((2, 3, 100)).astype(kind)
        base = lowlp.linear(x, qw, epilogue="silu", out_dtype="f32")
        for residual in (wide[..., :40], wide[..., 3:43], wide[..., ::-1][..., :40], wide[..., :80:2]):
            y = lowlp.linear(x, qw, epilogue="silu", residual=residual, out_dtype="f32")
            np.testing.assert_array_equal(y, base + residual.astype(np.float32))
    rows = rng.standard_normal((6, 40)).astype(np.float32)[::-1]
    y = lowlp.linear(x.reshape(6, 128), qw, residual=rows, out_dtype="f32")
    np.testing.assert_array_equal(y, lowlp.linear(x.reshape(6, 128), qw, out_dtype="f32") + rows)
    assert lowlp.linear(x[:, :0], qw, epilogue="silu_mul", residual=wide[:, :0, :20]).shape == (2, 0, 20)


def test_tensors_on_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    qw = small_weights(WEIGHTS[0], 40, 128)
    x, residual = torch.randn(3, 128).to(torch.bfloat16), torch.randn(3, 20).to(torch.bfloat16)
    y = lowlp.linear(x, qw, epilogue="silu_mul", residual=residual)
    gate, up = (x.double() @ torch.from_numpy(qw.dequantize()).double().T).chunk(2, dim=-1)
    wanted = torch.nn.functional.silu(gate) * up + residual.double()
    assert (y.dtype, y.shape) == (torch.bfloat16, (3, 20))
    assert torch.linalg.norm(y.double() - wanted) <= 1.1e-2 * torch.linalg.norm(wanted)


def test_gates_beyond_the_limits_of_gpt_oss() -> None:
    values = np.array([-np.inf, -90, -7.5, -7, -1, 0, 3, 6.9, 7, 50, np.inf], np.float32)
    sums = np.stack([part.ravel() for part in np.meshgrid(values[1:], values)]).reshape(1, -1)
    codes = np.zeros((sums.size, 64), np.uint8)
    qw = lowlp.QuantizedTensor(codes, dtype="uint4", scales=np.ones((sums.size, 1), np.float16), group_size=64)
    y = lowlp.linear(np.zeros((1, 64), np.float16), qw, bias=sums[0], epilogue="gpt_oss", out_dtype="f32")
    np.testing.assert_allclose(y, gpt_oss(sums.astype(np.float64)), rtol=1e-5, atol=1e-37)


def test_functions_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    values = torch.linspace(-8, 8, 999, dtype=torch.float64)
    theirs = torch.nn.functional
    for name, wanted in (
        ("relu", theirs.relu(values)),
        ("gelu", theirs.gelu(values)),
        ("gelu_tanh", theirs.gelu(values, approximate="tanh")),
        ("silu", theirs.silu(values)),
    ):
        np.testing.assert_allclose(FUNCTIONS[name](values.numpy()), wanted.numpy(), rtol=1e-9, atol=1e-14)


# --- what is refused, and kernels ahead of time -----------------------------------------------------------------------

NAMES = "relu, gelu, gelu_tanh, silu, silu_mul, gpt_oss"


def test_bad_arguments() -> None:
    qw = small_weights(WEIGHTS[0], 25, 128)
    x = np.zeros((2, 128), np.float16)
    for epilogue, kind, message in (
        ("swish", LowlpValueError, f"epilogue: must be None or one of {NAMES}, got 'swish'"),
        ("", LowlpValueError, f"epilogue: must be None or one of {NAMES}, got ''"),
        (3, LowlpTypeError, "epilogue: expected None or a str, got 3"),
        ("silu_mul", LowlpValueError, "epilogue: silu_mul needs an even N, rows of gate and up, got weights of N = 25"),
        ("gpt_oss", LowlpValueError, "epilogue: gpt_oss needs an even N, rows of gate and up, got weights of N = 25"),
    ):
        with pytest.raises(kind, match=message):
            lowlp.linear(x, qw, epilogue=epilogue)  # type: ignore[arg-type]
    for residual, kind, message in (
        (np.zeros((2, 24), np.float16), LowlpValueError, r"residual: must have the shape .*, \(2, 25\), got \(2, 24\)"),
        (np.zeros(25, np.float16), LowlpValueError, r"residual: must have the shape .*, \(2, 25\), got \(25,\)"),
        (np.zeros((2, 25)), LowlpTypeError, "residual: expected a numpy array of float16, .*, got float64"),
        ([0.0], LowlpTypeError, "residual: expected a numpy array of float16, bfloat16 or float32, got list"),
    ):
        with pytest.raises(kind, match=message):
            lowlp.linear(x, qw, residual=residual)


def test_bad_arguments_of_compile_linear() -> None:
    base: dict[str, Any] = {"n": 63, "k": 128, "weight": "int4"}
    for changes, kind, message in (
        ({"epilogue": "tanh"}, LowlpValueError, f"epilogue: must be None or one of {NAMES}, got 'tanh'"),
        ({"epilogue": True}, LowlpTypeError, "epilogue: expected None or a str, got True"),
        ({"epilogue": "silu_mul"}, LowlpValueError, "epilogue: silu_mul needs an even n, .*, got n = 63"),
        ({"residual": "int8"}, LowlpValueError, "residual: must be one of f16, bf16, f32, got 'int8'"),
        ({"residual": True}, LowlpTypeError, "residual: expected a name such as 'int6' or a DType, got bool"),
    ):
        with pytest.raises(kind, match=message):
            lowlp.compile_linear(**{**base, **changes})
    with pytest.raises(LowlpValueError, match=r"epilogue: must be one of '', relu, .*, got 'None'"):
        LinearSpec(8, 8, "int4 g8 f16", epilogue="None")


@pytest.mark.parametrize("m", [(1, 16), (128, 128)])
def test_a_compiled_kernel_is_saved_and_loaded(tmp_path: Path, m: tuple[int, int]) -> None:
    kernel = lowlp.compile_linear(n=512, k=512, m=m, weight="int4", epilogue="silu_mul", residual="bf16", bias="f16")
    kernel.save(tmp_path / "mlp.lowlp")
    again = lowlp.load(tmp_path / "mlp.lowlp")
    assert (again, again.cubin) == (kernel, kernel.cubin)
    names = [parameter.name for parameter in again.description.parameters]
    expected = ["x", "weights", "scales", "bias", "residual", "y", "m", "x_stride", "residual_stride", "blocks"]
    assert names == expected
    writable = [parameter.name for parameter in again.description.parameters if parameter.writable]
    assert writable == ["y"]
    notes = again.description.notes
    assert (notes["linear"]["epilogue"], notes["linear"]["residual"]) == ("silu_mul", "bf16")
    assert notes["floor"]["bytes per row of x"] == 2 * 512 + (2 + 2) * 256
    assert again.spilled_bytes == 0 or m[1] > 16
