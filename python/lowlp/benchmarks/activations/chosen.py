"""Which of the measured paths `linear` takes: the rule of `lowlp.kernels.linear.paths`, for tables."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from lowlp.benchmarks.cases import Shape
from lowlp.kernels.linear.planner import planned_gain
from lowlp.weights.family_choice import LEAST_GAIN, family_for_rows

from .cases import ActivationKind
from .preparing import codec_of

_PATH_OF_FAMILY = {"b1": "planes", "s8": "s8", "e4m3": "fp8"}


def chosen_path(kind: ActivationKind, shape: Shape, m: int, among: Sequence[str]) -> str:
    """The path of weights that are packed for neither bytes nor planes yet."""
    wanted = "fp8" if kind.element.startswith("f8") else _of_integers(kind, shape, m)
    return wanted if wanted in among else among[0]


@functools.cache
def _of_integers(kind: ActivationKind, shape: Shape, m: int) -> str:
    if "planes" not in kind.paths:
        return "s8"
    gain = planned_gain(codec_of(kind.weights), shape.n, shape.k, kind.bits, m)
    return "planes" if gain.times >= LEAST_GAIN else "s8"


@functools.cache
def packed_path(kind: ActivationKind, shape: Shape, rows: tuple[int, int]) -> str:
    """The path of one copy of the weights, packed for the fewest and the most rows."""
    codec = codec_of(kind.weights)
    return _PATH_OF_FAMILY[family_for_rows(codec, shape.n, shape.k, kind.activation, rows)]
