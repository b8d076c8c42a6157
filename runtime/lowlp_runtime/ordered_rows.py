"""Rows of x with their columns in the order of permuted weights or of vectors, made before a product by a kernel of its
own.

The kernel's parameters, by name:

    x              [m, k], elements of 16 bits, rows `x_stride` elements apart
    permutation    int32 [columns]: column permutation[j] of x is the j-th of y. Kernels for the order of vectors have
                   none (`lowlp_runtime.vector_order`)
    y              [m, columns], rows `row_stride(columns)` elements apart
    m, x_stride, blocks_of_row   numbers; so many blocks share a row
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.launcher import Launcher

PART: Final = 2048
"""Elements of a row that a block takes at a time."""
_WIDE_ELEMENTS: Final = 8


def row_stride(columns: int) -> int:
    """From row to row of the result, in elements: a multiple of 16 bytes."""
    return -(-columns // _WIDE_ELEMENTS) * _WIDE_ELEMENTS


def launch_numbers(columns: int, m: int, x_stride: int, multiprocessors: int, gathers: bool) -> dict[str, int]:
    """The numbers of a launch by name: of few rows, each is shared by as many blocks as run at once; or as fill the GPU
    twice, where each block brings the row to shared memory and `gathers` from there."""
    parts, of_multiprocessor = -(-columns // PART), 2 if gathers else 8
    blocks = of_multiprocessor * multiprocessors // max(1, m)
    return {"m": m, "x_stride": x_stride, "blocks_of_row": min(parts, max(1, blocks))}


class OrderedRows:
    """What makes the rows, for one number of rows, row stride and device. Any number of threads may use it at once.

    launcher      of the kernel
    permutation   its tensor on the device, which is kept alive; None of a kernel without
    columns, m    of the result
    x_stride      from row to row of x, in elements
    allocate      makes an empty tensor [m, row_stride(columns)] on the device, in the order of PyTorch's current stream
    """

    def __init__(
        self,
        launcher: Launcher,
        permutation: Any,
        columns: int,
        m: int,
        x_stride: int,
        multiprocessors: int,
        allocate: Callable[[], Any],
    ) -> None:
        kept: dict[str, int | float] = dict(
            launch_numbers(columns, m, x_stride, multiprocessors, permutation is not None)
        )
        if permutation is not None:
            kept["permutation"] = launcher.read("permutation", permutation)
        self._launch: BoundLaunch = launcher.bind(kept, ["x", "y"])
        self._permutation = permutation
        self._allocate = allocate

    def make(self, x: int, ordinal: int, stream: int) -> Any:
        """The rows, a new tensor, from those at the address `x`; on `stream`, which is PyTorch's current one of the
        device `ordinal`, so that its memory may go to others once the product is launched."""
        y = self._allocate()
        self._launch.run((x, y.data_ptr()), ordinal, stream)
        return y
