"""Products with weights of scalar codes, on six shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lowlp.benchmarks import report
from lowlp.benchmarks.acceptance import ABSENT, INCOMPLETE, MET, MISSED
from lowlp.benchmarks.cases import GROUP_SIZE, SHAPES
from lowlp.benchmarks.floor import FLOP_PER_S, OVER_FLOOR
from lowlp.benchmarks.peers import NAMES
from lowlp.benchmarks.requirements import LARGEST

from .measured import Linker, Measured, describe_all

TITLE: Final = "Weights of 1 to 8 bits"
_SUMMARY = f"""\
`lowlp bench`: weights in groups of {GROUP_SIZE} with f16 scales, f16 activations and results, {len(SHAPES)} shapes.
A number is the geometric mean over the shapes of required time / our time, rounded down, and is met at 1
or more. The speed over the rival that is required follows in brackets; at 0.87x a time may be 15 % longer, at 0.833x
20 %. Required time of a shape = max(rival / factor, empty kernel + {OVER_FLOOR} x floor), with floor = max(bytes
/ read bandwidth, 2MNK / {FLOP_PER_S / 1e12:.0f} TFLOP/s)."""
_PLAIN = """\
The kernel of `examples/plain_matmul.py --packed`, in which no layout, copy or barrier is named, by
`benchmarks/plain_matmul.py`: microseconds, and in brackets over the time of `lowlp.linear`, measured in turns."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """What must be reached, and how much of it is."""
    if not measured.results.rows:
        return
    yield _SUMMARY
    yield from report.acceptance_tables(measured.results)
    text = "Cells: " + _counted(report.summary(measured.results), (MET, MISSED, INCOMPLETE, ABSENT))
    if so_far := report.reached_so_far(measured.results):
        text += f"; {so_far} of the incomplete are at 1 or more on the shapes that were measured"
    yield text
    yield links.picture(measured.picture("speedup-over-best"))


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """All times."""
    results = measured.results
    yield describe_all(results.runs)
    if lines := report.missed(results):
        yield "## Missed cells"
        yield "\n".join(f"- {line}" for line in lines)
    yield f"## Fraction of the read bandwidth, N x K = {LARGEST}"
    yield report.fraction_table(results)
    yield "Fractions: " + _counted(report.fraction_summary(results), (MET, MISSED, ABSENT))
    for name in ("speedup-over-humming", "speedup-over-torch", "fraction-of-floor", "time-over-m"):
        yield links.picture(measured.picture(name))
    for who in NAMES:
        if table := report.speedup_table(results, who):
            yield f"## Speed over {'torch f16' if who == 'torch' else who}"
            yield "Geometric means over all shapes of its time / ours."
            yield table
    yield "## Times in microseconds"
    for shape in SHAPES:
        if table := report.times_table(results, shape):
            yield f"### N x K = {shape}"
            yield table
    if plain := report.plain_table(results):
        yield "## A kernel without layouts"
        yield _PLAIN
        yield plain
    if problems := report.problems(results):
        yield "## What has no time"
        yield "\n".join(f"- {line}" for line in problems)


def _counted(counts: Mapping[str, int], statuses: Sequence[str]) -> str:
    """'109 met, 7 missed'."""
    return ", ".join(f"{counts.get(status, 0)} {status}" for status in statuses)
