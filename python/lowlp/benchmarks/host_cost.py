"""What calls cost the host: above all a cached call of `lowlp.linear`, and of a module of `lowlp.torch`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .cases import GROUP_SIZE, Shape
from .worker import first_line

_ROUNDS: Final = 40
_WARM_UPS: Final = 3
# So many launches fit in a stream's queue, which holds about a thousand: none waits for the GPU.
_CALLS: Final = 200


class HostCost(NamedTuple):
    """Microseconds of a call, over batches of their mean.

    least   where nothing else disturbed the host
    median  with what did: others that share its processors and its bus may slow down launches by half for seconds
    """

    least: float
    median: float


def host_costs(calls: Sequence[Callable[[], object]]) -> list[HostCost]:
    """The host's time from the start of a call to its return.

    Batches of calls begin with an idle GPU and are short enough for the stream's queue. The calls take turns, batch by
    batch, so that a host that is slower for a while is so for all of them.
    """
    import torch

    times: list[list[float]] = [[] for _ in calls]
    for round_ in range(_WARM_UPS + _ROUNDS):
        for call, found in zip(calls, times, strict=True):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(_CALLS):
                call()
            if round_ >= _WARM_UPS:
                found.append((time.perf_counter() - start) / _CALLS * 1e6)
    torch.cuda.synchronize()
    return [HostCost(min(found), statistics.median(found)) for found in times]


class CallCosts(NamedTuple):
    """Microseconds of the host for a cached call, the least: of `linear`, and of `lowlp.torch.Linear` with a bias."""

    linear: float
    module: float


def costs_of_calls(shape: Shape, dtype: str, device: Any) -> CallCosts | str:
    """What both cost with one row; or why that cannot be measured.

    This needs all of lowlp, which compiles the kernel at the first call.
    """
    import torch

    try:
        from lowlp.ops.linear import linear
        from lowlp.torch.linear import Linear
        from lowlp.weights.quantize.quantization import quantize

        weights = torch.randn((shape.n, shape.k), device=device)
        packed = quantize(weights, dtype, group_size=GROUP_SIZE)
        x = torch.randn((1, shape.k), device=device, dtype=torch.float16)
        linear(x, packed)
        bias = torch.zeros(shape.n, device=device, dtype=torch.float16)
        module = Linear.from_quantized(packed, bias, device=device)
        module(x)
    except ImportError as error:
        return f"the compiler is not here: {first_line(str(error), 100)}"
    costs = host_costs([lambda: linear(x, packed), lambda: module(x)])
    return CallCosts(*(cost.least for cost in costs))
