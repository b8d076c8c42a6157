"""Weights with a permutation of K on the GPU: rows put in order before the product, and within it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
import lowlp_runtime
from lowlp.compiler.architectures import current_arch
from lowlp.ops import linear_launch

torch = pytest.importorskip("torch")

N, K = 512, 2048


def act_order(group: int) -> tuple[lowlp.QuantizedTensor, lowlp.QuantizedTensor]:
    """Random weights, and those of the same words whose columns are in the order of the words."""
    rng = np.random.default_rng(group)
    parts: dict[str, Any] = {
        "dtype": "int4",
        "scales": (rng.uniform(0.5, 2, (N, K // group)) / 64).astype(np.float16),
        "group_size": group,
    }
    codes, g_idx = rng.integers(0, 16, (N, K), dtype=np.uint8), rng.permutation(np.arange(K) // group)
    qw = lowlp.QuantizedTensor(codes, **parts, g_idx=g_idx)
    return qw, lowlp.QuantizedTensor.from_packed(qw.packed, qw.shape, **parts)


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("group", [32, 128])
def test_products_are_those_of_rows_in_order(group: int, within: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    qw, plain = act_order(group)
    if not within:
        monkeypatch.setattr(linear_launch, "ordered_within", lambda *_: None)
    order = torch.from_numpy(np.array(qw.permutation, np.int64)).cuda()
    for m in (1, 2, 3, 8, 16, 40, 300):
        for rows in (torch.randn(m, K, device="cuda").half(), torch.randn(m, K + 3, device="cuda").half()[:, 1:-2]):
            wanted = lowlp.linear(rows[:, order].contiguous(), plain)
            for _ in range(5):
                assert torch.equal(lowlp.linear(rows, qw), wanted), m


@pytest.mark.parametrize("m", [1, 40])
def test_graphs_and_saved_kernels(m: int, tmp_path: Path) -> None:
    qw, _ = act_order(128)
    x = torch.randn(m, K, device="cuda").half()
    lowlp.linear(x, qw)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first, second = lowlp.linear(x, qw), lowlp.linear(x, qw)
    x.copy_(torch.randn_like(x))
    graph.replay()
    graph.replay()
    wanted = lowlp.linear(x, qw)
    assert torch.equal(first, wanted) and torch.equal(second, wanted)
    gpu = torch.cuda.get_device_name(0)
    lowlp.compile_linear(
        n=N, k=K, m=(m, m), weight="int4", target=current_arch(), gpu=gpu, permutation=True
    ).save(tmp_path / "k.lowlp")  # fmt: skip
    kernel = lowlp_runtime.load(tmp_path / "k.lowlp")
    for weights in (qw, qw.to_arrays()):
        for _ in range(3):
            assert torch.equal(kernel(x, weights), wanted)
