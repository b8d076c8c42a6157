"""Attention over every kind of cache, size of page and ratio of heads, appended and then compared with float64.

A seeded sample of all cases; with LOWLP_WHOLE_MATRIX=1 those in which any three choices meet (`attention_matrix`), in
half an hour of one core:

    LOWLP_WHOLE_MATRIX=1 pytest test/python/test_attention_matrix.py
"""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from attention_matrix import ALL, BF16, Case, covering, draw
from attention_reference import filled_cache, reference

import lowlp
from lowlp.kernels.attention.spec import CACHE_TYPES

CODEBOOKS = [case for case in ALL if CACHE_TYPES[case.kind].vector]
DRAWN = random.Random(57)
SAMPLE = covering(3) if os.environ.get("LOWLP_WHOLE_MATRIX") else [*DRAWN.sample(ALL, 2), *DRAWN.sample(CODEBOOKS, 2)]


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_equals_float64_on_the_dequantised_cache(case: Case) -> None:
    rng = np.random.default_rng(ALL.index(case))
    drawn = draw(case, rng)
    cache, table = filled_cache(rng, drawn.lengths, **drawn.cache)
    q = 3 * rng.standard_normal((4, case.queries, drawn.heads, case.dim))
    q = q.astype(BF16 if case.activation == "bf16" else np.float16)
    lengths = np.array(drawn.lengths, np.int32)
    o = lowlp.attention_decode(q, cache, table, lengths, splits=drawn.splits, **drawn.options)
    wanted, _ = reference(q, cache, table, drawn.lengths, **drawn.options)
    assert np.linalg.norm(o.astype(np.float64) - wanted) <= drawn.most * np.linalg.norm(wanted)
