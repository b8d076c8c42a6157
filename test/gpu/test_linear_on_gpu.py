"""`lowlp.linear` on CUDA tensors: the whole way from weights to a GPU, compiled on the spot."""

import numpy as np
import pytest

import lowlp
from lowlp import dtypes

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

NAMES = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 9)]
NAMES += [f"f{1 + x + y}e{x}m{y}" for bits in range(3, 9) for x in range(1, 6) if (y := bits - 1 - x) >= 0]
SHAPES = [(5, 19, 96, 32), (17, 9, 257, 257), (1, 8, 40, 8), (33, 130, 512, 128)]


def random_weights(name: str, n: int, k: int, group: int, **parts: object) -> lowlp.QuantizedTensor:
    """Random finite codes with random scales."""
    rng = np.random.default_rng(n * k)
    dtype = dtypes.dtype(name)
    finite = np.flatnonzero(np.isfinite(dtype.decode(np.arange(1 << dtype.bits, dtype=np.uint8))))
    codes = rng.choice(finite, (n, k)).astype(np.uint8)
    scales = (rng.uniform(0.5, 2.0, (n, k // group)) / max(1.0, float(dtype.max))).astype(np.float32)
    return lowlp.QuantizedTensor(codes, dtype=name, scales=scales, group_size=group, **parts)


def relative_error(y, x, qw) -> float:  # type: ignore[no-untyped-def]
    wanted = x.double().cpu().numpy() @ qw.dequantize().astype(np.float64).T
    return float(np.linalg.norm(y.double().cpu().numpy() - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("name", NAMES)
def test_every_type(name: str) -> None:
    m, n, k, group = SHAPES[NAMES.index(name) % len(SHAPES)]
    qw = random_weights(name, n, k, group)
    x = torch.randn(m, k, device="cuda", dtype=torch.float16)
    assert relative_error(lowlp.linear(x, qw), x, qw) <= 2e-3
    identity = torch.eye(k, device="cuda", dtype=torch.float16)
    exact = lowlp.linear(identity, qw, out_dtype="f32")
    np.testing.assert_array_equal(exact.cpu().numpy(), qw.dequantize().T)


def test_gpu_and_cpu_target_agree_on_identity_with_zero_points() -> None:
    zeros = np.random.default_rng(1).integers(0, 16, (19, 3)).astype(np.uint8)
    qw = random_weights("uint4", 19, 96, 32, zeros=zeros)
    on_gpu = lowlp.linear(torch.eye(96, device="cuda", dtype=torch.bfloat16), qw, out_dtype="f32")
    np.testing.assert_array_equal(on_gpu.cpu().numpy(), qw.dequantize().T)


def test_strides_bias_and_batch_dimensions() -> None:
    qw = random_weights("int6", 24, 128, 64)
    wide = torch.randn(2, 7, 300, device="cuda", dtype=torch.float16)
    bias = torch.randn(24, device="cuda")
    for x in (wide[0, :, 3:131], wide[1, ::2, 8:136], wide[..., :128], wide[0, :, :256:2]):
        y = lowlp.linear(x, qw, bias=bias, out_dtype="f32")
        wanted = x.double().cpu().numpy() @ qw.dequantize().astype(np.float64).T + bias.double().cpu().numpy()
        np.testing.assert_allclose(y.cpu().numpy(), wanted, rtol=1e-4, atol=1e-4)
    assert lowlp.linear(wide[0, :0, :128], qw).shape == (0, 24)


def test_streams_and_graphs() -> None:
    qw = random_weights("int4", 64, 256, 128)
    x = torch.randn(4, 256, device="cuda", dtype=torch.float16)
    wanted = lowlp.linear(x, qw)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        beside = lowlp.linear(x, qw)
    side.synchronize()
    assert torch.equal(beside, wanted)
    graph = torch.cuda.CUDAGraph()
    static = x.clone()
    with torch.cuda.graph(graph):
        captured = lowlp.linear(static, qw)
    for _ in range(3):
        static.copy_(torch.randn_like(static))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(captured, lowlp.linear(static, qw))


def test_a_kernel_of_the_dsl_runs_on_cuda_tensors() -> None:
    from lowlp import language as ll

    layout = lowlp.spatial(32)

    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, 32),), num_threads=32)
    def double(x: ll.pointer("f32"), y: ll.pointer("f32"), m: ll.i32):  # type: ignore[no-untyped-def,valid-type]
        (block,) = ll.block_indices()
        tile = ll.load_global(ll.view_global(x, shape=[m]), offsets=[block * 32], layout=layout)
        ll.store_global(tile + tile, ll.view_global(y, shape=[m]), offsets=[block * 32])

    x = torch.randn(77, device="cuda")
    y = torch.full((77,), float("nan"), device="cuda")
    double(x, y, 77)
    assert torch.equal(y, x + x)
