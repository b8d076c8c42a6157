"""What is measured of attention, and what times are held against, in microseconds on an H200."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lowlp.benchmarks.floor import READ_BYTES_PER_S, TARGET_GPU
from lowlp.kernels.attention.spec import CACHE_TYPES
from lowlp_runtime.errors import LowlpValueError

HEADS: Final = 32
HEAD_DIM: Final = 128
PAGE: Final = 64
KINDS: Final = tuple(CACHE_TYPES)
APPEND: Final = "append"
"""The kind of a row is this and the cache's type where tokens are appended."""
_SCALE_BYTES: Final = 2
_OVER_FLOOR: Final = 1.1
_FIXED_US: Final = 8.0
_LONG: Final = 32768


@dataclass(frozen=True)
class Case:
    """One new token of each sequence.

    kv_heads  heads of keys and values, which 32 query heads share
    batch     sequences
    tokens    of each
    """

    kv_heads: int
    batch: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.kv_heads} KV heads, {self.batch} x {self.tokens}"

    def bytes_of(self, kind: str) -> int:
        """Codes, or numbers, and scales of all keys and values."""
        cache = CACHE_TYPES[kind]
        row = HEAD_DIM * cache.bits // 8 + (_SCALE_BYTES if cache.is_coded else 0)
        return 2 * self.batch * self.tokens * self.kv_heads * row

    def floor_us(self, kind: str, read_bytes_per_s: float = READ_BYTES_PER_S) -> float:
        """What reading these takes."""
        return self.bytes_of(kind) / read_bytes_per_s * 1e6


CASES: Final = (Case(32, 8, 4096), Case(32, 1, 4096), Case(8, 8, _LONG), Case(8, 8, 4096), Case(8, 1, _LONG))
QUICK: Final = (CASES[1], CASES[3])
ABLATED: Final = ("cq-4", "cq-2")
"""The paper's configurations of caches."""
ABLATION_CASES: Final = (Case(32, 1, 1024), Case(32, 8, 1024), CASES[1], CASES[0])
"""Of the paper's attention: Llama-7B, 1024 and 4096 tokens, batches of 1 and 8."""
APPEND_BATCH: Final = 8
APPEND_US: Final = 3.0
"""What appending one token of so many sequences may take beyond an empty kernel."""

_MUST: Final = {"cq-4": (75, 17, 140, 25, 25), "cq-2": (65, 16, 125, 23, 23)}
_MAY: Final = {"cq-4": (45, 13, 85, 19, 19), "cq-2": (32, 11, 58, 15, 15)}


def must_us(kind: str, case: Case, gpu: str = TARGET_GPU, read_bytes_per_s: float = READ_BYTES_PER_S) -> float | None:
    """The longest time that is allowed; None where nothing is asked, of codebooks on other GPUs than an H200."""
    if kind in _MUST and case in CASES and gpu == TARGET_GPU:
        return float(_MUST[kind][CASES.index(case)])
    if kind in ("f16", "f8e4m3", "int4") and case == Case(8, 8, _LONG):
        return _OVER_FLOOR * case.floor_us(kind, read_bytes_per_s) + _FIXED_US
    return None


def may_us(kind: str, case: Case, gpu: str = TARGET_GPU) -> float | None:
    """What would be best, on an H200."""
    is_said = kind in _MAY and case in CASES and gpu == TARGET_GPU
    return float(_MAY[kind][CASES.index(case)]) if is_said else None


def parse_kinds(text: str, among: tuple[str, ...] = KINDS) -> tuple[str, ...]:
    """Types of caches, with commas between. Raises `LowlpValueError`."""
    kinds = tuple(text.split(","))
    for kind in kinds:
        if kind not in among:
            raise LowlpValueError(f"--types: must be among {', '.join(among)}, got {kind!r:.40}")
    return kinds
