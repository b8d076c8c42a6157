"""Kernels of the DSL that must be refused, and what is checked of the error.

In every such kernel the line that is to blame ends with the comment `here`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lowlp
from lowlp import language as ll

ROWS = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
COLUMNS = lowlp.local(2, 1).column_spatial(8, 4).local(1, 2)
FLAT = lowlp.local(3).spatial(32)
PARAMETERS = {"x": ll.pointer("f16"), "b": ll.pointer("uint8"), "m": ll.i32, "f": ll.f32}


def zeros(dtype: str = "f32") -> ll.Tile:
    return ll.full(0.0, dtype, layout=ROWS)


def failing_line(body: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(body)
    (number,) = [first + i for i, line in enumerate(lines) if line.rstrip().endswith("# here")]
    return number


def refused(body: Callable[..., Any], error: type[ll.KernelError], text: str) -> ll.KernelError:
    """The error that tracing the body raises, after its text and place have been checked."""
    with pytest.raises(error) as caught:
        ll.make_kernel(body, name="kernel", parameters=PARAMETERS, grid=(1, 1), num_threads=32).module()
    assert text in caught.value.message
    assert (caught.value.filename, caught.value.line) == (inspect.getsourcefile(body), failing_line(body))
    assert f"{Path(caught.value.filename).name}:{caught.value.line}\n" in str(caught.value)
    assert "# here" in str(caught.value)
    return caught.value
