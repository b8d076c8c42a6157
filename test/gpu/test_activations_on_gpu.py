"""Quantised activations on a GPU: the bits that numpy and the CPU target give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

CASES: list[dict[str, Any]] = [
    *({"dtype": f"int{bits}"} for bits in range(2, 9)),
    *({"dtype": f"uint{bits}", "symmetric": False} for bits in range(1, 9)),
    *({"dtype": f"bipolar{bits}"} for bits in (1, 4, 8)),
    {"dtype": "ternary", "scale": 0.7},
    {"dtype": "f8e4m3"},
    {"dtype": "f8e5m2", "clip": 0.8},
    {"dtype": "int8", "scale": "tensor"},
    {"dtype": "uint8", "scale": "tensor", "symmetric": False},
    {"dtype": "int4", "group_size": 64},
    {"dtype": "int4", "hadamard": 256},
    {"dtype": "int4", "hadamard": 28 * 128, "group_size": 128},
]


def same(found: Any, expected: Any) -> bool:
    return bool(
        found.dtype == expected.dtype
        and found.shape == expected.shape
        and torch.equal(found.cpu().contiguous().view(torch.uint8), expected.contiguous().view(torch.uint8))
    )


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(value) for value in case.values()))
def test_same_bits_as_the_cpu(case: dict[str, Any], kind: str) -> None:
    torch.manual_seed(0)
    k = 28 * 128 * 2
    for columns in {k, k if "group_size" in case or "hadamard" in case else 1001}:
        x = (torch.randn(17, columns) * 3).to(getattr(torch, kind))
        x[1], x[2] = 0, x[2] * 2.0**-14
        x[3, 5] = float("inf")
        x[4, 6] = float("nan")
        expected = lowlp.quantize_activations(x, **case)
        at_once = not case["dtype"].startswith("f8")
        found = lowlp.quantize_activations(x.cuda(), **case, planes=at_once)
        assert same(found.codes, expected.codes) and same(found.scales, expected.scales)
        assert (found.zeros is None) == (expected.zeros is None)
        assert found.zeros is None or same(found.zeros, expected.zeros)
        if at_once:
            assert same(found.sums, expected.sums) and same(found.planes, expected.planes)
            later = lowlp.quantize_activations(x.cuda(), **case)
            assert same(later.planes, expected.planes)


@pytest.mark.parametrize("block", [32, 512, 12 * 64, 16384, 28 * 1024])
def test_hadamard(block: int) -> None:
    x = torch.randn(3, 2 * block).half()
    assert same(lowlp.hadamard(x.cuda(), block), lowlp.hadamard(x, block))


def test_norm_and_gate() -> None:
    x, residual, weight = torch.randn(9, 5120).half(), torch.randn(9, 5120).half(), torch.randn(5120).half()
    expected, r = lowlp.rms_norm_quant(x, weight, 1e-6, residual)
    found, s = lowlp.rms_norm_quant(x.cuda(), weight.cuda(), 1e-6, residual.cuda())
    assert same(s, r) and same(found.codes, expected.codes) and same(found.scales, expected.scales)
    # A fused launch has the bits of one after the other; the exponential is the GPU's own.
    both = torch.randn(9, 2 * 4096).bfloat16().cuda()
    fused = lowlp.silu_mul_quant(both, "int8", hadamard=1024)
    gate, up = both.float().chunk(2, dim=1)
    product = (gate / (1 + torch.exp(-gate)) * up).bfloat16()
    apart = lowlp.quantize_activations(product, "int8", hadamard=1024)
    assert (fused.codes.int() - apart.codes.int()).abs().max() <= 1


def test_rows_with_gaps_and_a_captured_graph() -> None:
    memory = torch.randn(40, 4096 + 64).half().cuda()
    x = memory[::2, 8 : 8 + 4096]
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(lowlp.LowlpError, match="x: a first call of a kind compiles"), torch.cuda.graph(graph):
        lowlp.quantize_activations(x, planes=True)
    expected = lowlp.quantize_activations(x.cpu())
    found = lowlp.quantize_activations(x, planes=True)
    assert same(found.codes, expected.codes)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = lowlp.quantize_activations(x, planes=True)
    memory.mul_(0.5)
    graph.replay()
    torch.cuda.synchronize()
    expected = lowlp.quantize_activations(x.cpu())
    assert same(captured.codes, expected.codes) and same(captured.planes, expected.planes)


def test_on_another_stream() -> None:
    x = torch.randn(64, 2048).half().cuda()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    found = lowlp.quantize_activations(x, stream=stream)
    stream.synchronize()
    assert np.array_equal(found.codes.cpu().numpy(), lowlp.quantize_activations(x.cpu()).codes.numpy())


def test_linear_quantises_on_the_stream_of_the_product() -> None:
    qw = lowlp.quantize(torch.randn(256, 2048), "int4", group_size=None, activation="s8")
    x = torch.randn(64, 2048).half().cuda()
    expected = lowlp.linear(x, qw, activation="int8")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x.mul_(2)
    y = lowlp.linear(x, qw, activation="int8", stream=stream)
    stream.synchronize()
    assert torch.equal(y, expected * 2)
