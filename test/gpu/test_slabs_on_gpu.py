"""Products by slabs of weights on a GPU: results, graphs, gates, and what is not multiplied so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.ops import linear_launch
from lowlp.ops.slab_launch import Slabs

torch: Any = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

N, K, M = 768, 512, 800


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Slabs | None]:
    """What is made for products, by slabs wherever that is possible."""
    found: list[Slabs | None] = []
    slabs = linear_launch._slabs

    def kept(*arguments: Any) -> Slabs | None:
        found.append(slabs(*arguments))
        return found[-1]

    monkeypatch.setattr(linear_launch, "slabs_take_less", lambda spec, schedule, m, device: m >= M)
    monkeypatch.setattr(linear_launch, "_slabs", kept)
    return found


def weights(codec: str, **options: Any) -> lowlp.QuantizedTensor:
    w = np.random.default_rng(0).normal(0, 0.02, (N, K)).astype(np.float32)
    return lowlp.quantize(w, codec, **options)


CASES: dict[str, dict[str, Any]] = {
    "int4": {"group_size": 128},
    "int3": {"group_size": 16, "scale_dtype": "bf16"},
    "uint6": {"group_size": 32, "zero_point": True},
    "f6e3m2": {"group_size": None, "scale_dtype": "f32"},
    "nvfp4": {},
    "mxfp4": {},
    "nf4": {"group_size": 64},
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("codec", CASES)
def test_products_and_rows_of_i(codec: str, dtype: Any, made: list[Slabs | None]) -> None:
    activation = "f16" if dtype == torch.float16 else "bf16"
    qw = weights(codec, **CASES[codec]).pack_for(activation)
    exact = torch.from_numpy(qw.dequantize()).cuda()
    x = torch.randn(M, K, device="cuda").to(dtype)
    for given in (x, torch.randn(M, K + 8, device="cuda").to(dtype)[:, 8:]):
        y, wanted = lowlp.linear(given, qw), given.double() @ exact.double().T
        assert (y.double() - wanted).norm() <= (2e-3 if activation == "f16" else 1.1e-2) * wanted.norm()
        assert torch.equal(y, lowlp.linear(given, qw))
    assert made and all(slabs is not None for slabs in made)
    identity = torch.eye(K, device="cuda", dtype=dtype).repeat(2, 1)
    if codec != "nf4":
        assert torch.equal(lowlp.linear(identity, qw), exact.T.to(dtype).repeat(2, 1))


def test_a_graph_after_a_call(made: list[Slabs | None]) -> None:
    qw, x = weights("int8", group_size=64), torch.randn(M, K, device="cuda", dtype=torch.float16)
    wanted = lowlp.linear(x, qw)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = lowlp.linear(x, qw)
    for _ in range(2):
        y.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, wanted)
    assert all(slabs is not None for slabs in made)


def test_other_weights_have_no_slabs(made: list[Slabs | None]) -> None:
    """A bias, columns in another order, and weights that f16 does not hold; with `batch_invariant` nobody asks."""
    x = torch.randn(M, K, device="cuda", dtype=torch.float16)
    qw = weights("int4", group_size=64)
    lowlp.linear(x, qw, bias=torch.zeros(N, device="cuda"))
    large = lowlp.quantize(np.random.default_rng(0).normal(0, 1e5, (N, K)), "int8", group_size=64, scale_dtype="f32")
    y = lowlp.linear(x * 1e-3, large, out_dtype="f32")
    assert made == [None, None]
    wanted = (x * 1e-3).double() @ torch.from_numpy(large.dequantize()).cuda().double().T
    assert (y.double() - wanted).norm() <= 2e-3 * wanted.norm()
    lowlp.linear(x, qw, batch_invariant=True)
    assert len(made) == 2


def test_results_of_f32_and_several_slabs(made: list[Slabs | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowlp.kernels.linear.slab_estimates.MOST_BYTES", 256 * 2 * K)
    qw, x = weights("int5", group_size=32), torch.randn(2, M, K, device="cuda", dtype=torch.bfloat16)
    y = lowlp.linear(x, qw.pack_for("bf16"), out_dtype="f32")
    wanted = x.double() @ torch.from_numpy(qw.dequantize()).cuda().double().T
    assert y.dtype == torch.float32 and y.shape == (2, M, N)
    assert (y.double() - wanted).norm() <= 4e-3 * wanted.norm()
    assert made[0] is not None and len(made[0].parts) == 3


def test_codebooks(made: list[Slabs | None]) -> None:
    rng = np.random.default_rng(0)
    for bits, books in ((8, 2), (16, 1)):
        codes = rng.integers(0, 1 << bits, (N, K // 8, books)).astype(np.uint8 if bits == 8 else np.uint16)
        entries = rng.normal(0, 0.5, (books, 1 << bits, 8)).astype(np.float16)
        scales = rng.uniform(0.01, 0.02, (N, 1)).astype(np.float16)
        qw = lowlp.QuantizedTensor(codes, codebooks=entries, scales=scales, group_size=None)
        identity = torch.eye(K, device="cuda", dtype=torch.float16).repeat(2, 1)
        y = lowlp.linear(identity, qw)
        assert made[-1] is not None
        assert torch.equal(y, torch.from_numpy(qw.dequantize()).cuda().half().T.repeat(2, 1))
