"""How a kernel for `linear` divides its work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lowlp.errors import LowlpValueError
from lowlp.language.control_flow import MAX_STAGES
from lowlp.language.kernel_schedule import CODEBOOKS, TABLE_COPIES, TABLE_FORMS
from lowlp_runtime.vector_order import LANES

COLUMNS: Final = tuple(range(8, 257, 8))
WARPS: Final = tuple(range(1, 17))
_LISTED: Final = {"columns": "a multiple of 8 up to 256", "splits": "1 to 64", "kept_entries": "0 to 65536"}
_MANY_ACCUMULATORS: Final = 48
"""Of a thread, of one tile."""
UNITS: Final = (1, 2, 3, 5, 7, 9)
STEPS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9)
ROW_TILES: Final = tuple(range(1, 17))
MAX_WARPS: Final = 32
KEPT_ROWS: Final = (0, 1, 2, 4, 8)
PARTS_TYPES: Final = ("f32", "f16")
THROUGH_SHARED: Final = ("gc", "sc", "o1", "o2", "o3")
"""Versions whose vectors go through shared memory."""
SPLITS: Final = tuple(range(1, 65))
MAX_ENTRIES: Final = 1 << 16
"""Of a book."""
_CHOICES: Final[dict[str, Sequence[object]]] = {
    "columns": COLUMNS,
    "warps": WARPS,
    "table_form": TABLE_FORMS,
    "table_copies": TABLE_COPIES,
    "stages": (0, *range(2, MAX_STAGES + 1)),
    "row_tiles": ROW_TILES,
    "slices": (1, 2, 4, 8, 16),
    "units": UNITS,
    "steps": STEPS,
    "producer": (False, True),
    "share_tiles": (False, True),
    "blocks_per_sm": tuple(range(1, 9)),
    "parts_type": PARTS_TYPES,
    "warpgroups": (0, 1, 2, 3, 4),
    "scales_on": ("accumulators", "weights", "rows"),
    "products_in_flight": tuple(range(1, 9)),
    "column_tiles": (1, 2, 4),
    "cluster": (1, 2, 4, 8),
    "kept_rows": KEPT_ROWS,
    "staged_rows": (0, 1, 2, 4),
    "aligned_shares": (False, True),
    "multicast": (1, 2),
    "splits": SPLITS,
    "codebooks": CODEBOOKS,
    "kept_entries": range(MAX_ENTRIES + 1),
    "second_copies": (False, True),
    "partial_sums": (False, True),
    "blocks_at_once": (1, LANES),
}
"""What each field may be."""


@dataclass(frozen=True)
class Schedule:
    """How a kernel for `linear` divides its work. No packed weight depends on it, and results by roundings at most.

    columns        rows of x that a block takes, columns of its tile of y^T: a multiple of 8 up to 256; with
                   `stages` and without `warpgroups` a power of two; see also `staged_rows`
    warps          of a block, one above the other along N: 1 to 16
    table_form     how codes of a lookup table are looked up: 'pair', 'entry', 'register', or 'auto', by estimated cost
    table_copies   of that table, for its banks: a power of two up to 32; 0 chooses

    With `stages` the work is streamed (`streaming`), and the following count:

    stages         of the loop, which loads so many less one ahead: 2 to 9
    row_tiles      of 16 rows, of a warp: 1 to 16; whole units of packed weights
    slices         of K among warps: 1, 2, 4, 8 or 16; a block has warps x slices warps, 32 at most
    units          of 64 weights along K, of a slice in a step: 1, 2, 3, 5, 7 or 9; of groups that are no whole units,
                   as many as are whole groups
    steps          in a stage: 1 to 9
    producer       a warp of its own begins the loads
    share_tiles    blocks divide the work evenly, so that a tile may belong to several; else each tile is one block's
    blocks_per_sm  as which the work is divided: 1 to 8
    parts_type     of accumulators of shared tiles that a block leaves for another: 'f32'; or 'f16', half the bytes,
                   which rounds them, infinite beyond its range; for results of f16 without tables and second scale
    kept_rows      0: x comes in stages; 1, 2, 4 or 8: a block keeps so many rows of x, and m is no more
    staged_rows    of x that come in a stage, of 8 columns: 0, as many, or 1, which all columns get; then m is 1. Of
                   codebooks 1, 2 or 4, which columns get in turn; a block takes so many of any number of rows

    With `warpgroups` too, products are made by `wgmma` (`warpgroups`): warps and units do not count, slices only of
    codebooks, of a stage among warpgroups, row_tiles are of 64 rows and of a warpgroup, and the following count:

    warpgroups          of a block: 1 to 4
    column_tiles        of `columns`, side by side, for which a block decodes its weights once: 1, 2 or 4
    scales_on           'accumulators', of 8-bit floats with one scale for a row once, at the end of a tile; or
                        'weights', which rounds the products of weights and scales; of vectors, whose scales go on
                        accumulators, the sums of several books; or 'rows', the accumulators of whole rows, once at the
                        end of a tile, where a row has one scale; without warpgroups 'accumulators', or 'weights' in
                        groups that are no multiple of 64
    cluster             of so many blocks that have a tile together, each an equal part of K: 1, 2, 4 or 8; more than
                        1 share no tiles otherwise, and each finishes 8 columns or more
    products_in_flight  products of a warpgroup, for each of which it holds its weights: 1 to 8
    aligned_shares      blocks that share tiles have quarters, thirds, halves and so on of one, and begin at the same
                        stages along K; else all have as many stages
    multicast           so many neighbouring blocks take tiles one above the other, and each copies an equal part of the
                        rows of x for all of them: 1, or 2 with a producer and without `cluster`

    Of kernels for codebooks without warpgroups columns, warps, stages, row_tiles, steps, which are units of packed
    weights there, staged_rows and blocks_per_sm count, for how many of which a multiprocessor has registers, and the
    following:

    splits     equal parts of K, each a block's, which the last block of a tile adds in their order: 1 to 64
    codebooks  'auto', or a version of VQ-LLM's table IV: where entries are kept, and whether vectors become operands
               through shared memory, 'gc', 'sc', 'o1', 'o2' and 'o3', or as they are, 'o4' (`codebook_versions`)
    kept_entries  with 'auto', of books that stay in global memory: so many entries, the first ones, are in shared
                  memory too; 0: those that `lowlp-place-codebooks` keeps

    Of kernels for codebooks, by warpgroups or not:

    second_copies  of entries whose codes name one of two copies both are in shared memory; else one

    Of kernels for codebooks by warpgroups:

    blocks_at_once  blocks along K, each with books of its own, that a stage takes side by side: 1 or 4, which each of
                    four lanes takes in another order (`codebooks.blocks_at_once`)

    With `partial_sums` codes name products of x and entries (`codebooks.partial_sums`). There are no stages;
    `kept_rows`, 1 or 2, warps, 4, 8 or 16, row_tiles, which a warp has one after the other, and splits count.

    partial_sums  whether they do
    """

    columns: int = 8
    warps: int = 1
    table_form: str = "auto"
    table_copies: int = 0
    stages: int = 0
    row_tiles: int = 4
    slices: int = 1
    units: int = 1
    steps: int = 1
    producer: bool = True
    share_tiles: bool = True
    blocks_per_sm: int = 1
    parts_type: str = "f32"
    warpgroups: int = 0
    scales_on: str = "accumulators"
    products_in_flight: int = 2
    column_tiles: int = 1
    cluster: int = 1
    kept_rows: int = 0
    staged_rows: int = 0
    aligned_shares: bool = False
    multicast: int = 1
    splits: int = 1
    codebooks: str = "auto"
    kept_entries: int = 0
    second_copies: bool = False
    partial_sums: bool = False
    blocks_at_once: int = 1

    def __post_init__(self) -> None:
        # The search for a schedule makes thousands.
        fields = vars(self)
        for name, allowed in _CHOICES.items():
            if (found := fields[name]) not in allowed:
                listed = _LISTED.get(name, "one of " + ", ".join(map(str, allowed)))
                raise LowlpValueError(f"{name}: must be {listed}, got {found!r}")
        if self.warps * self.slices > MAX_WARPS and not self.warpgroups:
            raise LowlpValueError(
                f"warps, slices: a block has at most {MAX_WARPS} warps, got {self.warps} x {self.slices}"
            )
        if self.warpgroups % self.slices and self.warpgroups:
            raise LowlpValueError(
                f"slices: must divide the number of warpgroups, got {self.slices} of {self.warpgroups} warpgroups"
            )
        if self.blocks_at_once > 1 and not self.has_wgmma:
            raise LowlpValueError(
                f"blocks_at_once: must be 1 without stages or without warpgroups, got {self.blocks_at_once}"
            )
        if self.producer and self.stages and not self.warpgroups and self.warps * self.slices == MAX_WARPS:
            raise LowlpValueError(
                f"producer: must be false, as a block has at most {MAX_WARPS} warps, and {self.warps} x {self.slices} "
                "multiply"
            )

    @property
    def threads(self) -> int:
        """Of a block."""
        return 128 * self.warpgroups or 32 * self.warps * self.slices

    @property
    def has_wgmma(self) -> bool:
        """Whether warpgroups make the products, by `wgmma`."""
        return self.stages > 0 and self.warpgroups > 0

    @property
    def has_tile_each(self) -> bool:
        """Whether each tile is one block's, or one cluster's, so that there are as many of these as tiles."""
        return self.cluster > 1 or not self.share_tiles

    @property
    def exchanges_registers(self) -> bool:
        """Whether the producer is a warpgroup, whose registers the others get: where a block has an SM of its own, and
        its threads have many accumulators."""
        is_large = self.warpgroups > 1 or (
            self.threads == 256 and self.row_tiles * self.columns // 2 > _MANY_ACCUMULATORS
        )
        return self.producer and is_large and self.blocks_per_sm == 1

    @property
    def rows(self) -> int:
        """Rows of W, columns of y, that a block with stages takes."""
        return self.row_tiles * (64 * self.warpgroups_of_slice or 16 * self.warps)

    @property
    def warpgroups_of_slice(self) -> int:
        """Of those of a block, which have rows one above the other."""
        return self.warpgroups // self.slices

    @property
    def columns_of_block(self) -> int:
        """Rows of x that a block takes."""
        return self.columns * self.column_tiles

    @property
    def step_k(self) -> int:
        """Weights along K of a step."""
        return 64 if self.warpgroups else 64 * self.units * self.slices

    @property
    def stage_k(self) -> int:
        """Weights along K of a stage."""
        return self.steps * self.step_k
