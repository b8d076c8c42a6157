"""The one function that times peers and ours alike, and how many repeats it takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lowlp_runtime.timing import Timing, measure

# What reading 256 MiB takes at the least, in microseconds.
_FILL_US: Final = 60.0
_MOST_FILLS: Final = 16
_HOST_CALLS: Final = 5
_IDLE_S: Final = 0.02
"""Where nothing was timed for so long, operands were made, or results compared: the first times after that were up to
2 us longer than others, so the work is put for `_WARM_S` before it is timed."""
_WARM_S: Final = 0.05


class _Clock:
    """When the last timing ended."""

    ended = -math.inf


@dataclass(frozen=True)
class Effort:
    """How long one time may take to find.

    budget_ms    what all repeats of one product may take together
    least, most  repeats
    """

    budget_ms: float = 60.0
    least: int = 7
    most: int = 100

    def repeats(self, sample_us: float) -> int:
        """Repeats of samples that take so long, the fill before them included."""
        return max(self.least, min(self.most, int(self.budget_ms * 1000 / sample_us)))


QUICK: Final = Effort(budget_ms=15.0, least=3, most=20)


def time_call(run: Callable[[], object], stream: int, effort: Effort) -> Timing:
    """Device time of what `run()` puts on `stream`, caches cold, medians to be taken.

    As `triton.testing.do_bench` does it, an event is recorded, the work put, another event recorded, after something
    that evicts the L2 cache, for all repeats at once, so that the device never waits for the host. But a buffer of
    256 MiB is read, not filled: what a fill leaves in the cache is written to memory at the expense of what is timed.
    Where the host needs longer for one call than the device for one reading, the buffer is read as often as it takes:
    otherwise the host's own time would be part of the result. What comes after a pause is put for some time first.
    Every library gets the same treatment.
    """
    run()
    fills = fills_for(host_us(run))
    first = measure(run, repeats=3, warmups=2, stream=stream, fills=fills)
    repeats = effort.repeats(first.median_us + fills * _FILL_US)
    if time.monotonic() - _Clock.ended > _IDLE_S:
        until = time.monotonic() + _WARM_S
        while time.monotonic() < until:
            measure(run, repeats, warmups=0, stream=stream, fills=fills)
    timing = measure(run, repeats, warmups=0, stream=stream, fills=fills)
    _Clock.ended = time.monotonic()
    return timing


def fills_for(host: float) -> int:
    """Fills that last one and a half times as long as the host needs for a call."""
    return max(1, min(_MOST_FILLS, int(1.5 * host / _FILL_US) + 1))


def host_us(run: Callable[[], object]) -> float:
    """Microseconds that the host spends in a call: the least of a few, since others may use the processor."""
    times = []
    for _ in range(_HOST_CALLS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6
