"""Kernels that quantise activations, on the CPU target, against numpy bit for bit; and the fused forms."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.activations.kinds import activation_kind
from lowlp.activations.quantize import Rule, quantized_rows
from lowlp.kernels.activations.kernel import rows_kernel
from lowlp.kernels.activations.planes import planes_kernel
from lowlp.kernels.activations.spec import Norm, RowsSpec, division_of
from lowlp.ops import activation_calls
from lowlp.ops.activation_launch import Work, launches_of, matrix_of, planes_of_codes, results_of
from lowlp.ops.activations import activations_of
from lowlp_runtime.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError
from lowlp_runtime.grid import evaluate_grid

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


def rows(m: int, k: int, source: str, seed: int = 0, spread: float = 3) -> np.ndarray:
    """Every third row is longer than the others in memory."""
    x = np.random.default_rng(seed).standard_normal((m, k + 16), np.float32) * spread + 0.25
    return x.astype(TYPES[source])[:, :k]


def same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and np.ascontiguousarray(a).tobytes() == b.tobytes()


# Types, lengths with and without wide loads and in parts, and each way of scaling, each at least once.
CASES: list[dict[str, Any]] = [
    {"k": 256, "dtype": "int8", "m": 9},
    {"k": 1000, "dtype": "int4", "source": "bf16", "planes": True},
    {"k": 37, "dtype": "uint3", "symmetric": False, "planes": True},
    {"k": 1288, "dtype": "int8", "source": "f32", "symmetric": False, "clip": 0.9},
    {"k": 1056, "dtype": "bipolar3", "source": "f32", "planes": True},
    {"k": 520, "dtype": "ternary", "scale": "given"},
    {"k": 520, "dtype": "uint4", "smooth": True},
    {"k": 264, "dtype": "f8e4m3"},
    {"k": 33000, "dtype": "f8e5m2", "source": "bf16", "m": 2},
    {"k": 33001, "dtype": "uint5", "symmetric": False, "planes": True, "m": 3},
    {"k": 96, "dtype": "int6", "scale": "tensor", "source": "bf16"},
    {"k": 96, "dtype": "uint8", "scale": "tensor", "symmetric": False},
    {"k": 33000, "dtype": "uint4", "scale": "tensor", "symmetric": False, "m": 3},
    {"k": 768, "dtype": "int4", "group": 128, "smooth": True, "planes": True},
    {"k": 1536, "dtype": "int4", "source": "bf16", "hadamard": 512, "planes": True},
    {"k": 4096, "dtype": "int3", "hadamard": 4096, "m": 2},
    {"k": 144, "dtype": "int2", "source": "f32", "hadamard": 48, "smooth": True},
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['dtype']}-{case['k']}")
def test_kernels_are_numpy_bit_for_bit(case: dict[str, Any]) -> None:
    m, k, group = case.get("m", 5), case["k"], case.get("group")
    x = rows(m, k, case.get("source", "f16"))
    x[0] = 0
    if m > 2:
        x[2, k // 2] = np.nan
    kind, scale = activation_kind(case["dtype"]), case.get("scale", "token")
    rule = Rule(kind, scale, case.get("symmetric", True), case.get("clip", 1.0), case.get("hadamard", 0), group)
    smooth = np.linspace(0.5, 2, k, dtype=np.float32) if "smooth" in case else None
    given = np.full((m, 1), 0.02, np.float32) if scale == "given" else None
    codes, scales, zeros = quantized_rows(x, rule, smooth, given)
    inverse = None if smooth is None else np.float32(1) / smooth
    planes = case.get("planes", False)
    work = Work(k, rule, inverse, hadamard=rule.hadamard, group_size=group, given=given, planes=planes)
    made = results_of(matrix_of(x), work)
    assert np.array_equal(made["scales"], scales, equal_nan=True)
    assert same(made["codes"], codes)
    if rule.has_zeros:
        assert same(made["zeros"], zeros)
    if not kind.is_float:
        xq = lowlp.QuantizedActivations(codes, dtype=case["dtype"], scales=scales, zeros=zeros, group_size=group)
        assert np.array_equal(made["sums"].reshape(xq.sums.shape), xq.sums)
        if planes:
            assert same(made["planes"], xq.planes)


@pytest.mark.parametrize("dtype", ["f8e4m3", "f8e5m2"])
def test_floats_of_8_bits_are_rounded_at_every_midpoint(dtype: str) -> None:
    kind = activation_kind(dtype)
    values = kind.dtype.decode(np.arange(256, dtype=np.uint8))
    values = np.unique(values[np.isfinite(values)])
    middle = (values[1:] + values[:-1]) / 2
    beside = [np.nextafter(middle, np.float32(side)) for side in (np.inf, -np.inf)]
    x = np.concatenate([values, middle, *beside, np.array([1e30, -1e30, 1e-30, -0.0, 3e-39], np.float32)])[None]
    rule, given = Rule(kind, "given", True, 1.0, 0, None), np.ones((1, 1), np.float32)
    made = results_of(matrix_of(x), Work(x.shape[1], rule, given=given))
    assert same(made["codes"], quantized_rows(x, rule, None, given)[0])


def test_planes_of_codes_in_memory() -> None:
    codes = np.random.default_rng(1).integers(-8, 8, (3, 4130)).astype(np.int8)
    xq = lowlp.QuantizedActivations(codes, dtype="int4", scales=1.0)
    assert same(planes_of_codes(xq), xq.planes)


def test_a_grid_has_room_for_many_rows() -> None:
    kind = activation_kind("int8")
    rule = Rule(kind, "token", True, 1.0, 0, None)
    many = 100_000
    for kernel, counts in [
        (rows_kernel(RowsSpec("f16", 2048, rule)), {"rows": many, "outer": 1}),
        (rows_kernel(RowsSpec("f16", 64, rule, grouped=True)), {"rows": 32, "outer": many}),
        (planes_kernel(kind, 64, aligned=True), {"rows": many, "outer": 1}),
    ]:
        grid = lowlp.compile(kernel, "sm_90a", assemble=False).description.grid
        x, y, z = evaluate_grid(grid, counts)
        assert x * y * z >= many // 64


def test_rows_are_divided_for_whole_vectors_and_a_power_of_two_of_threads() -> None:
    rule = Rule(activation_kind("int8"), "token", True, 1.0, 0, None)
    for source, whole in (("f16", 8), ("f32", 4)):
        for k in (8, 128, 1024, 5120, 8192, 14336, 16384):
            plain = division_of(RowsSpec(source, k, rule, planes=True))
            fused = division_of(RowsSpec(source, k, rule, hadamard=8, planes=True))
            assert plain and fused
            for division in (plain, fused):
                assert division.padded >= k and division.vector == whole and division.num_threads % 32 == 0
                assert division.num_threads <= 1024 and division.chunks * division.vector % 32 == 0
            assert fused.threads & (fused.threads - 1) == 0


def rms_norm(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """In float32, with sums of squares in the order of a kernel: of a thread, of lanes, of warps."""
    wide = x.astype(np.float32)
    spec = RowsSpec("f32" if x.itemsize == 4 else "f16", x.shape[1], None)
    division = division_of(spec)
    assert division is not None
    padded = np.zeros((len(x), division.padded), np.float32)
    padded[:, : x.shape[1]] = wide * wide
    of_threads = np.moveaxis(padded.reshape(len(x), division.chunks, division.threads, division.vector), 2, 1)
    sums = np.zeros((len(x), division.threads), np.float32)
    for number in range(division.chunks * division.vector):
        sums = sums + of_threads.reshape(len(x), division.threads, -1)[:, :, number]
    lanes = sums.reshape(len(x), -1, min(32, division.threads))
    while lanes.shape[2] > 1:
        lanes = lanes[:, :, 0::2] + lanes[:, :, 1::2]
    total = lanes[:, 0]
    for warp in range(1, lanes.shape[1]):
        total = total + lanes[:, warp]
    mean = total / np.float32(x.shape[1])
    scaled = wide * (np.float32(1) / np.sqrt(mean + np.float32(eps)))
    normed: np.ndarray = (scaled * weight.astype(np.float32)).astype(x.dtype)
    return normed


@pytest.mark.parametrize(
    ("k", "source", "weight", "dtype"),
    [(768, "bf16", "bf16", "int8"), (2056, "f16", "f32", "f8e4m3"), (99, "f32", "f32", "int4")],
)
def test_rms_norm_quant_is_the_norm_and_then_quantised(k: int, source: str, weight: str, dtype: str) -> None:
    x, added = rows(4, k, source), rows(4, k, source, seed=1, spread=0.5)
    factors = np.linspace(0.5, 1.5, k).astype(TYPES[weight])
    xq, r = lowlp.rms_norm_quant(x, factors, 1e-5, added, dtype)
    total = (x.astype(np.float32) + added.astype(np.float32)).astype(x.dtype)
    y = rms_norm(total, factors, 1e-5)
    apart = lowlp.quantize_activations(y, dtype)
    assert same(r, total) and same(xq.codes, apart.codes) and same(xq.scales, apart.scales)
    exact = total.astype(np.float64)
    exact = exact / np.sqrt((exact**2).mean(1, keepdims=True) + 1e-5) * factors.astype(np.float64)
    assert np.abs(y.astype(np.float64) - exact).max() < (3e-2 if source == "bf16" else 4e-3)


def test_rms_norm_quant_without_a_residual_takes_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(rows(6, 128, "f32")).reshape(2, 3, 128).to(torch.bfloat16)
    weight = torch.ones(128, dtype=torch.bfloat16)
    xq, r = lowlp.rms_norm_quant(x, weight, 1e-6, scale=0.02, planes=True)
    assert r is None and xq.shape == (2, 3, 128) and xq.codes.dtype == torch.int8 and xq.planes.shape == (2, 3, 8, 4)
    normed = torch.nn.functional.rms_norm(x, (128,), weight, 1e-6)
    apart = lowlp.quantize_activations(normed, scale=0.02)
    assert (xq.codes.int() - apart.codes.int()).abs().max() <= 1 and (xq.scales == apart.scales).all()


@pytest.mark.parametrize(
    ("k", "source", "block"), [(344, "f16", None), (512, "bf16", 128), (144, "f16", 48), (96, "f32", 96)]
)
def test_silu_mul_quant_is_the_product_and_then_quantised(k: int, source: str, block: int | None) -> None:
    both = rows(3, 2 * k, source)
    xq = lowlp.silu_mul_quant(both, "int8", hadamard=block)
    work = Work(k, Rule(xq._kind, "token", True, 1.0, block or 0, None), silu=True, hadamard=block or 0)
    assert len(launches_of(matrix_of(both), work)[1]) == (2 if block in (48, 96) else 1)
    y = results_of(matrix_of(both), Work(k, None, silu=True))["y"]
    apart = lowlp.quantize_activations(y, hadamard=block)
    assert same(xq.codes, apart.codes) and same(xq.scales, apart.scales) and same(xq.sums, apart.sums)
    gate, up = (part.astype(np.float64) for part in (both[:, :k], both[:, k:]))
    exact = gate / (1 + np.exp(-gate)) * up
    error = {"bf16": 6e-3, "f16": 8e-4, "f32": 2e-6}[source]
    assert np.allclose(y.astype(np.float64), exact, rtol=error, atol=1e-6)


def test_later_calls_on_a_gpu_are_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    found: list[Any] = []
    monkeypatch.setattr(
        activation_calls, "bound_launch", lambda launch: SimpleNamespace(run=lambda *a: found.append(a))
    )
    monkeypatch.setattr(activation_calls, "current_torch_stream", lambda ordinal: 7)
    x, weight = torch.ones(3, 64).half(), torch.ones(64).half()
    norm = Norm("f16", 1e-6, residual=True)
    rule = Rule(activation_kind("uint4"), "token", True, 1.0, 0, None)
    work = Work(64, rule, norm=norm, weight=weight, residual=matrix_of(x), planes=True)
    parts, launches = launches_of(matrix_of(x), work)
    made = activations_of(parts, rule.kind, (3, 64), None)
    key = activation_calls.call_key((x, weight, x), "norm", "uint4")
    assert activation_calls.repeated(key, (x, weight, x)) is None
    activation_calls.remember(key, (x, weight, x), launches, made, parts["residual_out"])
    again = activation_calls.repeated(key, (x, weight, x))
    assert again is not None
    xq, r = again
    for name in ("codes", "scales", "zeros", "sums", "planes"):
        assert (
            getattr(xq, name).shape == getattr(made, name).shape
            and getattr(xq, name).dtype == getattr(made, name).dtype
        )
    results = {"codes": xq.codes, "scales": xq.scales, "sums": xq.sums, "zeros": xq.zeros, "planes": xq.planes}
    given = {"x": x, "weight": weight, "residual": x, "residual_out": r, **results}
    assert found[0][0] == [given[name].data_ptr() for name in launches[0].arrays]
    assert activation_calls.call_key((x,), [1]) is None
    other = activation_calls.call_key((x[:, ::2], weight, x), "norm", "uint4")
    assert other != key


def test_gradients_are_refused() -> None:
    torch = pytest.importorskip("torch")
    x = torch.ones(2, 64, requires_grad=True)
    with pytest.raises(LowlpRuntimeError, match=r"x: requires a gradient.*pass x.detach\(\)"):
        lowlp.hadamard(x)
    with torch.no_grad():
        assert lowlp.quantize_activations(x).shape == (2, 64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": -1.0}, "eps: must be finite and at least 0, got -1.0"),
        ({"eps": 10**400}, "eps: must be finite and at least 0, got 1000"),
        ({"eps": 1e39}, r"eps: must be finite and at least 0, got 1e\+39"),
        ({"eps": "a"}, "eps: expected a number, got 'a'"),
        ({"dtype": "uint1"}, "dtype: uint1 has zero points"),
        ({"weight": np.ones(3, np.float16)}, r"weight: must have shape \(64,\), got \(3,\)"),
        ({"weight": np.ones(64)}, "weight: expected float16, bfloat16 or float32, got float64"),
        ({"residual": np.ones((3, 64), np.float16)}, r"residual: must have the shape of x, \(2, 64\), got \(3, 64\)"),
        ({"residual": np.ones((2, 64), np.float32)}, "residual: must be of the type of x, float16, got float32"),
        ({"scale": "tensor"}, "scale: must be 'token' or scales, got 'tensor'"),
        ({"dtype": "f8e4m3", "planes": True}, "planes: must be False for f8e4m3, which has none"),
        ({"planes": 1}, "planes: expected a bool, got 1"),
        ({"stream": 0}, "stream: allowed for CUDA tensors only, and x is on the CPU"),
        ({"x": np.ones((1, 40000), np.float16)}, "x: rows may have up to K = 20480 numbers here, got 40000"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, Any], message: str) -> None:
    given = {"x": np.ones((2, 64), np.float16), "weight": np.ones(64, np.float16), "eps": 1e-6, **arguments}
    with pytest.raises((LowlpTypeError, LowlpValueError), match=message):
        lowlp.rms_norm_quant(**given)


def test_gates_and_ups_are_two_halves() -> None:
    with pytest.raises(LowlpValueError, match="gate_up: must have an even last dimension, gates and ups, got 7"):
        lowlp.silu_mul_quant(np.ones((2, 7), np.float16))
