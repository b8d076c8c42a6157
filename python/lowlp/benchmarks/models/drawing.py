"""Problems drawn at random by a seed: a shape, a kind of weights, and a number of rows of x.

Every range of M gets as many problems as the others, and no shape comes again before all have been. Kinds are drawn
field by field, each among what goes together with those before. The same seed gives the same problems, in every version
of Python: `random.Random` promises that of `random()`, from which alone all is drawn.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from lowlp.benchmarks.cases import GROUP_SIZE, Shape, WeightKind
from lowlp.numeric.lookup_tables import nf

from .shapes import Product, shapes

DECODE_RANGES: Final = ((1, 1), *((2**power + 1, 2 ** (power + 1)) for power in range(9)))
"""The least and the largest M of each part of the first draw: 1, 2, 3 to 4, ..., 257 to 512."""
PREFILL_RANGES: Final = tuple((2**power + 1, 2 ** (power + 1)) for power in range(9, 13))
"""Of the second draw: 513 to 1024, ..., 4097 to 8192."""
_PREFILL_PART: Final = 5
"""One problem of so many is of the second draw."""
SEEDS: Final = 1 << 32

T = TypeVar("T")

# What is drawn of each field, and how often in proportion.
_FAMILIES: Final = (("int", 8), ("uint", 4), ("float", 4), ("table", 2), ("bipolar", 1), ("uint alone", 1))
_GROUPS: Final = ((16, 1), (32, 1), (64, 1), (GROUP_SIZE, 1), (0, 1))
_ACTIVATIONS: Final = (("f16", 4), ("bf16", 1))
_WIDE_SCALES: Final = (("own", 12), ("other", 1), ("f32", 2))
_NARROW_SCALES: Final = (("e8m0", 4), ("e4m3", 4))
_ZEROS: Final = (("uint8", 3), ("f16", 1))
_MOST_EXPONENT_BITS: Final = 5
"""Of floats: what f16 holds."""
_SMALL_GROUP: Final = 32
"""Scales of 8 bits are for groups up to this, as in MXFP4 and NVFP4: they save nothing in larger ones."""


@dataclass(frozen=True)
class Cell:
    """A problem: weights of a kind and shape, and M.

    twin      the kind of the same width with groups of 128 and scales of 16 bits, that is timed beside it; None where
              K is no multiple of 128 or there is nothing to compare
    products  which have the shape, in words
    """

    kind: WeightKind
    shape: Shape
    m: int
    twin: WeightKind | None
    products: str

    def __str__(self) -> str:
        return f"{self.kind.name} {self.shape} M={self.m}"


def new_seed() -> int:
    """Another one each time."""
    return secrets.randbelow(SEEDS)


def draw(seed: int, count: int) -> list[Cell]:
    """So many problems: four fifths of the first draw, with up to 512 rows, one fifth of the second, with more."""
    generator = random.Random(seed)
    order = _shapes_in_turn(generator)
    many = count // _PREFILL_PART
    ranges = [
        *(DECODE_RANGES[number % len(DECODE_RANGES)] for number in range(count - many)),
        *(PREFILL_RANGES[number % len(PREFILL_RANGES)] for number in range(many)),
    ]
    found = []
    for least, most in ranges:
        shape, products = next(order)
        kind = draw_kind(generator, shape.k)
        m = least + int(generator.random() * (most - least + 1))
        found.append(Cell(kind, shape, m, _twin(kind, shape.k), ", ".join(map(str, products))))
    return found


def draw_kind(generator: random.Random, k: int) -> WeightKind:
    """A kind whose groups divide rows of k."""
    code, bits = _type(generator, family := _pick(generator, _FAMILIES))
    group = _pick(generator, [(group, weight) for group, weight in _GROUPS if k % (group or k) == 0])
    activation = _pick(generator, _ACTIVATIONS)
    scales = {"own": activation, "other": "bf16" if activation == "f16" else "f16"}
    zeros = _pick(generator, _ZEROS) if family == "uint" else ""
    if zeros and zeros != "uint8":
        # As HQQ has them: of the type of the scales.
        scale = zeros
    elif zeros or not 0 < group <= _SMALL_GROUP:
        scale = _pick(generator, _WIDE_SCALES)
    else:
        # One bit without zero points needs negative scales, which e8m0 has not.
        narrow = [scale for scale in _NARROW_SCALES if (code, scale[0]) != ("int1", "e8m0")]
        scale = _pick(generator, (*_WIDE_SCALES, *narrow))
    values = tuple(nf(bits).tolist()) if family == "table" else ()
    kind = WeightKind("", code, bits, zeros, values, "", group, scales.get(scale, scale), activation)
    return replace(kind, name=name_of(kind), title=name_of(kind))


def name_of(kind: WeightKind) -> str:
    """What tells kinds apart, as a codec is written: 'uint4 g32 f16 zeros:uint8', 'nf4 channel bf16 x:bf16'."""
    code = f"nf{kind.bits}" if kind.table else kind.dtype
    group = f"g{kind.group}" if kind.group else "channel"
    zeros = f" zeros:{kind.zeros}" if kind.zeros else ""
    return f"{code} {group} {kind.scale}{zeros}" + ("" if kind.activation == "f16" else f" x:{kind.activation}")


def ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    """'1, 2, 3-4'."""
    return ", ".join(str(least) if least == most else f"{least}-{most}" for least, most in ranges)


def _shapes_in_turn(generator: random.Random) -> Iterator[tuple[Shape, tuple[Product, ...]]]:
    """All shapes in a random order, then all again in another."""
    every = list(shapes().items())
    while True:
        keys = [generator.random() for _ in every]
        yield from (every[number] for number in sorted(range(len(every)), key=keys.__getitem__))


def _type(generator: random.Random, family: str) -> tuple[str, int]:
    """The type of the codes, and its bits."""
    if family == "float":
        bits = _one_of(generator, range(3, 9))
        exponent = _one_of(generator, range(1, min(bits - 1, _MOST_EXPONENT_BITS) + 1))
        return f"f{bits}e{exponent}m{bits - 1 - exponent}", bits
    bits = _one_of(generator, range(2 if family == "table" else 1, 9))
    return {"int": "int", "bipolar": "bipolar"}.get(family, "uint") + str(bits), bits


def _twin(kind: WeightKind, k: int) -> WeightKind | None:
    """The kind with groups of 128, scales of the activations' type and, where it has zero points, zero points; of
    tables and the like the signed integer. Kinds in larger groups that are plain otherwise need none."""
    is_common = kind.dtype.startswith(("int", "f")) or bool(kind.zeros)
    is_plain = is_common and kind.scale == kind.activation
    if k % GROUP_SIZE or (is_plain and not 0 < kind.group <= _SMALL_GROUP):
        return None
    code = kind.dtype if is_common else f"int{kind.bits}"
    zeros = "uint8" if kind.zeros else ""
    twin = WeightKind("", code, kind.bits, zeros=zeros, scale=kind.activation, activation=kind.activation)
    return replace(twin, name=name_of(twin), title=name_of(twin))


def _pick(generator: random.Random, weighted: Sequence[tuple[T, int]]) -> T:
    place = generator.random() * sum(weight for _, weight in weighted)
    for value, weight in weighted:
        place -= weight
        if place < 0:
            return value
    return weighted[-1][0]


def _one_of(generator: random.Random, choices: Sequence[T]) -> T:
    return choices[int(generator.random() * len(choices))]
