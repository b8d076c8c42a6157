"""`lowlp.attention_decode` on CUDA tensors: launches, and what later calls of a kind need.

The first call of a kind checks its arguments, finds the kernel and binds a launch; later ones allocate the result and
launch with the addresses of that call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lowlp.compiler.compilation import compile
from lowlp.compiler.kernel_cache import Once
from lowlp.kernels.attention.decode import attention_kernel
from lowlp.kernels.attention.spec import AttentionSchedule, AttentionSpec, default_schedule, takers_of
from lowlp.schedules.device import device_of
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.stream import current_torch_stream

from .kept_calls import KeptCalls
from .kv_cache import STORED
from .linear_launch import allocator

_kernels = Once()
_launches: dict[Any, BoundLaunch] = {}
_MOST_LAUNCHES = 1024


class AttentionCall(NamedTuple):
    """What arguments come to.

    spec      of the kernel
    numbers   parameters that are numbers, by name
    arrays    the others that the caller gave, by name; queries with all of their tokens
    shape     of the result
    """

    spec: AttentionSpec
    numbers: dict[str, int | float]
    arrays: dict[str, Any]
    shape: tuple[int, ...]


class BoundCall(NamedTuple):
    """What a call needs beside its tensors.

    launch         the kernel and its numbers; None without queries
    ordinal        the number of the device
    stored         addresses of the cache's arrays, which stay
    allocate_out, allocate_lse   make the results; None: no logarithms are asked for
    """

    launch: BoundLaunch | None
    ordinal: int
    stored: tuple[int, ...]
    allocate_out: Callable[[], Any]
    allocate_lse: Callable[[], Any] | None

    def run(self, tensors: Iterable[Any]) -> Any:
        """Launches with the caller's tensors, in the order of `AttentionCall.arrays`; returns what it is to return."""
        out = self.allocate_out()
        results = (out,) if self.allocate_lse is None else (out, self.allocate_lse())
        if self.launch is not None:
            addresses = [tensor.data_ptr() for tensor in tensors]
            addresses += [*self.stored, *(result.data_ptr() for result in results)]
            self.launch.run(addresses, self.ordinal, current_torch_stream(self.ordinal))
        return out if self.allocate_lse is None else results


calls: KeptCalls[BoundCall] = KeptCalls()
"""By kinds of calls of `attention_decode`, the identity of the cache first."""


def division(call: AttentionCall, schedule: AttentionSchedule, splits: int, blocks: int) -> dict[str, int]:
    """The parameters that say how the work is divided, where so many blocks run at once."""
    found = {"splits": splits}
    if call.spec.kind.vector:
        found["takers"] = takers_of(call.spec, schedule, call.shape[0], blocks)
    return found


def bind_call(
    call: AttentionCall,
    stored: dict[str, Any],
    splits_of: Callable[[AttentionSchedule, int], int],
    schedule: AttentionSchedule | None = None,
) -> BoundCall:
    """Finds the kernel, and what calls of this kind need.

    stored     the cache's arrays
    splits_of  into how many parts sequences are cut by this schedule, where so many blocks run at once
    schedule   None: what is chosen
    """
    torch: Any = sys.modules["torch"]
    spec, q = call.spec, call.arrays["q"]
    ordinal = q.get_device()
    out = allocator(call.shape, q.dtype, q.device)
    lse = allocator(call.shape[:-1], torch.float32, q.device) if spec.lse else None
    kept = [name for name in STORED if name in stored]
    launch = None
    if call.shape[0]:
        schedule = schedule or default_schedule(spec)
        blocks = schedule.blocks_per_sm * multiprocessors(ordinal)
        numbers = call.numbers | division(call, schedule, splits_of(schedule, blocks), blocks)
        names = [*call.arrays, *kept, "out", *(["lse"] if spec.lse else [])]
        launch = _launch_for(spec, schedule, ordinal, numbers, names)
    return BoundCall(launch, ordinal, tuple(stored[name].data_ptr() for name in kept), out, lse)


def _launch_for(
    spec: AttentionSpec, schedule: AttentionSchedule, ordinal: int, numbers: dict[str, int | float], names: list[str]
) -> BoundLaunch:
    """The launch of a kernel with these numbers; one for all caches that are alike."""
    key = (spec, schedule, ordinal, *numbers.items())
    found = _launches.get(key)
    if found is None:
        arch = device_of(ordinal).arch
        made = functools.partial(compile, attention_kernel(spec, schedule), arch)
        kernel = _kernels.get((spec, schedule, arch), made)
        if len(_launches) >= _MOST_LAUNCHES:
            _launches.clear()
        found = _launches[key] = kernel.launcher.bind(numbers, names)
    return found
