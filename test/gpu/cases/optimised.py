"""Kernels of `linear` with stages: every form, by small weights of each sort, for few rows and for many.

Shapes are a few tiles, which blocks of a GPU of few multiprocessors share, so that `sanitize.py` gets through them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cases.case import Case
from cases.linears import linear_case
from lowlp.kernels.linear.schedule import Schedule

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from linear_forms import GROUPS, Product, form_of, forms_of, weights, what_differs
from linear_matrix import ERROR_LIMITS

N, K = 200, 640
ROWS = (1, 16, 40, 130)
# Of 8 warps, whose producer gives its registers away.
GIVEN_AWAY = Schedule(16, warps=2, row_tiles=8, slices=4, stages=2, share_tiles=False)
KINDS = ("int1", "int2", "int3", "int4", "int8", "uint4z", "f6e3m2", "nf4", "lut3")


def cases(arch: str) -> Iterator[Case]:
    """Each kind in every form, in groups of 128 and 64 by turns."""
    for number, kind in enumerate(KINDS):
        for place, form in enumerate(forms_of(arch)):
            product = Product(kind, N, K, GROUPS[(number + place) % 2], form)
            x = np.random.default_rng(number).standard_normal((max(ROWS), K)).astype(np.float16)
            for m in ROWS:
                schedule = product.schedule(m, arch)
                name = f"{product}_m{m}"
                case = linear_case(name, product.weights, x[:m], arch, ERROR_LIMITS["f16"], "f16", schedule=schedule)
                assert form_of(schedule) == form
                assert not what_differs(case.kernel.binary, arch, schedule)
                yield case
    for kind in ("int2", "int3", "nf4"):
        x, qw = np.random.default_rng(1).standard_normal((16, K)).astype(np.float16), weights(kind, N, K)
        name = f"{kind}_registers_given_away"
        yield linear_case(name, qw, x, arch, ERROR_LIMITS["f16"], "f16", schedule=GIVEN_AWAY)
