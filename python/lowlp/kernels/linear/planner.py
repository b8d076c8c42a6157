"""What products of planes and of bytes take of the same numbers, by which one of them is chosen.

Each is what was measured of its schedule for this very problem, else what was scaled from near ones, else its estimate:
these know N, K, the rows of x and the widths. Estimates rank schedules of one kind; so that two kinds can be compared,
each is corrected by a factor and a constant for a class of rows, fitted to what an H200 took. Of their ratio and that
of rates, which know the widths alone, a weighted geometric mean is taken: their errors have little in common
(docs/adr/0092).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final, NamedTuple

from lowlp.compiler.architectures import DEFAULT_ARCH
from lowlp.compiler.targets import target
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType
from lowlp.schedules.device import Device, device_like
from lowlp.weights.family_choice import gain_of_planes

from .choosing import expected_us
from .integer_sums import for_many_rows
from .measured import MeasuredSchedules, measured_schedules
from .planes.choosing import choose_planes
from .planes.estimates import estimated_us
from .planes.program import PlanesSpec
from .spec import LinearSpec

MANY_ROWS: Final = 4096
"""What is taken where it is not known how many rows of x there will be."""
MOST_PAIRS: Final = 16
"""Products of a plane of weights and one of x, of the widest pair that was measured: of more there are rates alone."""
SHARE_OF_RATES: Final = 0.3
"""The weight of the ratio by rates."""
CLASSES_OF_ROWS: Final = (1, 16, 64)
"""The most rows of each class that has corrections of its own; and all that are more."""


class Correction(NamedTuple):
    """Of an estimate, to what was measured: factor * us + us more."""

    factor: float
    more_us: float

    def __call__(self, us: float) -> float:
        return self.factor * us + self.more_us


class Times(NamedTuple):
    """Microseconds by planes and by bytes."""

    planes: float
    bytes: float


class Gain(NamedTuple):
    """How many times as fast as bytes planes are, and by what that is known."""

    times: float
    reason: str


class Corrections(NamedTuple):
    """Of both paths, for a class of rows."""

    planes: Correction
    bytes: Correction


CORRECTIONS: Final = (
    Corrections(Correction(0.978, 0.83), Correction(0.924, 0.67)),
    Corrections(Correction(0.993, 0.74), Correction(0.942, 0.35)),
    Corrections(Correction(1.014, 0.15), Correction(0.967, 0.93)),
    Corrections(Correction(1.010, 0.40), Correction(1.019, 0.0)),
)
"""For each of `CLASSES_OF_ROWS`, and for more: `lowlp.benchmarks.activations.calibration` fits them."""


def class_of_rows(rows: int) -> int:
    """The place of the corrections for so many rows."""
    return sum(rows > most for most in CLASSES_OF_ROWS)


def planned_gain(codec: Codec, n: int, k: int, x_bits: int, rows: int | None, arch: str = DEFAULT_ARCH) -> Gain:
    """Of weights [n, k] that have planes, with a scale a row, times rows of x with codes of so many bits.

    rows  None: it is not known how many

    Raises `LowlpValueError` for files of LOWLP_TUNED without measured schedules.
    """
    has_warpgroups = bool(target(arch).instructions["wgmma.mma_async"])
    by_rates = gain_of_planes(codec.bits, x_bits, has_warpgroups, rows)
    if not has_warpgroups:
        return Gain(by_rates, f"by rates of {arch}")
    if codec.bits * x_bits > MOST_PAIRS:
        return Gain(by_rates, f"by rates, as no more than {MOST_PAIRS} products of planes were measured")
    many = MANY_ROWS if rows is None else max(rows, 1)
    raw = uncorrected(codec, n, k, x_bits, many, device_like(arch), measured_schedules())
    if raw is None:
        return Gain(by_rates, "by rates, as the matrix is too small for stages")
    times = corrected(raw, many, CORRECTIONS)
    of_both = f"planes {times.planes:.1f} us, bytes {times.bytes:.1f} us"
    return Gain(blended(times, by_rates), f"{of_both} ({n}x{k}, {many} rows), and {by_rates:.2f} by rates")


def corrected(raw: Times, rows: int, corrections: Sequence[Corrections]) -> Times:
    """What estimates of so many rows come to."""
    own = corrections[class_of_rows(rows)]
    return Times(own.planes(raw.planes), own.bytes(raw.bytes))


def blended(times: Times, by_rates: float) -> float:
    """The mean of the ratio of times and that by rates."""
    return float((times.bytes / times.planes) ** (1 - SHARE_OF_RATES) * by_rates**SHARE_OF_RATES)


@functools.lru_cache(maxsize=4096)
def uncorrected(
    codec: Codec, n: int, k: int, x_bits: int, rows: int, device: Device, among: tuple[MeasuredSchedules, ...]
) -> Times | None:
    """As measurements and estimates of schedules have it; None for matrices so small that bytes have no stages."""
    assert isinstance(codec.code, DType)
    spec = LinearSpec(n=n, k=k, codec=codec, activation="int8", aligned=True, x_scale="token")
    of_bytes = expected_us(for_many_rows(spec, rows, True), rows, device, among=among)
    if of_bytes is None:
        return None
    planes = PlanesSpec(
        n=n,
        k=k,
        weight=codec.code.name,
        activation=f"uint{x_bits}",
        zeros=bool(codec.zeros),
        scale="f16",
        x_scale=True,
        out="f16",
    )
    chosen = choose_planes(planes, rows, device, among=among)
    return Times(chosen.us or estimated_us(planes, chosen.schedule, rows, device), of_bytes)
