"""`lowlp.linear` on CUDA tensors: the whole way from weights to a GPU, compiled on the spot."""

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import linear_matrix as matrix  # noqa: E402
from linear_launches import check_chain  # noqa: E402
from linear_matrix import Config, relative_error  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def random_weights(name: str, n: int, k: int, group: int) -> lowlp.QuantizedTensor:
    """Random finite codes with random scales."""
    return Config(name, group, scale="f32").weights(n, k, seed=n * k)


def on_host(tensor) -> np.ndarray:  # type: ignore[no-untyped-def]
    """The values, all of which f32 holds."""
    return tensor.float().cpu().numpy()


@pytest.mark.parametrize("config", matrix.FULL + matrix.EXTRAS, ids=str)
def test_the_identity_gives_dequantize(config: Config) -> None:
    k = config.k - config.k % (config.group or 1)
    qw = config.weights(41, k, seed=k)
    identity = torch.eye(k, device="cuda", dtype=TYPES[config.activation])
    np.testing.assert_array_equal(on_host(lowlp.linear(identity, qw, out_dtype="f32")).T, qw.dequantize())


LARGE = [*matrix.PRODUCTS, *matrix.LARGE_PRODUCTS, (Config("int6", 112, "f16"), 7392, 7392)]


@pytest.mark.parametrize(("config", "n", "k"), LARGE, ids=str)
def test_random_products(config: Config, n: int, k: int) -> None:
    qw = config.weights(n, k, seed=n)
    every = torch.randn(max(matrix.ROWS), k, device="cuda").to(TYPES[config.activation])
    few = lowlp.linear(every[:16], qw)
    for m in matrix.ROWS:
        y = lowlp.linear(every[:m], qw)
        # Up to 16 rows, a row does not depend on how many there are.
        if m <= 16:
            assert torch.equal(y, few[:m])
        else:
            error = relative_error(on_host(y), on_host(every[:m]), qw)
            assert error <= matrix.ERROR_LIMITS[config.activation]


@pytest.mark.parametrize("config", [matrix.PRODUCTS[2][0], matrix.EXTRAS[0], matrix.EXTRAS[2]], ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_a_number_stays_in_its_row(config: Config, bad: float) -> None:
    k = 3 * (config.group or 40)
    qw = config.weights(70, k)
    x = torch.randn(18, k, device="cuda").to(TYPES[config.activation])
    clean = lowlp.linear(x, qw)
    x[5, k - 1] = bad
    y = lowlp.linear(x, qw)
    assert not torch.isfinite(y[5]).any()
    others = [row for row in range(18) if row != 5]
    assert torch.equal(y[others], clean[others])


def test_strides_bias_and_batch_dimensions() -> None:
    qw = random_weights("int6", 24, 128, 64)
    wide = torch.randn(2, 7, 300, device="cuda", dtype=torch.float16)
    bias = torch.randn(24, device="cuda")
    for x in (wide[0, :, 3:131], wide[1, ::2, 8:136], wide[..., :128], wide[0, :, :256:2]):
        y = lowlp.linear(x, qw, bias=bias, out_dtype="f32")
        wanted = x.double().cpu().numpy() @ qw.dequantize().astype(np.float64).T + bias.double().cpu().numpy()
        np.testing.assert_allclose(y.cpu().numpy(), wanted, rtol=1e-4, atol=1e-6 * np.abs(wanted).max())
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


def test_calls_in_a_row_feed_each_other() -> None:
    # Each call reads what the one in front of it writes, with and without launches that may start early.
    qw = random_weights("int4", 256, 256, 128)
    x = torch.randn(3, 256, device="cuda", dtype=torch.float16)
    scale = float(np.abs(qw.dequantize()).sum(axis=1).max())

    def chain() -> torch.Tensor:
        y = x
        for _ in range(40):
            y = lowlp.linear(y, qw) / scale
        return y

    check_chain(chain)


def test_a_stream_that_is_not_the_current_one() -> None:
    qw = random_weights("int6", 64, 256, 128)
    x = torch.randn(4, 512, device="cuda", dtype=torch.float16)[:, ::2]  # is copied
    wanted = lowlp.linear(x, qw)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    results = [lowlp.linear(x, qw, stream=side) for _ in range(20)]
    side.synchronize()
    assert all(torch.equal(result, wanted) for result in results)


def test_threads_and_streams() -> None:
    qw = random_weights("int4", 512, 512, 128)
    inputs = [torch.randn(1 + index, 512, device="cuda", dtype=torch.float16) for index in range(4)]
    wanted = [lowlp.linear(x, qw) for x in inputs]
    torch.cuda.synchronize()
    failures = []

    def work(x: torch.Tensor, expected: torch.Tensor) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            results = [lowlp.linear(x, qw) for _ in range(200)]
            torch.cuda.current_stream().synchronize()
            if not all(torch.equal(result, expected) for result in results):
                failures.append(x.shape)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
