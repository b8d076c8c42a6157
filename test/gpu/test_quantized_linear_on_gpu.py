"""Products of quantised activations on the GPU: sums to the bit, and those of a CUDA graph and of saved kernels.

A seeded sample of pairs of widths and kinds; all of them with LOWLP_WHOLE_MATRIX=1, and with
LOWLP_WHOLE_MATRIX=covering as many as cover all pairs of widths and of kinds."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.numeric.codec import Codec

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from covering import drawn  # noqa: E402
from quantized_products import INTEGERS, OTHERS, WEIGHTS, activations, sums_of, weights  # noqa: E402

K = 1024
PAIRS = list(itertools.product(WEIGHTS, [*INTEGERS, *OTHERS]))
SAMPLE = drawn(PAIRS, 12, 75)


def codes_of(m: int, dtype: Any, seed: int) -> Any:
    """Random codes of 8 bits on the GPU."""
    least = -127 if dtype == torch.int8 else 0
    return torch.from_numpy(np.random.default_rng(seed).integers(least, 128, (m, K))).to(dtype).cuda()


def weights_of(weight: str, group_size: int, n: int = 640) -> Any:
    w = np.random.default_rng(1).standard_normal((n, K)).astype(np.float32)
    return lowlp.quantize(w, weight, group_size=group_size, zero_point=False, activation="int8")


@pytest.mark.parametrize("weight", [f"int{bits}" for bits in range(1, 9)])
@pytest.mark.parametrize("m", [1, 7, 16, 33, 64, 200, 1024])
def test_sums_are_exact(weight: str, m: int) -> None:
    xq = lowlp.QuantizedActivations(codes_of(m, torch.int8, m), dtype="int8", scales=0.5)
    qw = weights_of(weight, -1)
    numbers = torch.from_numpy(qw.codec.values()[qw.codes].astype(np.float64)).cuda()
    wanted = xq.codes.double() @ numbers.T
    for _ in range(3):
        assert torch.equal(lowlp.linear(xq, qw, out_dtype="s32").double(), wanted)
    scales = torch.from_numpy(np.asarray(qw.scales, np.float32)).cuda().reshape(1, -1)
    assert torch.equal(lowlp.linear(xq, qw, out_dtype="f32"), (wanted.float() * scales) * 0.5)


@pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
@pytest.mark.parametrize(("weight", "x"), SAMPLE)
def test_every_pair_by_bytes_is_exact(weight: str, x: str) -> None:
    for m, fill in ((5, "alternating"), (300, "random"), (300, "largest")):
        xq, qw = activations(x, m, 1088, fill), weights(weight, 200, 1088, fill=fill)
        on_gpu = lowlp.QuantizedActivations(
            torch.from_numpy(xq.codes).cuda(),
            dtype=x,
            scales=torch.from_numpy(xq.scales).cuda(),
            zeros=None if xq.zeros is None else torch.from_numpy(xq.zeros).cuda(),
        )
        y = lowlp.linear(on_gpu, qw, out_dtype="s32", path="s8").cpu().numpy()
        np.testing.assert_array_equal(y, sums_of(xq, qw), f"{weight} x {x} {fill}")


@pytest.mark.parametrize("weight", ["int4", "uint3", "bipolar2"])
@pytest.mark.parametrize("m", [5, 70, 300])
def test_groups_are_within_the_bound(weight: str, m: int) -> None:
    xq = lowlp.QuantizedActivations(codes_of(m, torch.uint8, m), dtype="uint8", scales=0.5, zeros=3)
    qw = weights_of(weight, 128)
    wanted = xq.dequantize().double() @ torch.from_numpy(qw.dequantize()).cuda().double().T
    found = lowlp.linear(xq, qw, out_dtype="f32").double()
    assert torch.linalg.norm(found - wanted) < 1e-5 * torch.linalg.norm(wanted)


@pytest.mark.parametrize("codec", ["int1 g128 f16", "int4 g128 uint4 super:f16:channel"])
@pytest.mark.parametrize("m", [16, 64, 300])
def test_groups_by_warpgroups_are_within_the_bound(codec: str, m: int) -> None:
    xq = lowlp.QuantizedActivations(codes_of(m, torch.int8, m), dtype="int8", scales=0.5)
    w = np.random.default_rng(1).standard_normal((8192, K)).astype(np.float32)
    qw = lowlp.quantize(w, Codec.parse(codec), activation="int8")
    wanted = xq.dequantize().double() @ torch.from_numpy(qw.dequantize()).cuda().double().T
    first = lowlp.linear(xq, qw, out_dtype="f32")
    assert torch.linalg.norm(first.double() - wanted) < 1e-5 * torch.linalg.norm(wanted)
    assert torch.equal(lowlp.linear(xq, qw, out_dtype="f32"), first)


@pytest.mark.parametrize("weight", ["int4", "f4e2m1", "f8e4m3"])
@pytest.mark.parametrize("m", [1, 64, 300])
def test_8_bit_floats_are_within_the_bound(weight: str, m: int) -> None:
    w = np.random.default_rng(2).standard_normal((256, K)).astype(np.float32)
    qw = lowlp.quantize(w, weight, group_size=-1, activation="f8e4m3")
    x = torch.randn(m, K)
    xq = lowlp.quantize_activations(x, "f8e4m3")
    wanted = xq.dequantize().double() @ torch.from_numpy(qw.dequantize()).double().T
    on_gpu = lowlp.QuantizedActivations(xq.codes.cuda(), dtype="f8e4m3", scales=xq.scales.cuda())
    found = lowlp.linear(on_gpu, qw, out_dtype="f32").cpu().double()
    assert torch.linalg.norm(found - wanted) < 5e-3 * torch.linalg.norm(wanted)


def test_graphs_and_saved_kernels(tmp_path: Path) -> None:
    xq = lowlp.QuantizedActivations(codes_of(16, torch.int8, 3), dtype="int8", scales=0.5)
    qw = weights_of("int4", -1)
    wanted = lowlp.linear(xq, qw)
    xq.sums  # noqa: B018  before the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = lowlp.linear(xq, qw)
    graph.replay()
    assert torch.equal(y, wanted)
    arch = "sm_{}{}a".format(*torch.cuda.get_device_capability())
    kernel = lowlp.compile_linear(
        n=640,
        k=K,
        weight="int4",
        group_size=None,
        activation="int8",
        m=(1, 16),
        target=arch,
        scale_dtype=qw.codec.scale,
    )
    kernel.save(tmp_path / "k.lowlp")
    assert torch.equal(lowlp.load(tmp_path / "k.lowlp")(xq, qw), wanted)
