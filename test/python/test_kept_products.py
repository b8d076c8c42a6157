"""Products with quantised activations on CUDA tensors, on a fake driver and a fake PyTorch: what later calls take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.activations.kinds import activation_kind
from lowlp.activations.quantized import QuantizedActivations
from lowlp.ops import planes_linear, quantized_launch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "runtime"))
from fake_driver import FakeDriver, fake_driver
from fake_torch import FakeDevice, FakeTensor, FakeTorch, FakeType, fake_torch
from test_tensor_map import encoded

__all__ = ["encoded", "fake_driver", "fake_torch"]

N, K, M = 64, 256, 3
GPU = FakeDevice(0)


@pytest.fixture
def torch(fake_torch: FakeTorch, fake_driver: FakeDriver) -> Iterator[FakeTorch]:
    fake_driver.contexts = [100]
    fake_torch.uint32 = FakeType("uint32", 4)  # type: ignore[attr-defined]
    return fake_torch


def activations(torch: Any, name: str) -> QuantizedActivations:
    kind = activation_kind(name)

    def tensor(dtype: FakeType, *shape: int) -> FakeTensor:
        return FakeTensor(shape, dtype, GPU)

    codes = tensor(torch.int8 if kind.stored == np.int8 else torch.uint8, M, K)
    scales, sums = tensor(torch.float32, M, 1), tensor(torch.int32, M)
    planes = tensor(torch.uint32, M, kind.dtype.bits, K // 32)
    return QuantizedActivations._of(kind, codes, scales, None, sums, None, planes, None)


@pytest.mark.parametrize(
    ("name", "path", "module", "order"),
    [
        # Of x and of the call; between them lie operands of the weights, which stay.
        ("int2", "planes", planes_linear, ("planes", "x_scales", "x_sums")),
        ("bipolar1", "planes", planes_linear, ("planes", "x_scales", "x_sums")),
        ("int8", "s8", quantized_launch, ("codes", "x_scales", "x_sums")),
    ],
)
def test_a_later_call_only_allocates_and_launches(
    name: str, path: str, module: Any, order: tuple[str, ...], torch: Any, fake_driver: FakeDriver,
    monkeypatch: pytest.MonkeyPatch, encoded: Any,
) -> None:  # fmt: skip
    family = {"planes": "b1"}.get(path, path)
    codes = np.random.default_rng(0).integers(0, 4, (N, K), dtype=np.uint8)
    qw = lowlp.QuantizedTensor(codes, dtype="int2", scales=np.ones((N, 1), np.float16), group_size=K, activation=family)
    fake_driver.slots = 9
    calls = [activations(torch, name) for _ in range(2)]
    results = [lowlp.linear(calls[0], qw, path=path)]
    made = len(fake_driver.named("cuModuleLoadDataEx"))
    monkeypatch.setattr(module, "_bind", None)
    results.append(lowlp.linear(calls[1], qw, path=path))
    assert len(fake_driver.named("cuModuleLoadDataEx")) == made
    for x, y, launch in zip(calls, results, fake_driver.launches, strict=True):
        parts = {"planes": x.planes, "codes": x.codes, "x_scales": x.scales, "x_sums": x.sums}
        values = launch["values"]
        assert [part for part in order if parts[part].data_ptr() in values] == list(order)
        assert y.data_ptr() in values and y.shape == (M, N)
    first, second = (set(launch["values"]) for launch in fake_driver.launches)
    assert len(first & second) >= 3
