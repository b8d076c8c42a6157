"""A process that is forked while another thread compiles refuses to compile, in place of hanging."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.forks import compiles
from lowlp.errors import LowlpRuntimeError


def fill(y: np.ndarray) -> None:
    def body(y: ll.Pointer) -> None:
        ll.store_global(ll.full(1.0, "f32", layout=lowlp.spatial(32)), ll.view_global(y, shape=[32]), offsets=[0])

    ll.make_kernel(body, name="fill", parameters={"y": ll.pointer("f32")}, grid=(1,), num_threads=32)(y)


def in_child(queue: Any) -> None:
    y = np.zeros(32, np.float32)
    try:
        fill(y)
        queue.put(y.sum())
    except LowlpRuntimeError as error:
        queue.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_during_a_compilation_refuses_to_compile() -> None:
    context = multiprocessing.get_context("fork")
    queue, begun, end = context.Queue(), threading.Event(), threading.Event()

    def from_child() -> object:
        child = context.Process(target=in_child, args=(queue,))
        child.start()
        result = queue.get(timeout=60)
        child.join()
        return result

    other = threading.Thread(target=compiles(lambda: (begun.set(), end.wait())))
    other.start()
    begun.wait()
    assert "forked while another thread of its parent compiled" in str(from_child())
    end.set()
    other.join()
    assert from_child() == 32
