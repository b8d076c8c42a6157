"""Timing on the device, by events: the median of repeats, each with a cold L2 cache.

Before each repeat a buffer larger than L2 is read on the same stream (`cache_flush`). That evicts what the repeat
before left there, and it keeps the device busy while the host puts the events and the work after it, so that the
host's own time is not measured.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from lowlp_runtime import device as devices
from lowlp_runtime.cache_flush import FlushBuffer
from lowlp_runtime.driver import call
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.stream import stream_handle

# Long enough, at some TB/s, to hide the host's work for one repeat.
_MIN_FLUSH_BYTES = 256 << 20


@dataclass(frozen=True)
class Timing:
    """Microseconds of every repeat, in the order they ran."""

    samples_us: tuple[float, ...]

    @property
    def median_us(self) -> float:
        return statistics.median(self.samples_us)

    @property
    def min_us(self) -> float:
        return min(self.samples_us)

    @property
    def max_us(self) -> float:
        return max(self.samples_us)


def measure(
    run: Callable[[], object],
    repeats: int = 30,
    warmups: int = 5,
    flush_l2: bool = True,
    stream: object = 0,
    ordinal: int | None = None,
    fills: int = 1,
) -> Timing:
    """Times what `run()` puts on a stream, from event to event on the device.

    run       puts the work on `stream`; called warmups + repeats times
    repeats   how many samples, at least 1
    warmups   runs before them, not timed
    flush_l2  read a buffer of max(256 MiB, 4 times L2) before each sample
    stream    as for `launch`; must be the one that `run` uses
    ordinal   the device; None: the current one
    fills     how often the buffer is read before each sample: more, some 60 us each, hide a slower host

    Allocates the buffer for the call and synchronises the stream: not for use within a graph capture. Raises
    `LowlpValueError` for counts out of range and `DeviceError` for what the driver reports.
    """
    if repeats < 1 or warmups < 0 or fills < 1:
        raise LowlpValueError(
            f"repeats and fills must be at least 1 and warmups at least 0, got {repeats}, {fills} and {warmups}"
        )
    handle = stream_handle(stream)
    ordinal = devices.current_device() if ordinal is None else ordinal
    with devices.on_device(ordinal):
        flush_bytes = max(_MIN_FLUSH_BYTES, 4 * devices.attribute("L2_CACHE_SIZE", ordinal)) if flush_l2 else 0
        buffer = FlushBuffer(flush_bytes) if flush_bytes else None
        events: list[tuple[object, object]] = []
        try:
            for _ in range(warmups):
                run()
            for _ in range(repeats):
                # One by one: those made before one fails are destroyed.
                events.append((call("cuEventCreate", 0), call("cuEventCreate", 0)))  # noqa: PERF401
            for start, end in events:
                if buffer is not None:
                    for _ in range(fills):
                        buffer.read(handle)
                call("cuEventRecord", start, handle)
                run()
                call("cuEventRecord", end, handle)
            call("cuStreamSynchronize", handle)
            return Timing(tuple(1000.0 * float(call("cuEventElapsedTime", start, end)) for start, end in events))
        finally:
            for pair in events:
                for event in pair:
                    call("cuEventDestroy", event)
            if buffer is not None:
                buffer.free()
