"""`benchmarks/plain_matmul.py` without a GPU, and its row of the page."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.report import plain_table
from lowlp.benchmarks.results import PLAIN, PLAIN_RIVAL, Results, Row
from lowlp_runtime import KernelBinary

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "plain_matmul.py"


def test_kernels_of_the_example(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("plain_matmul", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.prepare_plain(tmp_path, "sm_90a", [Shape(8192, 512)], [8, 1024])
    threads = [KernelBinary.load(path).description.block[0] for path in sorted(tmp_path.glob("*.lowlp"))]
    assert threads == [9 * 32, 5 * 32]  # of 1024 rows of x, and of 8


def test_table_of_the_page() -> None:
    def row(who: str, m: int, us: float | None) -> Row:
        return Row(who, "int4", 128, 512, m, us)

    rows = [row(PLAIN, 8, 11.0), row(PLAIN_RIVAL, 8, 10.0), row(PLAIN, 16, None), row(PLAIN_RIVAL, 16, 10.0)]
    assert plain_table(Results()) == ""
    assert plain_table(Results([], rows)).splitlines() == [
        "| what | N x K | M = 8 | M = 16 |",
        "|---|---|--:|--:|",
        "| int4 | 128x512 | 11.0 (1.10x) | failed |",
    ]
