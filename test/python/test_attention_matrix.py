"""Attention over every kind of cache, size of page and ratio of heads, appended and then compared with float64.

A seeded sample; with LOWLP_WHOLE_MATRIX=1 all, in about an hour of one core:

    LOWLP_WHOLE_MATRIX=1 pytest test/python/test_attention_matrix.py
"""

from __future__ import annotations

import itertools
import os
import random
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from attention_reference import filled_cache, reference

import lowlp
from lowlp.kernels.attention.spec import CACHE_TYPES, HEAD_DIMS

BF16 = np.dtype(ml_dtypes.bfloat16)
OPTIONS = ("", "window", "sinks", "softcap", "recent", "splits")


class Case(NamedTuple):
    kind: str
    dim: int
    page: int
    group: int
    queries: int
    option: str

    def __str__(self) -> str:
        return f"{self.kind}-d{self.dim}-page{self.page}-group{self.group}-queries{self.queries}-{self.option}"


ALL = [
    Case(*found)
    for found in itertools.product(CACHE_TYPES, HEAD_DIMS, range(16, 129, 16), (1, 4, 8), (1, 3), OPTIONS)
    if found[5] != "recent" or found[0] not in ("f16", "bf16")
]
CODEBOOKS = [case for case in ALL if CACHE_TYPES[case.kind].vector]
DRAWN = random.Random(57)
SAMPLE = ALL if os.environ.get("LOWLP_WHOLE_MATRIX") else [*DRAWN.sample(ALL, 2), *DRAWN.sample(CODEBOOKS, 2)]


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_equals_float64_on_the_dequantised_cache(case: Case) -> None:
    rng = np.random.default_rng(ALL.index(case))
    kv_heads = int(rng.integers(1, 3))
    lengths = [0, 1, *map(int, rng.integers(2, 300, 2))]
    made: dict[str, Any] = {"dtype": case.kind, "head_dim": case.dim, "page": case.page, "kv_heads": kv_heads}
    if vector := CACHE_TYPES[case.kind].vector:
        books = rng.standard_normal((2, kv_heads, case.dim // vector, 256, vector)).astype(np.float16)
        made["codebooks"] = lowlp.KVCodebooks(books)
    if case.option == "recent":
        made["recent"] = int(rng.integers(1, 129))
    cache, table = filled_cache(rng, lengths, **made)
    heads = kv_heads * case.group
    of_option: dict[str, Any] = {
        "window": {"window": int(rng.integers(1, 200))},
        "sinks": {"sinks": rng.standard_normal(heads).astype(np.float32)},
        "softcap": {"softcap": 1.5},
    }
    given = of_option.get(case.option, {})
    activation = BF16 if case.kind == "bf16" or rng.integers(2) else np.dtype(np.float16)
    q = (3 * rng.standard_normal((4, case.queries, heads, case.dim))).astype(activation)
    splits = 3 if case.option == "splits" else None
    o = lowlp.attention_decode(q, cache, table, np.array(lengths, np.int32), splits=splits, **given)
    wanted, _ = reference(q, cache, table, lengths, **given)
    # Results of bf16 are rounded to 8 bits.
    most = 2e-3 + (2**-9 if activation == BF16 else 0.0)
    assert np.linalg.norm(o.astype(np.float64) - wanted) <= most * np.linalg.norm(wanted)
