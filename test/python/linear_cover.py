"""A covering design of what `linear` takes: every codec with every group and every form of scales once, 2625 cases.

All else is drawn by a seed that is the case's name: the type of scales of that form, what is beside them, activations,
the form of kernel and its schedule, M, N, K with and without tails, the type of the result, bias, residual and
epilogue. The tests on the CPU target and on a GPU go through the same cases.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from codec_samples import EXTRAS, SCALES
from linear_matrix import CODES, LEVELS, TYPES, Config, is_offered
from test_linear_epilogues import wanted_of

import lowlp
from lowlp.kernels.linear.candidates import EXACT_ROWS, has_program
from lowlp.kernels.linear.fitting import fits, fitted
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import for_weights, spec_for
from lowlp.kernels.linear.schedule import ROW_TILES, Schedule
from lowlp.kernels.linear.segments import units_of_period
from lowlp.kernels.linear.spec import EPILOGUES, GATED, LinearSpec
from lowlp.schedules.device import device_like

GROUPS = (16, 32, 48, 64, 96, 128, None)
SCALE_FORMS = ("own", "other", "e8m0", "e4m3", "two levels")
"""Scales of the activation type; of another type of 16 bits or f32; of 8 bits; integers under super-scales."""
SCALES_ON = ("accumulators", "weights", "rows")
FORMS = (
    "plain",
    *(f"streamed, {tiles}, {where}" for where in SCALES_ON[:2] for tiles in ("shared", "a tile each")),
    *(f"wgmma, {tiles}, {where}" for where in SCALES_ON for tiles in ("shared", "a tile each", "clusters")),
)
SMOOTH = tuple(epilogue for epilogue in EPILOGUES if epilogue != "relu")
"""Rows of I do not show weights through these; the kernel without shows them."""
DEVICE = device_like("sm_90a")
MULTIPROCESSORS = 2
"""As which work is divided: few, so that blocks share tiles of small matrices."""

_TRIES = 16
_TAILS = {16: (176, 208), 32: (96, 224), 48: (144, 240), 96: (288,), None: (72, 136, 176, 200, 240)}
"""Rows that are no multiple of 64, by group."""


@dataclass(frozen=True)
class Case:
    """Weights, what is multiplied with them and what is done with the result; `number` is its place in `CASES`."""

    config: Config
    scales: str
    number: int
    n: int
    k: int
    m: int
    out: str
    bias: str = ""
    residual: str = ""
    epilogue: str = ""

    def __str__(self) -> str:
        ending = "_".join(filter(None, (self.bias and "bias", self.residual and "residual", self.epilogue)))
        return f"{self.config}-{self.m}x{self.n}x{self.k}-{self.out}{ending and '-' + ending}"

    def weights(self) -> lowlp.QuantizedTensor:
        """The same at each call."""
        return self.config.weights(self.n, self.k, seed=self.number)

    def kernel(self, qw: lowlp.QuantizedTensor) -> tuple[str, LinearSpec, Schedule]:
        """A form, and the spec and a schedule of it: the first form in an order drawn at random that has a program for
        these weights, with and without the epilogue."""
        rng = random.Random(f"kernel {self}")
        spec = spec_for(qw, self.config.activation, self.out, self.bias, True, self.epilogue, self.residual)
        spec = for_weights(spec, qw)
        for form in rng.sample(FORMS, len(FORMS)):
            for schedule in itertools.islice(_schedules(form, spec, self.m, rng), _TRIES):
                specs = {spec, without_epilogue(spec)}
                if schedule.stages:
                    most = min(fitted(one, schedule, DEVICE).stages for one in specs)
                    schedule = replace(schedule, stages=min(schedule.stages, most))
                if all(_has_kernel(one, schedule) for one in specs):
                    return form, spec, schedule
        raise AssertionError("the kernel without stages takes all weights")

    def identity(self) -> np.ndarray:
        """Rows of I, in any order."""
        rng = np.random.default_rng(self.number)
        return np.eye(self.k, dtype=TYPES[self.config.activation])[rng.permutation(self.k)[: self.m]]

    def zeros(self, spec: LinearSpec) -> dict[str, np.ndarray]:
        """A bias and a residual for a kernel that takes them, to which weights may be added without a change."""
        found = {"bias": np.zeros(self.n, TYPES[spec.bias])} if spec.bias else {}
        if spec.residual:
            found["residual"] = np.zeros((self.m, spec.columns_of_y), TYPES[spec.residual])
        return found

    def shown(self, qw: lowlp.QuantizedTensor, identity: np.ndarray, spec: LinearSpec) -> np.ndarray:
        """What a kernel makes of rows of I: weights, rounded once to the type of its result."""
        weights = qw.dequantize()[:, identity.argmax(axis=1)].T
        with np.errstate(over="ignore"):
            return (np.maximum(weights, 0) if spec.epilogue else weights).astype(TYPES[spec.out])

    def random_operands(self, qw: lowlp.QuantizedTensor) -> dict[str, np.ndarray]:
        """x [M, K] by which sums are about 1.5, where epilogues bend, and bias and residual where the case has them."""
        rng = np.random.default_rng(self.number)
        w = qw.dequantize().astype(np.float64)
        size = 1.5 / (math.sqrt(np.mean(w**2) * self.k) or 1.0)
        found = {"x": (rng.standard_normal((self.m, self.k)) * size).astype(TYPES[self.config.activation])}
        columns = self.n // (2 if self.epilogue in GATED else 1)
        if self.bias:
            found["bias"] = rng.standard_normal(self.n).astype(TYPES[self.bias])
        if self.residual:
            found["residual"] = rng.standard_normal((self.m, columns)).astype(TYPES[self.residual])
        return found

    def error(self, y: Any, qw: lowlp.QuantizedTensor, x: Any, bias: Any = 0.0, residual: Any = 0.0) -> float:
        """The Frobenius error of y against float64; where sums cancel, relative to what was summed."""
        wanted = wanted_of(x, qw, self.epilogue or None, bias, residual)
        summed = np.abs(x).astype(np.float64) @ np.abs(qw.dequantize()).astype(np.float64).T
        norm = max(float(np.linalg.norm(wanted)), float(np.linalg.norm(summed)) / 50)
        return float(np.linalg.norm(y.astype(np.float64) - wanted)) / (norm or 1.0)


def without_epilogue(spec: LinearSpec) -> LinearSpec:
    """The spec by which rows of I show weights."""
    return replace(spec, epilogue="", bias="", residual="") if spec.epilogue in SMOOTH else spec


def numbers_of(spec: LinearSpec, schedule: Schedule, case: Case) -> dict[str, int]:
    """What a kernel takes of numbers, by name."""
    product = product_of(spec, schedule)
    stride = spec.columns_of_y if spec.residual else None
    return product.by_name(product.launch_numbers(case.m, case.k, stride, MULTIPROCESSORS))


def _has_kernel(spec: LinearSpec, schedule: Schedule) -> bool:
    """Also one that is as exact as results of f32 are for few rows: of more, weights may be rounded."""
    return not schedule.stages or (has_program(spec, schedule, EXACT_ROWS) and fits(spec, schedule, DEVICE))


def _schedules(form: str, spec: LinearSpec, m: int, rng: random.Random) -> Iterator[Schedule]:
    """Random ones of a form, small ones: what is compiled grows with them."""
    kind, *rest = form.split(", ")
    period = units_of_period(spec)
    while True:
        row_tiles = rng.choice([tiles * spec.products for tiles in (1, 2, 4) if tiles * spec.products in ROW_TILES])
        fields: dict[str, Any] = {"stages": rng.choice((2, 3)), "producer": rng.random() < 0.5}
        if kind == "plain":
            yield Schedule(rng.choice((8, 16, 32)), rng.choice((1, 2)))
        elif kind == "streamed":
            yield Schedule(
                rng.choice((8, 16, 32)),
                warps=rng.choice((1, 2)),
                row_tiles=row_tiles,
                slices=rng.choice((1, 2, 4)),
                units=period if period > 1 else rng.choice((1, 2)),
                steps=rng.choice((1, 2)),
                share_tiles=rest[0] == "shared",
                scales_on=rest[1],
                **fields,
            )
        else:
            columns = min(rng.choice((8, 16, 24, 32, 40)), -(-m // 8) * 8)
            yield Schedule(
                2 * columns if rest[0] == "clusters" else columns,
                warpgroups=rng.choice((1, 1, 2)),
                row_tiles=row_tiles,
                steps=period if period > 1 else rng.choice((1, 2, 4)),
                scales_on=rest[1],
                share_tiles=rest[0] == "shared",
                cluster=2 if rest[0] == "clusters" else 1,
                column_tiles=rng.choice((1, 1, 2)),
                **fields,
            )


# --- the draw ---------------------------------------------------------------------------------------------------------


def _config(code: str, group: int | None, scales: str, rng: random.Random) -> Config:
    activation = rng.choice([kind for kind in ("f16", "bf16") if is_offered(code, kind)])
    if scales == "own":
        scale = activation
    elif scales == "other":
        scale = rng.choice([kind for kind in TYPES if kind != activation])
    elif scales == "two levels":
        # Fields of 6 bits fill bytes in fours, those of 4 bits in twos.
        scale = rng.choice([kind for kind in LEVELS if kind.endswith("8") or group in (16, 48)])
    else:
        scale = scales
    assert scale in SCALES or scale in LEVELS
    extras = [
        extra
        for extra in EXTRAS
        if is_offered(code, activation, "zeros" if "zeros" in extra else "")
        and not (scales == "two levels" and "scale2" in extra)
    ]
    return Config(code, group, activation, rng.choice(["", *extras]), scale)


def _case(number: int, code: str, group: int | None, scales: str) -> Case:
    rng = random.Random(f"{code} {group} {scales}")
    config = _config(code, group, scales, rng)
    period = math.lcm(64, group or 64)
    k = period * rng.choice((1, 2, 3, 4) if period == 64 else (1, 2))
    if config.scale in ("uint4", "int6"):
        k = 192
    elif group in _TAILS and rng.random() < 0.3:
        k = rng.choice(_TAILS[group])
    epilogue = rng.choice(EPILOGUES) if rng.random() < 0.2 else ""
    bias, residual = ((rng.choice(list(TYPES)) if rng.random() < 0.2 else "") for _ in range(2))
    return Case(
        config,
        scales,
        number,
        rng.choice((64, 80, 128, 144) if residual or epilogue else (64, 70, 121, 136)),
        k,
        min(k, rng.choice((2, 3, 7, 8, 9, 16, 17, 24, 33, 40, 65))),
        rng.choice((config.activation, config.activation, "f32")),
        bias,
        residual,
        epilogue,
    )


CASES = [
    _case(number, *combination) for number, combination in enumerate(itertools.product(CODES, GROUPS, SCALE_FORMS))
]
