"""Results of `linear` to the bit: again, from graphs, on two streams at once, and whatever the other rows are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from chosen_products import INVARIANT, REPEATED, shared_tiles  # noqa: E402
from linear_forms import Product  # noqa: E402
from linear_launches import ARCH, launch_of, multiply, poisoned, random_x  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_ahead")

SHARED = shared_tiles(ARCH)
FEW_ROWS = [product for product in SHARED + REPEATED if product.rows[0] == 1]

RUNS, REPLAYS = 100, 20
every_product = pytest.mark.parametrize("product", SHARED + REPEATED, ids=str)


def wait_first(*streams: torch.cuda.Stream) -> None:
    """Keeps streams busy for some 10 ms, so that what is put on them meanwhile runs without gaps, and side by side."""
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)


def disturb() -> None:
    """Puts other numbers into the caches, as work that is still in flight when the next kernel begins."""
    torch.ones(64 << 20, device="cuda").mul_(3.0)


def all_equal(results: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether all of [number, M, N] are this one, to the bit, and that is no NaN, as which results begin."""
    same = results.view(torch.int16) == wanted.view(torch.int16)
    return bool(same.all()) and bool(wanted.isfinite().all())


@every_product
def test_a_hundred_runs(product: Product) -> None:
    for m in product.rows:
        x = random_x(product.k, max(product.rows))[:m]
        wanted = multiply(product, x)
        results, run = poisoned(product, RUNS, m), launch_of(product, x)
        wait_first(torch.cuda.current_stream())
        for number, y in enumerate(results):
            if number >= RUNS // 2 and number % 5 == 0:
                disturb()
            run(y)
        assert all_equal(results, wanted), f"M = {m}"


@pytest.mark.parametrize("switch", [nullcontext, lowlp.no_dependent_launch], ids=["dependent", "plain"])
@every_product
def test_replays_of_a_graph(product: Product, switch: Callable[[], AbstractContextManager[None]]) -> None:
    every = random_x(product.k, max(product.rows))
    wanted = {m: multiply(product, every[:m]) for m in product.rows}
    results = {m: poisoned(product, 3, m) for m in product.rows}
    runs = {m: launch_of(product, every[:m]) for m in product.rows}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), switch():
        for m in product.rows:
            for y in results[m]:
                runs[m](y)
    for _ in range(REPLAYS):
        for ys in results.values():
            ys.fill_(float("nan"))
        graph.replay()
        for m in product.rows:
            assert all_equal(results[m], wanted[m]), f"M = {m}"


@every_product
def test_two_streams_at_once(product: Product) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    for m in product.rows:
        x = random_x(product.k, max(product.rows))[:m]
        wanted = multiply(product, x)
        results, run = poisoned(product, RUNS, m), launch_of(product, x)
        torch.cuda.synchronize()
        wait_first(*streams)
        for number, y in enumerate(results):
            run(y, streams[number % 2])
        torch.cuda.synchronize()
        assert all_equal(results, wanted), f"M = {m}"


@pytest.mark.parametrize("product", FEW_ROWS, ids=str)
def test_a_row_alone_and_among_others(product: Product) -> None:
    x = random_x(product.k, 16)
    whole = multiply(product, x)
    for row in range(16):
        assert torch.equal(multiply(product, x[row : row + 1]), whole[row : row + 1]), f"row {row}"
    for first in (0, 8):
        assert torch.equal(multiply(product, x[first : first + 8]), whole[first : first + 8]), f"rows from {first}"
    for m in range(2, 16):
        assert torch.equal(multiply(product, x[:m]), whole[:m]), f"M = {m}"


@pytest.mark.parametrize("product", INVARIANT, ids=str)
def test_batch_invariant(product: Product) -> None:
    x = random_x(product.k, max(product.rows))
    results = {m: lowlp.linear(x[:m], product.weights, batch_invariant=True) for m in product.rows}
    for m, y in results.items():
        assert torch.equal(y, results[1024][:m]), f"M = {m}"
        assert torch.equal(y, multiply(product, x[:m])), f"M = {m}, by the kernel of {product.schedule(m, ARCH)}"
    for row in (0, 3, 700, 1023):
        alone = lowlp.linear(x[row : row + 1], product.weights, batch_invariant=True)
        assert torch.equal(alone, results[1024][row : row + 1]), f"row {row}"
