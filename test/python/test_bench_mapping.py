"""`benchmarks/kernel_mapping.py`: its tables, of times that an H200 took."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lowlp.kernels.linear.planes.choosing import choose_planes

ROOT = Path(__file__).resolve().parents[2]
TIMES = ROOT / "benchmarks" / "results" / "kernel-mapping-h200.json"


@pytest.fixture(scope="module")
def mapping() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel_mapping", ROOT / "benchmarks" / "kernel_mapping.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel_mapping"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(TIMES.read_text())
    return found


def test_all_candidates_had_the_same_results(results: list[dict[str, Any]]) -> None:
    assert len(results) > 20 and not any(one["wrong"] for one in results)


def test_the_shipped_table_has_the_fastest(mapping: ModuleType, results: list[dict[str, Any]]) -> None:
    for one in results:
        best = mapping.best_of(one)
        chosen = choose_planes(mapping.spec_of(*mapping.key(one)[:4]), one["m"], gpu="NVIDIA H200")
        assert chosen.reason == f"measured on NVIDIA H200: {best['us']:.1f} us"
        assert chosen.schedule == mapping.schedule_of(best)


def test_matching_is_about_as_fast_as_the_search(mapping: ModuleType, results: list[dict[str, Any]]) -> None:
    # Of few rows, whose candidates are fewer.
    lines = list(mapping.report([one for one in results if one["m"] == 16]))
    summary = [re.fullmatch(r"without the (\w+): (\d+) of (\d+) within 10% of the search, mean (.*)", x) for x in lines]
    found = {match[1]: (int(match[2]), int(match[3]), float(match[4])) for match in summary if match}
    assert set(found) == {"shape", "widths"}
    for within, count, mean in found.values():
        assert count >= 4 and mean < 1.12 and within >= 0.5 * count


def test_what_a_held_out_problem_takes_is_not_its_own(mapping: ModuleType, results: list[dict[str, Any]]) -> None:
    one = results[0]
    for what, (table,) in mapping.left_out(one, results).items():
        assert table.planes
        for entry in table.planes:
            own = (
                (entry.n, entry.k) == (one["n"], one["k"])
                if what == "shape"
                else (entry.p, entry.q) == (one["p"], one["q"])
            )
            assert not own
