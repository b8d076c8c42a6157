"""Ctrl-C ends a kernel on the CPU target that does not end by itself."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import lowlp
from lowlp import language as ll


def test_a_kernel_that_loops_for_ever_can_be_interrupted() -> None:
    def body(y: ll.Pointer, m: ll.Scalar) -> None:
        (block,) = ll.block_indices()
        while m != 1:
            m = m + 2
        tile = ll.full(m, "int32", layout=lowlp.spatial(32))
        ll.store_global(tile, ll.view_global(y, shape=[96]), offsets=[32 * block])

    parameters = {"y": ll.pointer("int32"), "m": ll.i32}
    kernel = ll.make_kernel(body, name="endless", parameters=parameters, grid=(3,), num_threads=32)
    y = np.zeros(96, np.int32)
    kernel(y, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what runs in the background
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        kernel(y, 2)
    kernel(y, -1)
    assert (y == 1).all()
