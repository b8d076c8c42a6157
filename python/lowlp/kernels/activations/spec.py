"""What a kernel that quantises activations is specialised for, and how a block divides its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lowlp.activations.hadamard import factors_of
from lowlp.activations.quantize import Rule
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp.numeric.bit_planes import WORD_CODES

ITEM_BYTES: Final = {"f16": 2, "bf16": 2, "f32": 4}
WIDE_BYTES: Final = 16
"""What a thread loads at once, and to which rows are aligned for that."""
_LANES: Final = 32
_THREADS: Final = 128
"""Of a block with several rows; one row has more where it is long."""
_MOST_THREADS: Final = 1024
_HELD: Final = 32
"""Numbers of a row that a thread holds."""
_HELD_BY_SIGNS: Final = 64
"""The same, where a matrix of 12, 20 or 28 needs that many in one thread."""
LONGEST_HELD: Final = _HELD * _MOST_THREADS
"""Numbers of the longest rows that a block holds in its registers, which are 64 for each of 1024 threads."""
LONGEST_NORMED: Final = 20480
"""The same of those that are normed, with a residual and weights beside."""


@dataclass(frozen=True)
class Norm:
    """The RMS norm that comes first.

    weight    type of its weights
    eps       what is added to the mean of the squares
    residual  a residual is added to x before, and the sum is stored too
    """

    weight: str
    eps: float
    residual: bool


@dataclass(frozen=True)
class RowsSpec:
    """What a kernel is specialised for; how many rows there are stays open.

    source    type of x: 'f16', 'bf16' or 'f32'
    k         numbers of a row, or of a group where groups have scales of their own: a group is then a row here
    rule      how numbers become codes; None: they are stored as the type of x
    smooth    numbers are multiplied by a vector first
    silu      rows have 2 k numbers, gates and ups: silu(gate) * up, rounded to the type of x, takes the place of x
    norm      the RMS norm of x, rounded to the type of x, takes the place of x; or None
    hadamard  numbers of a block of the transform, or 0
    aligned   rows begin where 16 bytes are loaded at once, and are whole such parts
    planes    planes are written too
    grouped   rows are parts of longer ones, the outer indices, of which there may be more than of them
    early     the launch may begin before the one in front of it ends
    """

    source: str
    k: int
    rule: Rule | None
    smooth: bool = False
    silu: bool = False
    norm: Norm | None = None
    hadamard: int = 0
    aligned: bool = True
    planes: bool = False
    grouped: bool = False
    early: bool = False

    @property
    def plane_words(self) -> int:
        """Words of a plane of a row."""
        return -(-self.k // WORD_CODES)

    @property
    def needs_more_registers(self) -> bool:
        """Whether a thread of a long row would spill, where reading the row twice is the other way."""
        if self.silu or self.norm or self.rule is None:
            return False
        return self.smooth or not self.rule.symmetric or self.source == "f32"

    @property
    def whole(self) -> int:
        """Numbers of 16 bytes."""
        return WIDE_BYTES // ITEM_BYTES[self.source]


@dataclass(frozen=True)
class Division:
    """How the threads of a block hold rows: a row is `chunks` times `threads` times `vector` numbers, of which the last
    may be beyond its end."""

    rows: int
    chunks: int
    threads: int
    vector: int

    @property
    def padded(self) -> int:
        """Numbers of a row with those beyond its end."""
        return self.chunks * self.threads * self.vector

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        return self.rows * self.threads

    @property
    def layout(self) -> Layout:
        """Of the tile [rows, padded], as it is loaded and stored."""
        of_row = local(1, self.chunks) * spatial(1, self.threads) * local(1, self.vector)
        return spatial(self.rows, 1) * of_row

    @property
    def by_words(self) -> Layout:
        """The same tile, each thread with 32 numbers side by side."""
        words = self.chunks * self.vector // WORD_CODES
        return spatial(self.rows, 1) * local(1, words) * spatial(1, self.threads) * local(1, WORD_CODES)


def division_of(spec: RowsSpec) -> Division | None:
    """How a block divides its rows; None where no block holds a row in its registers."""
    if spec.hadamard:
        return _for_transform(spec)
    # What the order of sums depends on must not depend on where x lies.
    vector = spec.whole if spec.aligned or spec.norm else 1
    if spec.k > LONGEST_HELD // (2 if spec.needs_more_registers else 1):
        return None
    threads = -(-spec.k // _HELD)
    if not spec.planes and threads < _LANES:
        # Short rows: as many threads as have whole vectors, so that lanes load what lies side by side.
        threads = min(_LANES, -(-spec.k // vector))
    if threads > _LANES:
        return Division(1, _HELD // vector, -(-threads // _LANES) * _LANES, vector)
    threads = _power_from(threads)
    chunks = _HELD // vector if spec.planes else -(-spec.k // (threads * vector))
    return Division(max(1, _THREADS // threads), chunks, threads, vector)


def _for_transform(spec: RowsSpec) -> Division | None:
    """Threads of a row are a power of two, so that numbers a power of two apart are in one thread, in two lanes of a
    warp, or in two warps."""
    factors = factors_of(spec.hadamard)
    assert factors is not None, "a block that checked_block refuses"
    odd, power = factors
    if odd > 1:
        # The matrix works on numbers of one thread, which has all of a block that are `power` apart.
        if spec.k != spec.hadamard or spec.rule is not None:
            return None
        vector = min(spec.whole, power, _power_to(_HELD_BY_SIGNS // odd))
        threads = power // vector
        return Division(max(1, _THREADS // threads), odd, threads, vector) if threads <= _MOST_THREADS else None
    vector = spec.whole
    threads = max(_power_from(-(-spec.k // _HELD)), min(_LANES, _power_from(-(-spec.k // vector))))
    if threads > _MOST_THREADS // (1 if spec.rule is None else 2):
        return None
    together = max(1, power // (threads * vector), WORD_CODES // vector if spec.planes else 1)
    chunks = -(-spec.k // (threads * vector * together)) * together
    return Division(max(1, _THREADS // threads), chunks, threads, vector)


def _power_from(number: int) -> int:
    """The least power of two that is not below."""
    return 1 << (number - 1).bit_length()


def _power_to(number: int) -> int:
    """The largest power of two that is not above."""
    return 1 << (number.bit_length() - 1)
