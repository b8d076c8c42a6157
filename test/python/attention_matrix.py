"""Cases of attention of which any three choices meet in one: type of the cache, channels, size of pages, ratio of
heads, tokens that ask, options, lengths, and type of the queries."""

from __future__ import annotations

import itertools
import random
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import lowlp
from lowlp.kernels.attention.spec import CACHE_TYPES, HEAD_DIMS

BF16 = np.dtype(ml_dtypes.bfloat16)


class Case(NamedTuple):
    page: int
    kind: str
    option: str
    dim: int
    group: int
    lengths: str
    queries: int
    activation: str

    def __str__(self) -> str:
        return (
            f"{self.kind}-d{self.dim}-page{self.page}-group{self.group}-queries{self.queries}-{self.activation}-"
            f"{self.lengths}-{self.option or 'plain'}"
        )

    @property
    def is_allowed(self) -> bool:
        """Numbers need no newest tokens in f16, and those of bf16 take queries of bf16."""
        newest_of_codes = self.option != "recent" or self.kind not in ("f16", "bf16")
        return newest_of_codes and (self.kind != "bf16" or self.activation == "bf16")


CHOICES: tuple[tuple[Any, ...], ...] = (
    tuple(range(16, 129, 16)),
    tuple(CACHE_TYPES),
    ("", "window", "sinks", "softcap", "recent", "splits"),
    HEAD_DIMS,
    (1, 4, 8),
    ("short", "ragged", "long"),
    (1, 3),
    ("f16", "bf16"),
)
ALL = [case for case in map(Case._make, itertools.product(*CHOICES)) if case.is_allowed]
_TRIES = 40
"""Cases of which the one with most that is new is taken."""


def covering(strength: int, seed: int = 57) -> list[Case]:
    """Cases in which all choices of so many kinds meet, where they are allowed to; the first of them are those of
    smaller strengths."""
    drawn, found = random.Random(seed), list[Case]()
    for size in range(2, strength + 1):
        places = list(itertools.combinations(range(len(CHOICES)), size))
        parts = [{tuple(case[place] for place in which) for case in ALL} for which in places]
        for case in found:
            _take(case, places, parts)
        while any(parts):
            # Cases that have one of what is left, in the kinds of which most is left.
            at = max(range(len(places)), key=lambda index: len(parts[index]))
            wanted = dict(zip(places[at], drawn.choice(sorted(parts[at])), strict=True))
            tries = [
                Case(*(wanted.get(place, drawn.choice(choices)) for place, choices in enumerate(CHOICES)))
                for _ in range(_TRIES)
            ]
            best = max((case for case in tries if case.is_allowed), key=lambda case: _new(case, places, parts))
            found.append(best)
            _take(best, places, parts)
    return found


def _new(case: Case, places: list[tuple[int, ...]], parts: list[set[tuple[Any, ...]]]) -> int:
    return sum(tuple(case[place] for place in which) in left for which, left in zip(places, parts, strict=True))


def _take(case: Case, places: list[tuple[int, ...]], parts: list[set[tuple[Any, ...]]]) -> None:
    for which, left in zip(places, parts, strict=True):
        left.discard(tuple(case[place] for place in which))


class Drawn(NamedTuple):
    """What a case has beside its arrays: arguments of the cache and of the call, and the error that is allowed."""

    lengths: list[int]
    cache: dict[str, Any]
    options: dict[str, Any]
    splits: int | None
    heads: int
    most: float


def draw(case: Case, rng: np.random.Generator) -> Drawn:
    """Lengths have 0 and 1; arrays are numpy's."""
    kv_heads = int(rng.integers(1, 3))
    longest = {"short": 17, "ragged": 300, "long": 700}[case.lengths]
    lengths = [0, 1, *map(int, rng.integers(2, longest, 2))]
    cache: dict[str, Any] = {
        "dtype": case.kind,
        "head_dim": case.dim,
        "page": case.page,
        "kv_heads": kv_heads,
    }
    if vector := CACHE_TYPES[case.kind].vector:
        books = rng.standard_normal((2, kv_heads, case.dim // vector, 256, vector)).astype(np.float16)
        cache["codebooks"] = lowlp.KVCodebooks(books)
    if case.option == "recent":
        cache["recent"] = int(rng.integers(1, 129))
    heads = kv_heads * case.group
    options: dict[str, Any] = {
        "window": {"window": int(rng.integers(1, 200))},
        "sinks": {"sinks": rng.standard_normal(heads).astype(np.float32)},
        "softcap": {"softcap": 1.5},
    }.get(case.option, {})
    # Results of bf16 are rounded to 8 bits.
    most = 2e-3 + (2**-9 if case.activation == "bf16" else 0.0)
    return Drawn(lengths, cache, options, 3 if case.option == "splits" else None, heads, most)
