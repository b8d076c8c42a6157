"""`lowlp.autotune` on a GPU: what is measured, later processes, graphs, arrays that a kernel changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lowlp
from lowlp import language as ll
from lowlp.errors import LowlpValueError

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

WIDTH, ROWS = 64, 3000


def make(*, rows: int, by: float = 2.0) -> Any:
    @lowlp.kernel(grid=lambda m: ll.ceildiv(m, rows), num_threads=128)
    def scale(x: ll.pointer("f16", align=16), m: ll.i32) -> None:
        (block,) = ll.block_indices()
        view = ll.view_global(x, shape=[m, WIDTH])
        offsets = [block * rows, 0]
        tile = ll.load_global(view, offsets=offsets, shape=[rows, WIDTH])
        ll.store_global(tile * (by if rows == 64 else 2.0), view, offsets=offsets)

    return scale


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LOWLP_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_measured_once_on_copies(folder: Path) -> None:
    choose = lowlp.autotune({"rows": [16, 64, 128]}, key=("m",))(make)
    x = torch.arange(ROWS * WIDTH, device="cuda").remainder(100).half().view(ROWS, WIDTH)
    wanted = x * 2
    kernel = choose()
    kernel(x, ROWS)
    assert torch.equal(x, wanted)  # changed by one launch, and by none of those that were timed
    assert kernel.report().count(" us  rows=") == 3
    again = choose()
    again(x, ROWS)
    assert torch.equal(x, wanted * 2) and "measured before" in again.report()
    assert again.best(x, ROWS).constants == kernel.best(x, ROWS).constants


def test_within_a_graph() -> None:
    kernel = lowlp.autotune({"rows": [16, 128]}, key=("m",), estimate=lambda rows, m: -rows)(make)()
    x = torch.ones(ROWS, WIDTH, dtype=torch.float16, device="cuda")
    lowlp.compile(kernel.kernel_for(m=ROWS), lowlp.compiler.architectures.current_arch())
    kernel.kernel_for(m=ROWS)(x, ROWS)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(x, ROWS)
    graph.replay()
    torch.cuda.synchronize()
    assert (x == 4).all() and "measured" not in kernel.report()
    kernel.best(x, ROWS)
    with torch.cuda.graph(graph := torch.cuda.CUDAGraph()):
        kernel(x, ROWS)
    graph.replay()
    torch.cuda.synchronize()
    assert (x == 8).all()


def test_candidates_that_compute_other_things_are_refused() -> None:
    kernel = lowlp.autotune({"rows": [16, 64]})(make)(by=3.0)
    x = torch.ones(ROWS, WIDTH, dtype=torch.float16, device="cuda")
    with pytest.raises(LowlpValueError, match="rows=16 and rows=64 write other numbers to 'x'"):
        kernel(x, ROWS)
    assert (x == 1).all()
