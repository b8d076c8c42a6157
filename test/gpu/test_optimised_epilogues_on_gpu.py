"""Bias, epilogue and residual in kernels of `linear` with stages, against float64."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from linear_forms import FORMS, Product, form_of, forms_of, what_differs  # noqa: E402
from linear_launches import ARCH, TYPES, multiply, random_x, relative_error  # noqa: E402
from linear_matrix import ERROR_LIMITS  # noqa: E402
from test_linear_epilogues import wanted_of  # noqa: E402

from lowlp.kernels.linear.spec import EPILOGUES  # noqa: E402
from lowlp.ops import linear_launch  # noqa: E402
from lowlp.ops.linear_kernels import gpu_kernel  # noqa: E402
from lowlp.ops.linear_launch import columns_of_y  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_ahead")

N, K = 1008, 1152
ROWS = (1, 16, 64, 700)
ENDINGS = (
    *({"epilogue": epilogue} for epilogue in EPILOGUES),
    {"bias": "f16"},
    {"residual": "f16"},
    {"out": "f32"},
    {"bias": "f32", "epilogue": "gelu", "residual": "f32"},
    {"bias": "bf16", "epilogue": "silu_mul", "residual": "f16", "out": "f32"},
)
# Each ending with every other of these, and with all of the others.
KINDS = ("int4", "int2", "uint4z", "nf4")
BF16_KINDS = ("int8", "f6e3m2")
CHOSEN = [
    Product(kind, N, K, rows=ROWS, activation=activation, **ending)
    for number, ending in enumerate(ENDINGS)
    for kind, activation in [
        *((kind, "f16") for kind in KINDS[number % 2 :: 2]),
        *((kind, "bf16") for kind in BF16_KINDS),
    ]
]
BY_FORM = [
    Product(kind, N, K, form=form, rows=ROWS, bias="f32", epilogue=epilogue, residual="f16")
    for form in forms_of(ARCH)
    for kind, epilogue in (("int1", "relu"), ("int6", "silu"), ("f4e2m1", "gelu_tanh"))
]


def normal(seed: int, kind: str, *extents: int) -> torch.Tensor:
    """Normal numbers on the GPU, the same for every call."""
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(*extents, device="cuda", generator=generator).to(TYPES[kind])


def on_host(tensor: torch.Tensor) -> object:
    """In float64."""
    return tensor.double().cpu().numpy()


@pytest.mark.parametrize("product", CHOSEN + BY_FORM, ids=str)
def test_endings(product: Product) -> None:
    qw, columns = product.weights, columns_of_y(product.weights, product.epilogue)
    for m in product.rows:
        schedule = product.schedule(m, ARCH)
        assert not what_differs(gpu_kernel(*product.kernel(m, ARCH)).binary, ARCH, schedule), f"M = {m}: {schedule}"
        assert not product.form or form_of(schedule) == product.form
        x = random_x(product.k, max(ROWS), product.activation)[:m]
        bias = normal(1, product.bias, product.n) if product.bias else None
        residual = normal(2, product.residual, m, columns) if product.residual else None
        added = [part for part in (bias, residual) if part is not None]
        y = multiply(product, x, *added)
        parts = [0.0 if part is None else on_host(part) for part in (bias, residual)]
        wanted = torch.from_numpy(wanted_of(on_host(x), qw, product.epilogue or None, *parts)).cuda()
        error = relative_error(y, wanted)
        assert error <= ERROR_LIMITS[product.activation], f"M = {m}: error {error:.1e} by {schedule}"
        if not product.form:
            options = {"bias": bias, "residual": residual, "out_dtype": product.out or None}
            again = lowlp.linear(x, qw, epilogue=product.epilogue or None, **options)
            assert torch.equal(again, y), f"M = {m}"


def test_forms_that_occur() -> None:
    """Of those chosen too: every M has stages, and there are blocks with tiles of their own, shared tiles and more."""
    assert {form_of(product.schedule(m, ARCH)) for product in BY_FORM for m in ROWS} == set(forms_of(ARCH))
    if ARCH == "sm_90a":
        chosen = {form_of(product.schedule(m, ARCH)) for product in CHOSEN for m in ROWS}
        assert chosen >= {form for form in FORMS if "a tile each" in form}
        assert "plain" not in chosen


def test_gate_and_up_apart() -> None:
    """By two launches, as chosen for many rows of two bits: against float64, at first, later and in a graph."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (16384, 4096), np.uint8)
    scales = rng.uniform(0.01, 0.02, (16384, 32)).astype(np.float16)
    qw = lowlp.QuantizedTensor(codes, dtype="int2", scales=scales, group_size=128, activation="bf16")
    x, bias = normal(3, "bf16", 1024, 4096), normal(4, "f32", 16384)

    def call() -> torch.Tensor:
        return lowlp.linear(x, qw, bias=bias, epilogue="silu_mul")

    results = [call(), call()]
    assert next(kept.gating for key, kept in linear_launch._calls.items() if key[0] == id(qw)) is not None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results.append(call())
    graph.replay()
    both = x.double() @ torch.from_numpy(qw.dequantize()).cuda().double().T + bias.double()
    wanted = torch.nn.functional.silu(both[:, :8192]) * both[:, 8192:]
    assert relative_error(results[0], wanted) <= ERROR_LIMITS["bf16"]
    assert all(torch.equal(results[0], later) for later in results[1:])
