"""Attention over every kind of cache, size of page and ratio of heads on a GPU, appended there and then compared with
float64.

A seeded sample; with LOWLP_WHOLE_MATRIX=1 all cases of `attention_matrix`, in which any three choices meet, those
first in which any two do."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from attention_matrix import ALL, Case, covering, draw  # noqa: E402
from attention_reference import reference  # noqa: E402

SAMPLE = covering(3) if os.environ.get("LOWLP_WHOLE_MATRIX") else random.Random(58).sample(ALL, 8)


@pytest.mark.parametrize("case", SAMPLE, ids=str)
def test_equals_float64_on_the_dequantised_cache(case: Case) -> None:
    rng = np.random.default_rng(ALL.index(case))
    drawn = draw(case, rng)
    width = -(-max(drawn.lengths) // case.page)
    cache = lowlp.KVCache(pages=4 * width + 2, device="cuda", **drawn.cache)
    table = torch.from_numpy(rng.permutation(cache.pages)[: 4 * width].reshape(4, width).astype(np.int32)).cuda()
    for pages, length in zip(table, drawn.lengths, strict=True):
        tokens = torch.arange(length, device="cuda")
        k, v = rng.standard_normal((2, length, cache.kv_heads, case.dim)).astype(np.float32)
        slots = pages[tokens // case.page] * case.page + tokens % case.page
        lowlp.kv_append(cache, torch.from_numpy(k).cuda(), torch.from_numpy(v).cuda(), slots)
    element = torch.bfloat16 if case.activation == "bf16" else torch.float16
    q = torch.from_numpy(3 * rng.standard_normal((4, case.queries, drawn.heads, case.dim))).to("cuda", element)
    given = {name: torch.from_numpy(part).cuda() if name == "sinks" else part for name, part in drawn.options.items()}
    lengths = torch.tensor(drawn.lengths, dtype=torch.int32, device="cuda")
    found = [lowlp.attention_decode(q, cache, table, lengths, splits=drawn.splits, **given) for _ in range(3)]
    wanted, _ = reference(q.float().cpu().numpy(), cache, table.cpu().numpy(), drawn.lengths, **drawn.options)
    error = np.linalg.norm(found[0].float().cpu().numpy() - wanted)
    assert error <= drawn.most * np.linalg.norm(wanted)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
