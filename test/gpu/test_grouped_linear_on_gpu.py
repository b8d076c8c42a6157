"""`lowlp.grouped_linear` on the GPU: against float64, in graphs whose offsets change, with empty experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpError

torch = pytest.importorskip("torch")

FORMS: dict[str, tuple[int, int, int, Any, dict[str, Any]]] = {
    "int4": (8, 256, 512, "int4", {"group_size": 128}),
    "mxfp4": (128, 192, 256, "mxfp4", {}),
    "zero points": (300, 64, 192, "uint3", {"group_size": 64, "zero_point": True}),
    "narrow": (5, 50, 80, "int6", {"group_size": 16}),
    "table": (512, 32, 128, None, {"lut": lowlp.nf(4), "group_size": 64}),
}


def weights(name: str) -> tuple[lowlp.QuantizedTensor, Any]:
    """Random weights, and what they mean, in float64 on the GPU."""
    experts, n, k, dtype, more = FORMS[name]
    w = np.random.default_rng(experts).normal(size=(experts, n, k)).astype(np.float32) / np.sqrt(k)
    qw = lowlp.quantize(w, lut=more["lut"], group_size=64) if dtype is None else lowlp.quantize(w, dtype, **more)
    return qw, torch.from_numpy(qw.dequantize()).cuda().double()


def divided(experts: int, m: int, how: str) -> Any:
    """Offsets of m rows: at random, all with one expert, or with few of many."""
    rng = np.random.default_rng(m)
    chosen = {
        "random": rng.integers(0, experts, m),
        "one": np.full(m, experts * 2 // 3),
        "few": rng.choice([0, experts // 2, experts - 1], m),
    }[how]
    rows = np.bincount(chosen, minlength=experts)
    return torch.from_numpy(np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)).cuda()


def wanted(x: Any, w: Any, offsets: Any) -> Any:
    expert = torch.searchsorted(offsets[1:].long(), torch.arange(len(x), device="cuda"), right=True)
    return torch.cat([row[None].double() @ w[e].T for row, e in zip(x, expert.tolist(), strict=True)])


@pytest.mark.parametrize(("name", "kind"), [*((name, torch.float16) for name in FORMS), ("int4", torch.bfloat16)])
def test_rows_meet_their_experts(name: str, kind: Any) -> None:
    qw, w = weights(name)
    qw = qw.pack_for("bf16" if kind == torch.bfloat16 else "f16")
    limit = 1.1e-2 if kind == torch.bfloat16 else 2e-3
    for m in (1, 64, 40 * min(qw.shape[0], 8), 3 * qw.shape[0]):
        x = torch.randn(m, qw.shape[2], device="cuda").to(kind)
        for how in ("random", "one", "few"):
            offsets = divided(qw.shape[0], m, how)
            want = wanted(x, w, offsets)
            first = lowlp.grouped_linear(x, qw, offsets)
            assert (first.double() - want).norm() < limit * want.norm(), (m, how)
            for _ in range(5):
                assert torch.equal(lowlp.grouped_linear(x, qw, offsets), first)


@pytest.mark.parametrize("m", [16, 800])
def test_graphs_take_other_offsets(m: int) -> None:
    qw, _ = weights("int4")
    x, bias = torch.randn(m, 512, device="cuda").half(), torch.randn(8, 256, device="cuda").half()
    offsets = divided(8, m, "random")
    arguments: dict[str, Any] = {"bias": bias, "epilogue": "silu_mul", "out_dtype": "f32"}
    lowlp.grouped_linear(x, qw, offsets, **arguments)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = lowlp.grouped_linear(x, qw, offsets, **arguments)
    for how in ("one", "few", "random"):
        offsets.copy_(divided(8, m, how))
        x.copy_(torch.randn_like(x))
        graph.replay()
        assert torch.equal(y, lowlp.grouped_linear(x, qw, offsets, **arguments)), how


QUANTISED = [("int8", "int4"), ("f8e4m3", "f4e2m1")]


def quantised(activation: str, dtype: str, experts: int, m: int) -> tuple[Any, Any, Any]:
    """Rows of x in bytes, weights for them, and what these mean."""
    w = np.random.default_rng(experts).normal(size=(experts, 64, 256)).astype(np.float32) / 16
    qw = lowlp.quantize(w, dtype, group_size=128, activation="s8" if activation == "int8" else "e4m3")
    x = lowlp.quantize_activations(torch.randn(m, 256, device="cuda"), activation)
    return x, qw, torch.from_numpy(qw.dequantize()).cuda().double()


@pytest.mark.parametrize(("activation", "dtype"), QUANTISED)
@pytest.mark.parametrize(("experts", "m"), [(1, 40), (8, 9), (8, 900), (512, 600)])
def test_quantised_rows(activation: str, dtype: str, experts: int, m: int) -> None:
    x, qw, w = quantised(activation, dtype, experts, m)
    for how in ("random", "one", "few"):
        offsets = divided(experts, m, how)
        want = wanted(x.dequantize(), w, offsets)
        first = lowlp.grouped_linear(x, qw, offsets)
        assert (first.double() - want).norm() < 2e-3 * want.norm(), how
        for _ in range(5):
            assert torch.equal(lowlp.grouped_linear(x, qw, offsets), first)


@pytest.mark.parametrize(("activation", "dtype"), QUANTISED)
def test_graphs_of_quantised_rows_take_other_offsets(activation: str, dtype: str) -> None:
    x, qw, _ = quantised(activation, dtype, 8, 33)
    offsets = divided(8, 33, "random")
    lowlp.grouped_linear(x, qw, offsets)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = lowlp.grouped_linear(x, qw, offsets)
    for how in ("one", "few", "random"):
        offsets.copy_(divided(8, 33, how))
        graph.replay()
        assert torch.equal(y, lowlp.grouped_linear(x, qw, offsets)), how


def test_a_row_is_the_same_wherever_it_goes() -> None:
    qw, _ = weights("mxfp4")
    x = torch.randn(900, 256, device="cuda").half()
    alone = lowlp.grouped_linear(x[:1], qw, divided(128, 1, "one"))
    for m in (2, 16, 100, 900):
        y = lowlp.grouped_linear(x[:m], qw, divided(128, m, "one"))
        assert torch.equal(y[:1], alone), m


def test_mistakes_are_named() -> None:
    qw, _ = weights("int4")
    x, offsets = torch.zeros(4, 512, device="cuda").half(), divided(8, 4, "one")
    for given, starts, more, message in (
        (x, offsets.cpu(), {}, "^offsets: expected a tensor on cuda:0"),
        (x, offsets.long(), {}, "^offsets: expected int32, got torch.int64"),
        (x, offsets[1:].clone(), {}, r"^offsets: must have shape \[9\], got \[8\]"),
        (x[:, 1:], offsets, {}, r"^x: must have shape \[M, K = 512\], got \[4, 511\]"),
        (x.float(), offsets, {}, "^x: expected float16 or bfloat16, got torch.float32"),
        (x, offsets, {"bias": torch.zeros(256, device="cuda")}, r"^bias: must have shape \[8, 256\], got \[256\]"),
    ):
        with pytest.raises(LowlpError, match=message):
            lowlp.grouped_linear(given, qw, starts, **more)
