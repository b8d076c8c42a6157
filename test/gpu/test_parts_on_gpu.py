"""Parts of weights, as several GPUs have them, on one GPU: columns have the bits of the whole, sums are near."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import lowlp  # noqa: E402
from lowlp.weights.parts import Part, cuts_of, part_of_arrays, ranges  # noqa: E402

N, K = 6144, 4096
KINDS: dict[str, Any] = {
    "int4": ({"group_size": 128}, torch.float16, {}),
    "int4 gate": ({"group_size": 128}, torch.float16, {"epilogue": "silu_mul"}),
    "int8": ({"group_size": None, "activation": "bf16"}, torch.bfloat16, {"out_dtype": "f32"}),
    "int2": ({"group_size": 32}, torch.float16, {}),
    "mxfp4": ({"activation": "bf16"}, torch.bfloat16, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_compute_what_one_gpu_does(kind: str) -> None:
    options, dtype, of_call = KINDS[kind]
    w = np.random.default_rng(1).standard_normal((N, K), np.float32)
    qw = lowlp.quantize(w, kind.split()[0], **options)
    arrays, header = qw.to_arrays()
    cuts = cuts_of(header)
    blocks = 2 if of_call.get("epilogue") else 1
    for m in (1, 16, 40, 300, 2000):
        x = torch.randn(m, K, device="cuda", dtype=dtype)
        whole = lowlp.linear(x, qw, batch_invariant=True, **of_call)
        columns = []
        for part in ranges(N // blocks, 4, cuts.rows, "N"):
            rows = tuple(slice(first + part.start, first + part.stop) for first in range(0, N, N // blocks))
            cut = part_of_arrays(arrays.__getitem__, header, Part(rows, slice(0, K)))
            columns.append(lowlp.linear(x, cut, batch_invariant=N, **of_call))
        assert torch.equal(torch.cat(columns, -1), whole), m
        if blocks == 1:
            added = torch.zeros(m, N, device="cuda")
            for part in ranges(K, 4, cuts.columns, "K"):
                cut = part_of_arrays(arrays.__getitem__, header, Part((slice(0, N),), part))
                added += lowlp.linear(x[:, part].contiguous(), cut, out_dtype="f32")
            assert (added - whole.float()).norm() < 2e-3 * whole.float().norm(), m
