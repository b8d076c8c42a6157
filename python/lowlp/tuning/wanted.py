"""Which problems a call of the tuner means: shapes, kinds of weights and of activations, by all paths that take them
exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.activations import FLOATS, HALVES
from lowlp.kernels.linear.candidates import CLASSES
from lowlp.kernels.linear.operands import like_most
from lowlp.kernels.linear.paths import obstacle
from lowlp.kernels.linear.planes.candidates import CLASSES as CLASSES_OF_PLANES
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.spec import LinearSpec, check_codec
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType
from lowlp.ops.quantized_linear import activation_of_kernel

from .problems import AnyProblem, PlanesProblem, Problem

ROWS: Final = tuple(sorted({*CLASSES, *CLASSES_OF_PLANES}))
"""Numbers of rows of x for which there are entries, of one path or another."""
_TUNED_PATHS: Final = ("planes", "s8", "fp8")


class Weights(NamedTuple):
    """A matrix to be multiplied by.

    codec  what its codes mean
    """

    n: int
    k: int
    codec: Codec


def problems_of(
    weights: Iterable[Weights], activations: Sequence[str], rows: Sequence[int] | None = None, path: str | None = None
) -> list[AnyProblem]:
    """All problems, each once, by activation, weights, path and rows.

    activations  as `lowlp.linear` takes them: 'f16', 'bf16', 'int1' to 'int8', 'uint1', ... 'ternary', 'f8e4m3'
    rows         of x, of `ROWS`; None: all that a path has entries for
    path         'planes', 's8' or 'fp8' for quantised activations alone; None: each that takes them exactly

    Raises `LowlpValueError`, which names the argument, for what no kernel takes, and rows that a path has no entries
    for.
    """
    if path is not None and path not in _TUNED_PATHS:
        raise LowlpValueError(f"path: must be None or one of {', '.join(_TUNED_PATHS)}, got {path!r:.40}")
    found: dict[object, AnyProblem] = {}
    held = list(weights)
    for activation in activations:
        for one in held:
            for problem in _problems(one, activation, rows, path):
                found.setdefault(problem.key, problem)
    if not found:
        listed = ", ".join(map(str, rows or ()))
        raise LowlpValueError(f"m: no path for {', '.join(activations)} has entries for {listed} rows")
    return list(found.values())


def _problems(weights: Weights, activation: str, rows: Sequence[int] | None, path: str | None) -> Iterator[AnyProblem]:
    x_type, _, bipolar = activation_of_kernel(activation)
    n, k, codec = weights
    of_halves = [m for m in CLASSES if rows is None or m in rows]
    if x_type in HALVES:
        if path is not None:
            raise LowlpValueError(f"path: {path!r} is of quantised activations, got {activation}")
        check_codec(codec, x_type, "weights")
        spec = like_most(LinearSpec(n, k, codec, activation=x_type, aligned=True))
        yield from (Problem(spec, m) for m in of_halves)
        return
    reasons = {one: obstacle(one, codec, k, x_type) for one in _TUNED_PATHS if path in (None, one)}
    if all(reasons.values()):
        usual = "fp8" if x_type in FLOATS else "s8"
        raise LowlpValueError(f"weights: {reasons.get(usual, next(iter(reasons.values())))}")
    for one in (name for name, reason in reasons.items() if not reason):
        if one != "planes":
            spec = LinearSpec(n, k, codec, activation=x_type, x_scale="token", x_bipolar=bipolar, aligned=True)
            yield from (Problem(spec, m) for m in of_halves)
            continue
        assert isinstance(codec.code, DType)
        of_planes = PlanesSpec(
            n,
            k,
            codec.code.name,
            activation,
            zeros=bool(codec.zeros),
            scale=codec.scale,
            x_scale=True,
            out="f16",
        )
        yield from (PlanesProblem(of_planes, m) for m in CLASSES_OF_PLANES if rows is None or m in rows)
