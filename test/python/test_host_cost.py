"""How the host's time for calls is taken: in turns, each batch from an idle GPU."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from lowlp.benchmarks import host_cost
from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.host_cost import CallCosts, HostCost, costs_of_calls, host_costs
from lowlp.benchmarks.pages.measured import describe
from lowlp.benchmarks.results import Results, Run


def test_calls_take_turns_and_no_time_of_the_gpu_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    order: list[str] = []
    slow = iter(range(10**6))

    def synchronize() -> None:
        order.append("idle")
        now[0] += 1.0

    def call(name: str, seconds: float) -> None:
        if order[-1] != name:
            order.append(name)
        now[0] += seconds

    def disturbed() -> None:
        # Twice as long for the second half of all rounds.
        call("disturbed", 2e-6 if next(slow) < 200 * 18 else 4e-6)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize)))
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    steady, other = host_costs([lambda: call("steady", 3e-6), disturbed])
    assert (steady.least, steady.median) == pytest.approx((3, 3), rel=1e-6)
    assert (other.least, other.median) == pytest.approx((2, 4), rel=1e-6)
    assert order[:4] == ["idle", "steady", "idle", "disturbed"]
    assert order == order[:4] * (len(order) // 4) + ["idle"]


def test_a_run_has_both_ways_to_a_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    results: list[object] = []

    def cost(calls: list) -> list[HostCost]:  # type: ignore[type-arg]
        results.extend(call() for call in calls)
        return [HostCost(number + 8.5, number + 9.5) for number in range(len(calls))]

    monkeypatch.setattr(host_cost, "host_costs", cost)
    found = costs_of_calls(Shape(32, 128), "int4", torch.device("cpu"))
    assert found == CallCosts(8.5, 9.5)
    torch.testing.assert_close(results[0], results[1], rtol=1e-2, atol=1e-2)
    run = Run("2026-01-01", "a GPU", "1.0", {}, 3.5, 4.49e12, host_us=found.linear, module_us=found.module)
    Results([run]).save(tmp_path / "run.json")
    (loaded,) = Results.load(tmp_path / "run.json").runs
    said = "a cached call of `linear` costs the host 8.5 us; of a module with a bias 9.5 us"
    assert loaded == run and said in describe(loaded)
