"""Which schedules for experts were the fastest of those that one H200 was given, by the problem and by about how many
rows each expert has (docs/adr/0079).

They go before estimates, where the kernel has a program for them. Each is best in the geometric mean over rows that
choose uniformly and by Zipf's law; 0 stands for few rows, for 1 to 64 tokens and, where these are no more than 8 rows
for each expert, 256.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .experts_candidates import streamed_draft, wide_draft
from .schedule import Schedule
from .spec import LinearSpec

_NEAR: Final = 1.15
"""Rows of an expert that are so many times fewer or more are taken for as many."""


MEASURED: Final[Mapping[tuple[int, int, int, str], Mapping[int, Schedule]]] = {
    (128, 5760, 2880, "f4e2m1 g32 e8m0"): {
        0: streamed_draft(4, 4, 2, 1, 2, 1),
        32: wide_draft(3, 2, 48, 1, 2, "weights"),
        128: wide_draft(2, 2, 72, 2, 2, "weights"),
    },
    (128, 5760, 2880, "int4 g64 f16"): {
        0: streamed_draft(2, 4, 2, 1, 2, 2),
        32: wide_draft(3, 2, 40, 1, 1, "accumulators"),
        128: wide_draft(3, 1, 72, 2, 2, "weights"),
    },
    (128, 2880, 2880, "f4e2m1 g32 e8m0"): {
        0: streamed_draft(2, 4, 4, 1, 2, 1),
        32: wide_draft(3, 1, 48, 1, 8, "weights"),
        128: wide_draft(2, 1, 80, 2, 2, "weights"),
    },
    (128, 2880, 2880, "int4 g64 f16"): {
        0: streamed_draft(1, 4, 4, 1, 2, 2),
        32: wide_draft(3, 1, 40, 1, 4, "accumulators"),
        128: wide_draft(3, 1, 72, 2, 2, "weights"),
    },
    (128, 1536, 2048, "f4e2m1 g32 e8m0"): {
        0: streamed_draft(1, 2, 4, 1, 2, 3),
        64: wide_draft(3, 1, 80, 1, 4, "weights"),
        256: wide_draft(2, 2, 72, 2, 2, "weights"),
    },
    (128, 1536, 2048, "int4 g128 f16"): {
        0: streamed_draft(1, 3, 4, 1, 2, 2),
        16: wide_draft(4, 2, 24, 1, 2, "accumulators"),
        64: wide_draft(4, 1, 80, 1, 4, "weights"),
        256: wide_draft(4, 1, 96, 1, 4, "weights"),
    },
    (128, 2048, 768, "f4e2m1 g32 e8m0"): {
        0: streamed_draft(2, 2, 2, 1, 2, 3),
        16: streamed_draft(8, 1, 1, 1, 4, 2),
        64: wide_draft(3, 1, 80, 1, 4, "weights"),
        256: wide_draft(2, 2, 72, 2, 2, "weights"),
    },
    (128, 2048, 768, "int4 g128 f16"): {
        0: streamed_draft(2, 2, 2, 1, 2, 3),
        16: wide_draft(3, 4, 24, 1, 2, "accumulators"),
        64: wide_draft(2, 2, 64, 1, 2, "accumulators"),
        256: wide_draft(4, 1, 96, 1, 4, "weights"),
    },
    (256, 4096, 7168, "f4e2m1 g32 e8m0"): {
        128: wide_draft(2, 2, 72, 2, 2, "weights"),
        0: streamed_draft(2, 4, 4, 1, 2, 1),
        32: wide_draft(3, 2, 48, 1, 4, "weights"),
    },
    (256, 4096, 7168, "int4 g128 f16"): {
        0: streamed_draft(1, 8, 8, 1, 1, 1),
        32: wide_draft(2, 2, 40, 1, 4, "accumulators"),
        128: wide_draft(3, 1, 72, 2, 2, "weights"),
    },
    (256, 7168, 2048, "f4e2m1 g32 e8m0"): {
        0: streamed_draft(4, 4, 2, 1, 2, 1),
        32: wide_draft(3, 2, 48, 1, 4, "weights"),
        128: wide_draft(2, 2, 72, 2, 2, "weights"),
    },
    (256, 7168, 2048, "int4 g128 f16"): {0: streamed_draft(2, 8, 4, 1, 1, 1)},
}
"""By experts, N, K and codec, and then by rows of each expert: drafts, whose stages are yet to be fitted."""


def measured_schedule(spec: LinearSpec, rows: int) -> Schedule | None:
    """The draft for about so many rows of each expert, 0 for few; None where none was measured."""
    found = MEASURED.get((spec.experts, spec.n, spec.k, str(spec.codec)), {})
    if rows == 0:
        return found.get(0)
    near = [count for count in found if count and max(count, rows) <= _NEAR * min(count, rows)]
    return found[near[0]] if near else None
