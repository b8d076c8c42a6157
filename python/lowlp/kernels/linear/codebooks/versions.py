"""The versions of VQ-LLM's table IV of a product with codebooks, each with one optimisation more than the one before,
for comparisons:

    gc  all entries in global memory           o2  + the most frequent entries in registers
    sc  all entries in shared memory           o3  + dataflow by books: K divided among blocks
    o1  those that fit, the most frequent      o4  + fusion in registers: vectors are operands as they are

All but o4 exchange vectors through shared memory. All have one copy of an entry, and one division of the work, but for
K; ours beside them is what `schedule_for` chooses.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from lowlp.errors import LowlpValueError
from lowlp.language.kernel_schedule import CODEBOOKS
from lowlp.schedules.device import Device

from ..schedule import SPLITS, Schedule
from ..spec import LinearSpec
from .program import granules_of, has_codebook_program
from .schedules import columns_for

VERSIONS: Final = tuple(name for name in CODEBOOKS if name != "auto")
_BY_BOOKS: Final = ("o3", "o4")
_WARPS: Final = (8, 4, 2, 1)
_STAGES: Final = 3
_F32_BYTES: Final = 4
_MOST_EXCHANGED: Final = 1 << 16
"""Bytes of shared memory for vectors of a unit: books need most of it."""


def version_schedule(spec: LinearSpec, m: int, device: Device, version: str) -> Schedule:
    """The schedule of a version for m rows of x. Raises `LowlpValueError` where there is no such kernel."""
    if version not in VERSIONS:
        raise LowlpValueError(f"version: must be one of {', '.join(VERSIONS)}, got {version!r}")
    for warps in _WARPS:
        plain = Schedule(columns_for(m), warps, stages=_STAGES, row_tiles=spec.rows_of_unit // 16, codebooks=version)
        if _exchanged_bytes(spec, plain) > _MOST_EXCHANGED or not has_codebook_program(spec, plain):
            continue
        if version not in _BY_BOOKS:
            return plain
        splits = paper_splits(spec, plain, m)
        return dataclasses.replace(plain, splits=splits)
    raise LowlpValueError(f"version: no kernel of {version} takes {spec}")


def paper_splits(spec: LinearSpec, schedule: Schedule, m: int) -> int:
    """Parts of K by the paper's rule (section VI): what is read and written to add them is as much as the books that
    are then loaded, a part of those that were before."""
    vectors = spec.vectors
    assert vectors is not None
    entry_bytes = vectors.vector * (1 if vectors.entries in ("int8", "f8e4m3") else 2)
    blocks_of_k = -(-spec.k // (spec.book_columns or spec.k))
    books = (vectors.books << vectors.bits) * entry_bytes
    if vectors.lattices:
        books = math.prod(spec.shape_of_books)
    tiles = -(-spec.columns_of_y // schedule.rows) * -(-m // schedule.columns)
    of_books, of_result = tiles * blocks_of_k * books, m * spec.columns_of_y * _F32_BYTES
    return max(1, min(round(math.sqrt(of_books / of_result)), granules_of(spec, schedule), SPLITS[-1]))


def _exchanged_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Shared memory that the vectors of a unit take."""
    assert spec.vectors is not None
    return 2 * spec.vectors.books * schedule.rows * spec.unit_k
