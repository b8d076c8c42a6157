"""Rings of stages with mbarriers, bulk copies both ways, and boxes of tensors with every swizzle."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case

_FIRST_MAJOR_WITH_BULK_COPIES = 9


def cases(arch: str) -> Iterator[Case]:
    """The programs of test/python/test_bulk_copies.py; none where the architecture has no bulk copies."""
    if int(arch.removeprefix("sm_").rstrip("a")) // 10 < _FIRST_MAJOR_WITH_BULK_COPIES:
        return
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
    programs = importlib.import_module("test_bulk_copies")
    rng = np.random.default_rng(0)
    x = rng.integers(-8, 8, (programs.ROWS, programs.STEPS * programs.COLUMNS)).astype(np.float16)
    wanted = x.reshape(programs.ROWS, programs.STEPS, programs.COLUMNS).sum(axis=1, dtype=np.float64)
    for tensor in (False, True):
        kernel = lowlp.compile(programs.make_ring(tensor=tensor), arch)
        arguments = {"x": x, "y": np.zeros(wanted.shape, np.float32)}
        yield Case(f"ring_{'tensor' if tensor else 'bulk'}", kernel, arguments, "y", wanted, 0.0)
    x = rng.standard_normal((8, 64)).astype(np.float16)
    kernel = lowlp.compile(programs.make_store(columns=64), arch)
    yield Case("bulk_to_global", kernel, {"x": x, "y": np.zeros_like(x)}, "y", x, 0.0)
    for (dtype, box), layout in programs.LAYOUTS.items():
        if dtype == "int8":
            continue  # as uint8
        kernel = lowlp.compile(programs.make_box(layout, dtype, box), arch)
        kind = {"f16": np.float16, "f32": np.float32, "uint8": np.uint8}[dtype]
        m, k = 45, 112
        x = rng.integers(1, 100, (m, k)).astype(kind)
        padded = np.zeros((m + 200, k + 200), kind)
        padded[100 : 100 + m, 100 : 100 + k] = x
        for i, j in ((0, 0), (7, 16), (-5, -16), (40, 96)):
            wanted = padded[100 + i : 100 + i + box[0], 100 + j : 100 + j + box[1]].astype(np.float64)
            arguments = {"x": x, "y": np.zeros(box, kind), "m": m, "k": k, "i": i, "j": j}
            yield Case(f"box_{dtype}_{box[0]}x{box[1]}_{i}_{j}", kernel, arguments, "y", wanted, 0.0)
