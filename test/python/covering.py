"""Which pairs of types of weights and activations a test takes: a few, all, or as many as cover what matters.

`LOWLP_WHOLE_MATRIX=1` takes all; `LOWLP_WHOLE_MATRIX=covering` so many that every pair of widths, every pair of kinds
of codes, and every type on its side is among them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

Pair = tuple[str, str]


def kind_and_bits(dtype: str) -> tuple[str, int]:
    """('int', 4) of 'int4'; ternary codes have 2 bits."""
    kind = dtype.rstrip("0123456789")
    return kind, int(dtype[len(kind) :] or 2)


def features(pair: Pair) -> set[tuple[object, ...]]:
    """What a pair is one of, to be covered."""
    (kind, p), (of_x, q) = map(kind_and_bits, pair)
    return {("widths", p, q), ("kinds", kind, of_x), ("weights", pair[0]), ("activations", pair[1])}


def covering(pairs: Sequence[Pair], seed: int) -> list[Pair]:
    """Pairs that have all features of all pairs, each time one with the most that were not there yet."""
    shuffled = random.Random(seed).sample(list(pairs), len(pairs))
    left = set().union(*map(features, pairs))
    found = []
    while left:
        found.append(max(shuffled, key=lambda pair: len(features(pair) & left)))
        left -= features(found[-1])
    return found


def drawn(pairs: Sequence[Pair], few: int, seed: int) -> list[Pair]:
    """What the environment asks for; without it a few."""
    wanted = os.environ.get("LOWLP_WHOLE_MATRIX")
    if not wanted:
        return random.Random(seed).sample(list(pairs), few)
    return covering(pairs, seed) if wanted == "covering" else list(pairs)
