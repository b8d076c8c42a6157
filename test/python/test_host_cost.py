"""How the host's time for calls is taken: in turns, each batch from an idle GPU."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import pytest

from lowlp.benchmarks.host_cost import host_costs


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
