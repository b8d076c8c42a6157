"""Products with slabs of weights on a GPU: a kernel of ours decodes rows of the weights, PyTorch's library multiplies.

A slab is made, multiplied and forgotten before the next, so that no more than `MOST_BYTES` are there beside the packed
weights; PyTorch's allocator has them for the next call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from lowlp.compiler.compilation import compile
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import Once
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.slab_estimates import parts_of_slabs
from lowlp.kernels.linear.slabs import blocks_for_slab, slab_kernel
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules.device import device_of
from lowlp_runtime.bound_launch import BoundLaunch

_kernels = Once()


class Slabs(NamedTuple):
    """What a product with slabs needs beside x and the result.

    parts     rows of the weights, and the kernel that decodes them, with all that it takes but the slab's address
    allocate  makes room for a slab of so many rows
    wide_sums results are of float32
    """

    parts: tuple[tuple[slice, BoundLaunch], ...]
    allocate: Callable[[int], Any]
    wide_sums: bool

    def run(self, x: Any, y: Any, ordinal: int, stream: int) -> None:
        """Puts y = x @ w^T on PyTorch's current stream, of x [..., K] whose rows have one stride."""
        torch: Any = sys.modules["torch"]
        rows, columns = x.reshape(-1, x.shape[-1]), y.view(-1, y.shape[-1])
        options = {"out_dtype": torch.float32} if self.wide_sums else {}
        for part, launch in self.parts:
            slab = self.allocate(part.stop - part.start)
            launch.run((slab.data_ptr(),), ordinal, stream)
            torch.mm(rows, slab.t(), out=columns[:, part], **options)


def slab_kernel_for(spec: LinearSpec, schedule: Schedule, arch: str) -> CompiledKernel:
    """The kernel that decodes slabs of such weights."""
    key = (spec, schedule, arch)
    kernel: CompiledKernel = _kernels.get(key, lambda: compile(slab_kernel(spec, schedule), arch))
    return kernel


def has_slab_kernel(spec: LinearSpec, schedule: Schedule, arch: str) -> bool:
    """Whether that is compiled."""
    return bool(_kernels.has((spec, schedule, arch)))


@functools.cache
def sums_are_wide() -> bool:
    """Whether this PyTorch multiplies halves to results of float32."""
    return "dtype_out" in sys.modules["torch"].ops.aten.mm.overloads()


def bound_slabs(
    spec: LinearSpec, schedule: Schedule, arch: str, tensors: dict[str, Any], device: Any, wide_sums: bool
) -> Slabs:
    """Slabs of all rows of the weights, of the operands `tensors`."""
    torch: Any = sys.modules["torch"]
    launcher = slab_kernel_for(spec, schedule, arch).launcher
    kept = {name: launcher.read(name, tensor) for name, tensor in tensors.items()}
    dtype = torch.float16 if spec.activation == "f16" else torch.bfloat16
    parts, gpu = [], device_of(device.index)
    for part in parts_of_slabs(spec.n, spec.k):
        rows = part.stop - part.start
        numbers = {"first": part.start, "rows": rows, "blocks": blocks_for_slab(spec, schedule, rows, gpu)}
        parts.append((part, launcher.bind({**kept, **numbers}, ["slab"])))
    return Slabs(tuple(parts), lambda rows: torch.empty((rows, spec.k), dtype=dtype, device=device), wide_sums)
