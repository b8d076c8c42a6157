"""What runs in the worker's process on the GPU: units of work, and what is measured once."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from lowlp_runtime.device import multiprocessors
from lowlp_runtime.launch import launch

from .cases import ALL_KINDS, Shape
from .host_cost import costs_of_calls
from .ours import OurProduct
from .peers import peer
from .prepared import PreparedKernels
from .results import Row, rounded
from .theirs import TheirProduct
from .timing import Effort, time_call
from .worker import Facts, Settings, Unit, first_line, serve

_READ_BYTES: Final = 2 << 30


class Product(Protocol):
    """Something with weights on the GPU."""

    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Checks and times M rows. Raises whatever goes wrong."""


def run_worker(connection: Any, settings: Settings) -> None:
    """Serves the parent until it hangs up."""
    serve_on_gpu(connection, settings, open_product)


def serve_on_gpu(
    connection: Any,
    settings: Settings,
    open_: Callable[[PreparedKernels | None, Unit, Settings, Any], Product],
) -> None:
    """Serves the parent until it hangs up.

    open_  makes the weights of a unit, with the folder of kernels, the settings and the device
    """
    import torch

    device = torch.device("cuda", torch.cuda.current_device())
    stream = int(torch.cuda.current_stream(device).cuda_stream)
    prepared = None if settings.kernels is None else PreparedKernels.load_index(settings.kernels)
    if prepared is not None:
        prepared.check_device(multiprocessors(torch.cuda.current_device()))

    def open_unit(unit: Unit) -> Callable[[int], Row]:
        # The weights of the unit before are no longer referenced; what it left in PyTorch's cache may be large.
        gc.collect()
        torch.cuda.empty_cache()
        product = open_(prepared, unit, settings, device)
        return lambda m: product.measure(m, stream, settings.effort)

    with torch.no_grad():
        serve(connection, lambda: _calibrate(prepared, settings, device, stream), open_unit, _why_dead)


def open_product(prepared: PreparedKernels | None, unit: Unit, settings: Settings, device: Any) -> Product:
    """What a unit measures."""
    if unit.who != "lowlp":
        kinds = ALL_KINDS if prepared is None else {**ALL_KINDS, **prepared.kinds}
        kind = kinds.get(unit.kind, unit.kind)
        return TheirProduct(peer(unit.who), kind, unit.shape, unit.rows, device, settings.checked_columns)
    assert prepared is not None, "units of ours come with a folder of kernels"
    return OurProduct(prepared, unit.kind, unit.shape, max(unit.rows), device, settings.checked_columns)


def _why_dead() -> str:
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as error:
        return f"the device is lost to this process: {first_line(str(error), 120)}"
    return ""


def _calibrate(prepared: PreparedKernels | None, settings: Settings, device: Any, stream: int) -> Facts:
    """An empty kernel, the read bandwidth where that is asked for, and the host's time for a call."""
    facts = Facts()
    notes = []
    _warm_up(device)
    if prepared is not None:
        empty = prepared.load_empty()
        facts.empty_us = rounded(
            time_call(lambda: launch(empty, (0,), stream=stream), stream, Effort(least=50)).median_us
        )
    if settings.measure_read:
        facts.read_bytes_per_s = read_bytes_per_s(device, stream)
    if settings.host_cost:
        found = costs_of_calls(Shape(4096, 4096), "int4", device)
        if isinstance(found, str):
            notes.append(f"host time of a call not measured: {found}")
        else:
            facts.host_us, facts.module_us = rounded(found.linear), rounded(found.module)
    facts.notes = tuple(notes)
    return facts


def _warm_up(device: Any) -> None:
    """Half a second of products, so that clocks are up."""
    import torch

    a = torch.randn(4096, 4096, device=device, dtype=torch.float16)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()


def read_bytes_per_s(device: Any, stream: int) -> float | None:
    """Of a sum over 2 GiB, to significant digits; None where it has no time."""
    import torch

    data = torch.randn(_READ_BYTES // 4, device=device)
    return rounded(_READ_BYTES / (time_call(data.sum, stream, Effort()).median_us * 1e-6))
