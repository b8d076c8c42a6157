"""Which of the measured paths `linear` takes: the rule of `lowlp.kernels.linear.paths`, for the table."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp.benchmarks.cases import Shape
from lowlp.weights.family_choice import LEAST_GAIN, gain_of_planes

from .cases import ActivationKind


def chosen_path(kind: ActivationKind, shape: Shape, m: int, among: Sequence[str]) -> str:
    """The path of weights that are packed for neither bytes nor planes yet."""
    wanted = "fp8" if kind.element.startswith("f8") else _of_integers(kind, m)
    return wanted if wanted in among else among[0]


def _of_integers(kind: ActivationKind, m: int) -> str:
    is_faster = gain_of_planes(kind.weights.bits, kind.bits, rows=m) >= LEAST_GAIN
    return "planes" if "planes" in kind.paths and is_faster else "s8"
