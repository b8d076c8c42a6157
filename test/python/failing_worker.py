"""A worker that fails: alone in a module, so that its process imports little."""

from __future__ import annotations

import os
import time
from typing import Any

from lowlp.benchmarks.results import Row
from lowlp.benchmarks.worker import Facts, Settings, Unit, serve


def failing_worker(connection: Any, settings: Settings) -> None:
    """Fails in the ways that real ones do, by the kind of the unit and M."""
    lost = False

    def open_unit(unit: Unit) -> Any:
        if unit.kind == "unopened":
            raise ValueError("no such weights")

        def measure(m: int) -> Row:
            nonlocal lost
            if m == 8 and unit.kind == "dies":
                os._exit(9)
            if m == 8 and unit.kind == "hangs":
                time.sleep(60)
            if m == 8 and unit.kind in ("fails", "lost"):
                lost = unit.kind == "lost"
                raise RuntimeError(f"\n{unit.kind} at 8\nmore")
            return Row(unit.who, unit.kind, unit.shape.n, unit.shape.k, m, float(m))

        return measure

    serve(connection, lambda: Facts(empty_us=3.5), open_unit, lambda: "the device is lost" if lost else "")
