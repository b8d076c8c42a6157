"""Kernel mapping of products of bit planes, evaluated as APT-LLM does (section VI-D), in microseconds with cold caches.

    python benchmarks/kernel_mapping.py --out mapping.json [--table mine.json] [--budget-s 300] [--candidates 8]
    python benchmarks/kernel_mapping.py --report mapping.json         # the tables again; needs no GPU

Needs a GPU and the compiler. Measures the candidates of a grid of widths, shapes and rows of x, then:

    ablation   *basic*: one tile for all problems, each step loaded when it is needed; *staged*: the same tile, loaded
               ahead; *mapped*: the fastest of the search
    mapping    which schedule that is, by widths, shape and rows
    matching   what near entries give where a shape, or the widths, are left out of the table: the time of the schedule
               that is then taken, over that of the search

Results of all candidates of a problem are compared with each other to the bit. --table writes the fastest as `lowlp
tune` does.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lowlp.errors import LowlpError
from lowlp.kernels.linear.measured import MeasuredSchedules, PlaneEntry, kind_of_planes
from lowlp.kernels.linear.planes.choosing import choose_planes
from lowlp.kernels.linear.planes.fitting import fits
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import FORMS, PlaneSchedule, form_of
from lowlp.kernels.linear.planes.streams import StreamSchedule
from lowlp.schedules.device import H200, Device
from lowlp.tuning.problems import PlanesProblem

WIDTHS = ((1, 1), (2, 2), (4, 4), (1, 2), (3, 3))
"""Bits of weights and of activations; the last two of the smallest shape alone, for matching."""
SHAPES = ((4096, 4096), (8192, 8192), (8192, 28672), (57344, 8192))
ROWS = (1, 16, 64, 256, 1024, 4096)
MOST_OPERATIONS = 1.2e13
"""Of a problem, planes by planes: more take milliseconds, and tell nothing that fewer rows do not."""
BASIC = StreamSchedule(rows=8, warps=4, row_tiles=1, slices=1, steps=1, stages=0)
"""Of all problems whose accumulators fit: two instructions side by side of each warp, nothing loaded ahead."""
STAGED = replace(BASIC, stages=4)
MOST_FIXED = 64
"""Rows of x for which the fixed tile is measured, as in the paper."""
WITHIN = 1.10
"""What matching is meant to reach, over the search (APT-LLM: "near-optimal")."""


@dataclass(frozen=True)
class Listed(PlanesProblem):
    """A problem whose candidates are given."""

    listed: tuple[PlaneSchedule, ...] = ()

    def shortlist(self, count: int, device: Device = H200) -> list[PlaneSchedule]:
        """Those that fit."""
        return [one for one in self.listed if fits(self.spec, one, device)]


def spec_of(p: int, q: int, n: int, k: int) -> PlanesSpec:
    """With scales by channel and by token, results of f16."""
    return PlanesSpec(n, k, f"int{p}", f"int{q}" if q > 1 else "uint1", scale="f16", x_scale=True, out="f16")


def grid() -> Iterator[PlanesProblem]:
    """The problems, those that all tables need first."""
    for n, k in SHAPES:
        for p, q in WIDTHS:
            for m in ROWS:
                if 2.0 * p * q * n * k * m <= MOST_OPERATIONS and ((p, q) in WIDTHS[:3] or n * k <= 1 << 24):
                    yield PlanesProblem(spec_of(p, q, n, k), m)


# --- measuring --------------------------------------------------------------------------------------------------------


def measure(
    problems: list[PlanesProblem], count: int, jobs: int, compile_until: float, until: float, clock: Callable[[], float]
) -> list[dict[str, Any]]:
    """All times of the candidates of problems; those for which no time is left are left out."""
    from lowlp.compiler.architectures import arch_of
    from lowlp.tuning.measuring import times_of
    from lowlp.tuning.preparing import open_folder, prepare
    from lowlp_runtime.device import current_device, multiprocessors

    found: list[dict[str, Any]] = []
    gpu = current_device()
    with tempfile.TemporaryDirectory() as folder:
        prepared = open_folder(Path(folder), arch_of(gpu), multiprocessors(gpu))
        compiled = []
        steps = prepare(prepared, problems, count, jobs)
        try:
            for problem, one in zip(problems, steps, strict=False):
                compiled.append((problem, one))
                if clock() > compile_until:
                    break
        finally:
            steps.close()
        for problem, one in compiled:
            if clock() > until:
                break
            times = times_of(prepared, one)
            right = {candidate.kernels for candidate, _ in times}
            widths = problem.spec.w_code.bits, problem.spec.x_code.bits
            facts = {"p": widths[0], "q": widths[1], "n": problem.spec.n, "k": problem.spec.k, "m": problem.m}
            of_use = [candidate for candidate in one.candidates if not candidate.problem]
            wrong = sum(candidate.kernels not in right for candidate in of_use)
            listed = [{**candidate.schedule, "us": round(us[problem.m], 2)} for candidate, us in times]
            found.append({**facts, "wrong": wrong, "unusable": len(one.candidates) - len(of_use), "times": listed})
    return found


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures in two passes: the search; then what matching takes and the search did not try."""
    begin = time.monotonic()

    def clock() -> float:
        return time.monotonic() - begin

    budget = options.budget_s
    problems = [with_fixed(problem, options.candidates) for problem in grid()]
    results = measure(problems, options.candidates, options.jobs, 0.53 * budget, 0.80 * budget, clock)
    save(options.out, results)
    print(f"{len(results)} of {len(problems)} problems in {clock():.1f} s", flush=True)
    missing = [
        Listed(spec_of(one["p"], one["q"], one["n"], one["k"]), one["m"], tuple(dict.fromkeys(schedules)))
        for one in results
        if (schedules := [taken for taken in matched(one, results) if time_of(one, taken) is None])
    ]
    more = measure(list(missing), options.candidates, options.jobs, 0.94 * budget, 0.99 * budget, clock)
    for found in more:
        one = next(one for one in results if key(one) == key(found))
        one["times"] += found["times"]
        one["wrong"] += found["wrong"]
    save(options.out, results)
    print(f"{len(more)} of {len(missing)} problems with schedules of near entries, {clock():.1f} s", flush=True)
    return results


def with_fixed(problem: PlanesProblem, count: int) -> PlanesProblem:
    """The problem with the fixed tile, with and without stages, among its candidates where rows are few."""
    fixed = (STAGED, BASIC) if problem.m <= MOST_FIXED else ()
    return Listed(problem.spec, problem.m, tuple(dict.fromkeys([*problem.shortlist(count), *fixed])))


def save(path: str | None, results: list[dict[str, Any]]) -> None:
    """Writes all times."""
    if path:
        Path(path).write_text(json.dumps(results, indent=0))


# --- tables -----------------------------------------------------------------------------------------------------------


def key(one: dict[str, Any]) -> tuple[int, ...]:
    """What tells problems apart."""
    return tuple(one[name] for name in ("p", "q", "n", "k", "m"))


def name_of(one: dict[str, Any]) -> str:
    """In tables."""
    return f"W{one['p']}A{one['q']} {one['n']}x{one['k']} M={one['m']}"


def schedule_of(fields: dict[str, Any]) -> PlaneSchedule:
    """Of a candidate with its time."""
    rest = {name: value for name, value in fields.items() if name not in ("form", "us")}
    return FORMS[fields["form"]](**rest)


def time_of(one: dict[str, Any], schedule: PlaneSchedule) -> float | None:
    """What a schedule took; None where it was not measured."""
    fields = {"form": form_of(schedule), **asdict(schedule)}
    times = [time["us"] for time in one["times"] if {**time, "us": 0} == {**fields, "us": 0}]
    return min(times, default=None)


def best_of(one: dict[str, Any]) -> dict[str, Any] | None:
    """The fastest candidate."""
    best: dict[str, Any] | None = min(one["times"], key=lambda time: float(time["us"]), default=None)
    return best


def table_of(results: Iterable[dict[str, Any]], gpu: str = "NVIDIA H200") -> tuple[MeasuredSchedules, ...]:
    """The fastest of each problem, as choices read it."""
    entries = tuple(
        PlaneEntry(*key(one), "sm_90a", gpu, schedule_of(best), best["us"])
        for one in results
        if (best := best_of(one)) is not None
    )
    return (MeasuredSchedules(Path("mapping"), (), entries),)


def left_out(one: dict[str, Any], results: list[dict[str, Any]]) -> dict[str, tuple[MeasuredSchedules, ...]]:
    """The tables without the shape of a problem, and without its widths."""
    shape, widths = (one["n"], one["k"]), (one["p"], one["q"])
    return {
        "shape": table_of(other for other in results if (other["n"], other["k"]) != shape),
        "widths": table_of(other for other in results if (other["p"], other["q"]) != widths),
    }


def matched(one: dict[str, Any], results: list[dict[str, Any]]) -> list[PlaneSchedule]:
    """What is taken where the shape, or the widths, are not in the table."""
    spec = spec_of(*key(one)[:4])
    return [choose_planes(spec, one["m"], among=among).schedule for among in left_out(one, results).values()]


def report(results: list[dict[str, Any]]) -> Iterator[str]:
    """The three tables, as lines."""
    yield f"{sum(one['wrong'] for one in results)} candidates with results of their own"
    yield from ablation(results)
    yield "\nmapping"
    for one in results:
        if best := best_of(one):
            fields = " ".join(f"{name}={value}" for name, value in best.items() if name != "us")
            yield f"{name_of(one):<28} {best['us']:>8.1f} us of {len(one['times'])}: {fields}"
    yield from matching(results)


def ablation(results: list[dict[str, Any]]) -> Iterator[str]:
    """Basic, staged and mapped kernels."""
    yield "\nablation"
    yield f"{'problem':<28} {'basic':>8} {'staged':>8} {'mapped':>8} {'stages give':>13} {'mapping gives':>13}"
    for one in results:
        basic, staged, best = time_of(one, BASIC), time_of(one, STAGED), best_of(one)
        if basic and staged and best:
            gains = f"{basic / staged:>12.2f}x {staged / best['us']:>12.2f}x"
            yield f"{name_of(one):<28} {basic:>8.1f} {staged:>8.1f} {best['us']:>8.1f} {gains}"


def matching(results: list[dict[str, Any]]) -> Iterator[str]:
    """What near entries give, over the search."""
    yield f"\nmatching\n{'problem':<28} {'search':>8} {'left out':>9} {'matched':>8} {'ratio':>6}  why"
    ratios: dict[str, list[float]] = {"shape": [], "widths": []}
    for one in results:
        best, spec = best_of(one), spec_of(*key(one)[:4])
        for what, among in left_out(one, results).items():
            chosen = choose_planes(spec, one["m"], among=among)
            us = time_of(one, chosen.schedule)
            if best is None or "nothing was measured near" in chosen.reason:
                continue
            ratio = f"{us / best['us']:.2f}" if us else "-"
            ratios[what] += [us / best["us"]] if us else []
            shown = f"{us:.1f}" if us else "not measured"
            yield f"{name_of(one):<28} {best['us']:>8.1f} {what:>9} {shown:>8} {ratio:>6}  {chosen.reason}"
    for what, found in ratios.items():
        if found:
            mean = math.exp(sum(map(math.log, found)) / len(found))
            within = sum(ratio <= WITHIN for ratio in found)
            yield f"without the {what}: {within} of {len(found)} within {WITHIN - 1:.0%} of the search, mean {mean:.3f}"


def write_table(path: str, results: list[dict[str, Any]], gpu: str) -> None:
    """The fastest of each problem into a file that `lowlp.use_tuned` reads."""
    from lowlp.tuning.measured import MeasuredFile

    file = MeasuredFile(Path(path), gpu, "--table")
    for one in results:
        if best := best_of(one):
            schedule = {name: value for name, value in best.items() if name != "us"}
            p, q, n, k, m = key(one)
            facts = {
                "arch": "sm_90a",
                "schedule": schedule,
                "us": {str(m): best["us"]},
                "candidates": len(one["times"]),
            }
            file.put((kind_of_planes(p, q), n, k, m), facts)


def main() -> None:
    parser = argparse.ArgumentParser(description="evaluate kernel mapping of products of planes")
    parser.add_argument("--out", metavar="FILE", help="all times, JSON")
    parser.add_argument("--report", metavar="FILE", help="print the tables of such a file")
    parser.add_argument("--table", metavar="FILE", help="write the fastest as `lowlp tune` does")
    parser.add_argument("--gpu", default="NVIDIA H200", help="the name of the GPU that --report's times are of")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--budget-s", type=float, default=300.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        results = json.loads(Path(options.report).read_text()) if options.report else run(options)
        for line in report(results):
            print(line)
        if options.table:
            write_table(options.table, results, options.gpu)
    except LowlpError as error:
        raise SystemExit(f"kernel_mapping: {error}") from error


if __name__ == "__main__":
    main()
