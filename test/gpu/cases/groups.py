"""`linear` with groups that are no whole units, two levels of scales and scales of every type: what is chosen for few
rows and for many, on a sample of combinations."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cases.case import Case
from cases.linears import linear_case

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from linear_cover import CASES
from linear_matrix import ERROR_LIMITS, TYPES

N = 136
K = 384
"""A multiple of all groups and of units."""
ROWS = (1, 16, 40, 130)


def cases(arch: str) -> Iterator[Case]:
    """30 combinations or a few less, the same in each run, each with one of the numbers of rows; weights beyond the
    activation type are left out."""
    configs = list(dict.fromkeys(case.config for case in CASES))
    for index, config in enumerate(random.Random(41).sample(configs, 30)):
        qw = config.weights(N, K, seed=index)
        if not np.isfinite(qw.dequantize().astype(TYPES[config.activation]).astype(np.float32)).all():
            continue
        x = np.random.default_rng(index).standard_normal((ROWS[index % 4], K)).astype(TYPES[config.activation])
        yield linear_case(f"groups_{config}_m{len(x)}", qw, x, arch, ERROR_LIMITS[config.activation], config.activation)
