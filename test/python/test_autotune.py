"""`lowlp.autotune`: which candidate is taken where, what is kept, and what is refused. No GPU: times are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.tuning import autotuning
from lowlp.tuning.autotuning import AutotunedKernel

ARRAY: Any = object()  # no numpy array: where times are made up, nothing is launched


def estimate(*, width: int, rows: int, m: int) -> float:
    """Blocks, and the work of each."""
    return -(-m // rows) * 0.1 + rows * width / 8


def make(width: int, *, rows: int) -> Any:
    if rows > 64:
        raise LowlpValueError(f"rows: {rows} are too many")

    @lowlp.kernel(grid=lambda m: ll.ceildiv(m, rows), num_threads=32)
    def twice(x: ll.pointer("f16"), y: ll.pointer("f16"), m: ll.i32) -> None:
        (block,) = ll.block_indices()
        offsets = [block * rows, 0]
        tile = ll.load_global(ll.view_global(x, shape=[m, width]), offsets=offsets, shape=[rows, width])
        ll.store_global(tile * 2.0, ll.view_global(y, shape=[m, width]), offsets=offsets)

    return twice


def autotuned(**options: Any) -> AutotunedKernel:
    return lowlp.autotune({"rows": [32, 16, 64, 128]}, key=("m",), **options)(make)(8)


def test_on_the_cpu_target_the_estimate_chooses() -> None:
    kernel = autotuned(estimate=estimate)
    x = np.arange(320, dtype=np.float16).reshape(40, 8)
    y = np.full_like(x, np.nan)
    assert kernel(x, y, m=40)["blocks"] == 3 and (y == 2 * x).all()
    assert kernel.best(x, y, 4000).constants == {"rows": 16}
    assert kernel.best(x, y, 10000).constants == {"rows": 32}
    assert autotuned().best(x, y, 4000).constants == {"rows": 32}  # the first, without an estimate


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A GPU on which 64 rows are fastest, and how often was measured."""
    state: dict[str, Any] = {"measured": 0, "can": True}
    monkeypatch.setattr(autotuning, "_name", lambda ordinal: "a GPU")

    def times(kernels: Any, arguments: Any, constant: Any, stream: Any, names: Any) -> list[float | None]:
        state["measured"] += 1
        us = {"rows=32": 3.0, "rows=16": 2.5, "rows=64": 2.0}
        return [us[name] if kernel else None for kernel, name in zip(kernels, names, strict=True)]

    monkeypatch.setenv("LOWLP_CACHE_DIR", str(tmp_path))
    for name, value in {
        "current_device": lambda: 0, "arch_of": lambda ordinal: "sm_90a",
        "can_measure": lambda: state["can"], "times_of": times,
    }.items():  # fmt: skip
        monkeypatch.setattr(autotuning, name, value)
    return state


def test_the_fastest_is_taken_and_kept_on_disk(gpu: dict[str, Any], tmp_path: Path) -> None:
    kernel = autotuned(estimate=estimate)
    gpu["can"] = False  # within a graph capture
    assert kernel.best(ARRAY, ARRAY, 100).constants == {"rows": 16} and gpu["measured"] == 0
    gpu["can"] = True
    for m, measured in ((100, 1), (65, 1), (128, 1), (129, 2)):
        assert kernel.best(ARRAY, ARRAY, m).constants == {"rows": 64} and gpu["measured"] == measured
    assert "a GPU, m = 128: measured\n        3.00 us  rows=32\n" in kernel.report()
    assert "  *     2.00 us  rows=64\n    rows: 128 are too many  rows=128\n" in kernel.report()
    assert autotuned().best(ARRAY, ARRAY, 100).constants == {"rows": 64} and gpu["measured"] == 2
    first, *_ = files = sorted((tmp_path / "autotuned").iterdir())
    assert len(files) == 2
    # What is damaged counts as absent.
    for text in ("{", json.dumps({**json.loads(first.read_text()), "best": 3})):
        for path in files:
            path.write_text(text)
        before = gpu["measured"]
        assert autotuned().best(ARRAY, ARRAY, 100).constants == {"rows": 64} and gpu["measured"] == before + 1


def test_other_candidates_are_measured_anew(gpu: dict[str, Any]) -> None:
    choose = lowlp.autotune([{"rows": 32}, {"rows": 16}])(make)
    assert choose(8).best(ARRAY, ARRAY, 5).constants == {"rows": 16}
    assert choose(8).best(ARRAY, ARRAY, 5000).constants == {"rows": 16} and gpu["measured"] == 1  # no key
    assert choose(16).best(ARRAY, ARRAY, 5).constants == {"rows": 16} and gpu["measured"] == 2


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        ({}, {}, "candidates: there must be at least one"),
        (5, {}, "candidates: expected a mapping, or a list of mappings, got 5"),
        ({"rows": 16}, {}, r"candidates\['rows'\]: expected a list of values, got 16"),
        ([{"rows": 16}, {"warps": 1}], {}, r"candidates: \['warps'\] and \['rows'\] are not the same constants"),
        ({"columns": [8]}, {}, "candidates: 'columns' is no parameter of make"),
        ({"rows": [128]}, {}, "make: no candidate is a kernel: rows: 128 are too many"),
        ({"rows": [16]}, {"key": "m"}, "key: expected names of parameters"),
        ({"rows": [16]}, {"key": ("n",)}, "key: 'n' is no integer parameter of make; there are m"),
        ({"rows": [16]}, {"estimate": 3}, "estimate: expected a function or None, got 3"),
    ],
)
def test_mistakes(candidates: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((LowlpValueError, LowlpTypeError), match=message):
        lowlp.autotune(candidates, **options)(make)(8)


def test_mistakes_of_calls() -> None:
    x = np.zeros((4, 8), np.float16)
    with pytest.raises(LowlpTypeError, match="make: 'rows' is chosen among candidates, and cannot be given"):
        lowlp.autotune({"rows": [16]})(make)(8, rows=16)
    with pytest.raises(LowlpTypeError, match="missing: m"):
        autotuned()(x, x)
    with pytest.raises(LowlpTypeError, match="make: m: expected an int, got str"):
        autotuned()(x, x, m="4")
    with pytest.raises(LowlpTypeError, match="estimate: must return a number, got None for rows=32"):
        autotuned(estimate=lambda **_: None)(x, x, m=4)
    with pytest.raises(LowlpTypeError, match=r"must return a lowlp\.kernel, got 5"):
        lowlp.autotune({"rows": [16]})(lambda rows: 5)()
