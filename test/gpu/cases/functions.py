"""Functions of f32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import Case
from lowlp import language as ll


def function_kernel(name: str, size: int) -> ll.Kernel:
    """y = f(x) for `size` numbers, 128 of them a block."""

    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        (bi,) = ll.block_indices()
        layout = lowlp.spatial(32).local(4)
        tile = ll.load_global(ll.view_global(x, shape=[size]), offsets=[bi * 128], layout=layout)
        ll.store_global(getattr(ll, name)(tile), ll.view_global(y, shape=[size]), offsets=[bi * 128])

    parameters = {"x": ll.pointer("f32", align=16), "y": ll.pointer("f32", align=16)}
    return ll.make_kernel(body, name=name, parameters=parameters, grid=(size // 128,), num_threads=32)


def cases(arch: str) -> Iterator[Case]:
    """Each function of f32, on numbers whose results are of one size, so that the norm says much of each."""
    size = 1 << 16
    cases: dict[str, tuple[float, float, Callable[[np.ndarray], np.ndarray], float]] = {
        "exp": (80.0, 80.5, np.exp, 2.0**-21),
        "exp2": (-0.5, 0.5, np.exp2, 2.0**-21),
        "log2": (16.0, 64.0, np.log2, 2.0**-21),
        "sqrt": (1.0, 4.0, np.sqrt, 2.0**-24),
        "rsqrt": (1.0, 4.0, lambda x: 1 / np.sqrt(x), 2.0**-22),
        "tanh": (-4.0, 4.0, np.tanh, 2.0**-20),
    }
    for name, (low, high, function, bound) in cases.items():
        x = np.random.default_rng(2).uniform(low, high, size).astype(np.float32)
        arguments: dict[str, Any] = {"x": x, "y": np.zeros_like(x)}
        kernel = lowlp.compile(function_kernel(name, size), arch)
        yield Case(f"function_{name}", kernel, arguments, "y", function(x.astype(np.float64)), bound)
