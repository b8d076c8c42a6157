"""Weights of every codec, by group, type of activations and zero points: what the tests of `linear` go through.

`FULL` is all of it, for a GPU; `COVERING` has every codec, and with each kind of codec every group, activations and
zero points together, in few kernels.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from codec_samples import SCALES, finite_codes
from numpy.typing import NDArray

from lowlp import QuantizedTensor
from lowlp.numeric.dtypes import all_dtypes, dtype

TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
ERROR_LIMITS = {"f16": 2e-3, "bf16": 1.1e-2}
"""Of the relative Frobenius error against float64."""

INTEGERS = [f"{sign}int{bits}" for bits in range(1, 9) for sign in ("", "u")]
BIPOLAR = [f"bipolar{bits}" for bits in range(1, 9)]
FLOATS = [t.name for t in all_dtypes() if t.is_float and t.bits <= 8]
LEVELS = ("uint4", "int6", "uint8", "int8")
"""Types of integer scales, which super-scales multiply."""
SCOPES = ("tensor", "channel", "group")
TABLES = [f"lut{bits} {scope}" for bits in range(1, 9) for scope in SCOPES]
CODES = INTEGERS + BIPOLAR + FLOATS + TABLES

GROUPS = (16, 32, 64, 128, None)
ACTIVATIONS = ("f16", "bf16")
ZEROS = ("", "integer zeros", "float zeros")
_ZERO_TYPES: dict[str, tuple[Any, ...]] = {
    "integer zeros": (np.uint8, np.int8, np.int16),
    "float zeros": (np.float16, ml_dtypes.bfloat16, np.float32),
}


@dataclass(frozen=True)
class Config:
    """A kind of weights, and the activations that they are multiplied with.

    code   a type's name, or 'lut{b} {scope}'
    group  None: a whole row
    extra  one of `codec_samples.EXTRAS`
    scale  one of `SCALES`; or of `LEVELS`, integers under super-scales, with offsets that are so too, or floats
    """

    code: str
    group: int | None
    activation: str = "f16"
    extra: str = ""
    scale: str = "f16"

    def __str__(self) -> str:
        parts = (self.code, f"g{self.group or 'row'}", self.activation, self.extra, self.scale)
        return "_".join(parts).replace(" ", "_").replace("__", "_")

    @property
    def k(self) -> int:
        """A number of columns that fits: two groups or more, or a row that is no multiple of what kernels take."""
        return 136 if self.group is None else max(2 * self.group, 80)

    def weights(self, n: int, k: int, seed: int = 0) -> QuantizedTensor:
        """Random weights; entries of tables are numbers of bf16, so that both types of activations hold them."""
        rng = np.random.default_rng(seed)
        size = self.group or k
        groups = k // size
        name, _, scope = self.code.partition(" ")
        more: dict[str, Any] = {}
        if scope:
            bits = int(name.removeprefix("lut"))
            shape = {"tensor": (), "channel": (n,), "group": (n, groups)}[scope]
            entries = rng.normal(size=(*shape, 1 << bits)).astype(np.float32).astype(ml_dtypes.bfloat16)
            more["lut"] = entries.astype(np.float16 if seed % 2 else np.float32)
            codes = rng.integers(0, 1 << bits, (n, k))
        else:
            more["dtype"] = name
            codes = rng.choice(finite_codes(dtype(name)), (n, k))
        kinds = _ZERO_TYPES.get("integer zeros" if self.extra == "zeros and scale2" else self.extra)
        if kinds:
            kind = kinds[seed % len(kinds)]
            zeros = rng.uniform(0 if kind is np.uint8 else -9, min(1 << dtype(name).bits, 127), (n, groups))
            more["zeros"] = zeros.astype(np.float32).astype(kind)
        if self.scale in LEVELS:
            return self._in_two_levels(rng, codes.astype(np.uint8), size, seed, more)
        if self.extra == "offsets":
            more["offsets"] = rng.normal(size=(n, groups)).astype(np.float32).astype(list(TYPES.values())[seed % 3])
        if "scale2" in self.extra:
            more["scale2"] = rng.uniform(0.001, 2, (n,) if "row" in self.extra else ())
        scales = rng.uniform(0.01, 2, (n, groups)) * (1 if self.scale == "e8m0" else rng.choice([-1, 1], (n, groups)))
        return QuantizedTensor(
            codes.astype(np.uint8),
            scales=scales.astype(np.float32).astype(SCALES[self.scale]),
            group_size=self.group,
            activation=self.activation,
            **more,
        )

    def _in_two_levels(self, rng: Any, codes: Any, size: int, seed: int, more: dict[str, Any]) -> QuantizedTensor:
        n, k = codes.shape
        kind, element = dtype(self.scale), list(TYPES.values())[seed % 3]
        super_group = math.lcm(64, size) * (1 + seed % 2)
        integers = np.int8 if kind.is_signed else np.uint8

        def level(bound: float) -> tuple[Any, Any]:
            supers = rng.uniform(-bound, bound, (n, -(-k // super_group))) / kind.max
            of_groups = rng.integers(int(kind.min), int(kind.max) + 1, (n, k // size)).astype(integers)
            return of_groups, supers.astype(np.float32).astype(element)

        scales, more["super_scales"] = level(2)
        if self.extra == "offsets" and seed % 2:
            more["offsets"], more["super_offsets"] = level(3)
        elif self.extra == "offsets":
            more["offsets"] = rng.normal(size=(n, k // size)).astype(np.float16)
        return QuantizedTensor(
            codes,
            scales=scales,
            group_size=self.group,
            super_group_size=super_group,
            scale_dtype=self.scale,
            activation=self.activation,
            **more,
        )


@functools.cache
def is_offered(code: str, activation: str, zeros: str = "") -> bool:
    """Whether `linear` takes such weights: f16 holds 5 exponent bits, and only integers have zero points."""
    if zeros and code not in INTEGERS:
        return False
    return activation == "bf16" or " " in code or dtype(code).exponent_bits <= 5


FULL = [
    Config(code, group, activation, zeros, list(SCALES)[index % len(SCALES)])
    for index, (code, group, activation, zeros) in enumerate(itertools.product(CODES, GROUPS, ACTIVATIONS, ZEROS))
    if is_offered(code, activation, zeros)
]


def _covering() -> list[Config]:
    """Kind by kind the wanted combinations, each given to the next code of the kind, and to all codes once."""
    found: list[Config] = []
    scales = itertools.cycle(SCALES)
    for kind in (INTEGERS, BIPOLAR, FLOATS, *([f"lut{bits} {scope}" for bits in range(1, 9)] for scope in SCOPES)):
        zeros = ZEROS if kind is INTEGERS else ("",)
        wanted = list(itertools.product(GROUPS, ACTIVATIONS, zeros))
        codes = list(kind)
        # Codes with few choices first, each with the first combination that is left and fits.
        codes.sort(key=lambda code: is_offered(code, "f16"))
        while codes or wanted:
            code = codes.pop(0) if codes else kind[len(found) % len(kind)]
            fitting = [one for one in wanted if is_offered(code, one[1], one[2])]
            group, activation, zero = fitting[0] if fitting else (GROUPS[len(found) % len(GROUPS)], "bf16", "")
            if fitting:
                wanted.remove(fitting[0])
            found.append(Config(code, group, activation, zero, next(scales)))
    return found


COVERING = _covering()
EXTRAS = [
    Config("uint4", 32, "f16", "offsets", "f16"),
    Config("bipolar3", 16, "bf16", "offsets", "f32"),
    Config("lut3 group", 64, "f16", "offsets", "bf16"),
    Config("f7e5m1", 16, "f16", "offsets", "f32"),
    Config("f6e5m0", 64, "f16", "scale2", "f16"),
    Config("f4e2m1", 16, "f16", "row scale2", "e4m3"),
    Config("lut4 tensor", 64, "bf16", "scale2", "f16"),
    Config("int8", 48, "f16", "scale2", "e8m0"),
    Config("uint5", 8, "bf16", "integer zeros", "f16"),
    Config("uint3", 40, "f16", "float zeros", "f32"),
]
"""Offsets, a second scale, and groups that are padded."""


def relative_error(y: NDArray[Any], x: NDArray[Any], qw: QuantizedTensor, bias: Any = 0.0) -> float:
    """The Frobenius error of y against float64; where sums cancel, relative to what was summed."""
    w, wide = qw.dequantize().astype(np.float64), x.astype(np.float64)
    exact = wide @ w.T + bias
    summed = np.linalg.norm(np.abs(wide) @ np.abs(w).T) / 50
    norm = max(float(np.linalg.norm(exact)), float(summed))
    return float(np.linalg.norm(y.astype(np.float64) - exact)) / (norm or 1.0)


# Random products: (codec, N, K). Groups are padded, or not; N and K are no multiples of anything, or are.
PRODUCTS = [
    (Config("uint4", None, "f16", "integer zeros"), 1, 1),
    (Config("int6", 1, "f16"), 8, 24),
    (Config("int4", 32, "f16", "", "e8m0"), 24, 96),
    (Config("f4e2m1", 16, "bf16", "scale2", "e4m3"), 96, 160),
    (Config("uint3", None, "bf16", "float zeros"), 257, 8),
    (Config("bipolar2", None, "f16"), 160, 257),
    (Config("int8", 8, "f16"), 416, 24),
    (Config("lut4 tensor", 32, "f16"), 24, 416),
    (Config("f6e3m2", None, "f16", "offsets"), 257, 160),
    (Config("uint1", 104, "bf16", "integer zeros"), 160, 416),
    (Config("lut2 channel", 40, "bf16"), 96, 160),
    (Config("f8e4m3", None, "f16", "", "f32"), 8, 257),
]
LARGE_PRODUCTS = [
    (Config("int4", 112, "f16"), 24, 7392),
    (Config("uint6", None, "bf16", "integer zeros"), 7392, 160),
    (Config("int3", 32, "f16"), 416, 416),
]
"""For a GPU only."""
ROWS = (0, 1, 2, 7, 8, 9, 16, 17, 33, 257)
