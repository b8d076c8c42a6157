"""What a cached call of `lowlp.linear` costs the host."""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

from .cases import GROUP_SIZE, Shape
from .worker import first_line

_BATCHES: Final = 40
_CALLS: Final = 50


def host_cost_us(shape: Shape, dtype: str, device: Any) -> float | str:
    """Microseconds from the start of a call of `linear` with one row to its return; or why that cannot be measured.

    The median over batches, each short enough that the driver's queue has room and begun with an idle device. This
    needs all of lowlp, which compiles the kernel at the first call.
    """
    import torch

    try:
        import lowlp

        weights = torch.randn((shape.n, shape.k), device=device)
        packed = lowlp.quantize(weights, dtype, group_size=GROUP_SIZE)
        x = torch.randn((1, shape.k), device=device, dtype=torch.float16)
        for _ in range(_CALLS):
            lowlp.linear(x, packed)
    except ImportError as error:
        return f"the compiler is not here: {first_line(str(error), 100)}"
    times = []
    for _ in range(_BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(_CALLS):
            lowlp.linear(x, packed)
        times.append((time.perf_counter() - start) / _CALLS * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)
