"""What is tuned: products of a shape, of kinds of weights and activations, for a number of rows of x; and
which schedules of each are worth a measurement."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.kernels.linear.candidates import CLASSES, candidates, fills, for_rows, with_multicast
from lowlp.kernels.linear.choosing import kind_of, measured_for_shape
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.measured import kind_of_planes
from lowlp.kernels.linear.planes import candidates as of_planes
from lowlp.kernels.linear.planes import estimates as estimates_of_planes
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.kernels.linear.planes.fitting import fits, has_warpgroups
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule, choose_schedule, form_of
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.ops.linear_kernels import compile_for_gpu
from lowlp.ops.planes_kernels import compile_planes
from lowlp.schedules.device import H200, Device

Key = tuple[str, int, int, int]
"""What tells entries of a file apart: kind, N, K, and rows of x."""

# What follows the room for stages, and so is no part of a division of the work.
_NOT_OF_DIVISION: Final = ("stages", "table_form", "table_copies")
# Of fewer rows x is a small part of what blocks copy.
_FEWEST_FOR_MULTICAST: Final = 128
_PAIRED: Final = 3
"""Candidates whose blocks copy x for each other."""
_DRAWN: Final = 4
"""One candidate of so many is drawn from all that fit: estimates alone would never be found wrong."""


@dataclass(frozen=True)
class Problem:
    """Products of halves or of bytes: weights, and the largest M of a class (`candidates.CLASSES`)."""

    spec: LinearSpec
    m: int

    @property
    def key(self) -> Key:
        """What tells entries apart."""
        return kind_of(self.spec), self.spec.n, self.spec.k, self.m

    @property
    def rows(self) -> tuple[int, ...]:
        """The numbers of rows that are measured."""
        return (1, self.m) if self.m == CLASSES[0] else (self.m,)

    def shortlist(self, count: int, device: Device = H200) -> list[Schedule]:
        """The divisions of the work that are worth a measurement, the best by estimate first: the `count` best by
        estimate, what was measured for the shape, and for more than 128 rows the best few whose blocks copy x for each
        other."""
        spec = self.spec

        def cost(schedule: Schedule) -> float:
            return sum(estimated_us(spec, schedule, m, device) for m in self.rows)

        def is_given_back(schedule: Schedule) -> bool:
            """As entries name it."""
            return fills(spec, schedule, self.m, device.multiprocessors)

        best = sorted(filter(is_given_back, candidates(spec, self.m, device)), key=cost)[:count]
        measured = filter(is_given_back, measured_for_shape(spec, self.m, device))
        paired = [with_multicast(spec, found, self.m, device) for found in best if self.m > _FEWEST_FOR_MULTICAST]
        with_pairs = [found for found in paired if found and is_given_back(found)][:_PAIRED]
        return sorted(dict.fromkeys([*best, *measured, *with_pairs]), key=cost)

    def for_rows(self, division: Schedule, rows: int, device: Device) -> Schedule:
        """The schedule of a division's kernel."""
        return for_rows(self.spec, division, rows, device)

    def fields(self, division: Schedule) -> dict[str, Any]:
        """As a file of measured schedules has it."""
        fields = {name: value for name, value in asdict(division).items() if name not in _NOT_OF_DIVISION}
        return {"stages": 2, **fields}

    def compile(self, schedule: Schedule, arch: str) -> CompiledKernel:
        """The kernel. Raises `LowlpError`."""
        return compile_for_gpu(self.spec, schedule, arch)


@dataclass(frozen=True)
class PlanesProblem:
    """Products of bit planes, for m rows of x, a number of `planes.candidates.CLASSES`."""

    spec: PlanesSpec
    m: int

    @property
    def key(self) -> Key:
        """What tells entries apart."""
        kind = kind_of_planes(self.spec.w_code.bits, self.spec.x_code.bits)
        return kind, self.spec.n, self.spec.k, self.m

    @property
    def rows(self) -> tuple[int, ...]:
        """The number of rows that is measured."""
        return (self.m,)

    def shortlist(self, count: int, device: Device = H200) -> list[PlaneSchedule]:
        """The schedules that are worth a measurement, the best by estimate first: the best by estimate, some drawn from
        all others, `count` together; what the rule takes, and what near shapes and widths took."""
        spec = self.spec

        def cost(schedule: PlaneSchedule) -> float:
            return estimates_of_planes.estimated_us(spec, schedule, self.m, device)

        every = sorted(of_planes.candidates(spec, self.m, device), key=cost)
        drawn = min(count // _DRAWN, max(0, len(every) - count))
        best = _apart(every, count - drawn)
        others = [one for one in every[: len(every) // 2 + 1] if one not in best]
        best += random.Random(repr(self.key)).sample(others, min(drawn, len(others)))
        rule = choose_schedule(
            spec,
            self.m,
            has_warpgroups=has_warpgroups(device),
            multiprocessors=device.multiprocessors,
            shared_limit=device.shared_bytes,
        )
        taken = [one for one in (rule, choose_planes(spec, self.m, device).schedule) if fits(spec, one, device)]
        return sorted(dict.fromkeys([*best, *taken]), key=cost)

    def for_rows(self, division: PlaneSchedule, rows: int, device: Device) -> PlaneSchedule:
        """The schedule of a division's kernel: itself, since each number of rows has its own."""
        assert rows == self.m and device
        return division

    def fields(self, division: PlaneSchedule) -> dict[str, Any]:
        """As a file of measured schedules has it."""
        return {"form": form_of(division), **asdict(division)}

    def compile(self, schedule: PlaneSchedule, arch: str) -> CompiledKernel:
        """The kernel. Raises `LowlpError`."""
        return compile_planes(self.spec, schedule, arch)


AnyProblem = Problem | PlanesProblem


def _apart(every: Iterable[PlaneSchedule], count: int) -> list[PlaneSchedule]:
    """The first ones that differ in more than their stages, products in flight or producer: the estimates hardly tell
    those apart, and would fill the list with them."""
    found: dict[object, list[PlaneSchedule]] = {}
    for one in every:
        fields = asdict(one)
        for name in ("stages", "products_in_flight", "producer", "steps"):
            fields.pop(name, None)
        alike = found.setdefault(tuple(fields.items()), [])
        if len(alike) < 2:
            alike.append(one)
        if sum(map(len, found.values())) == count:
            break
    return [one for alike in found.values() for one in alike]
