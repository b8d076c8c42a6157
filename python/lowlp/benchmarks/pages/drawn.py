"""Random problems of ten models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks.floor import OVER_FLOOR
from lowlp.benchmarks.models import report
from lowlp.benchmarks.models.drawing import DECODE_RANGES, PREFILL_RANGES, ranges_text
from lowlp.benchmarks.models.session import AGAIN, CHECKED_COLUMNS, EFFORT
from lowlp.benchmarks.models.shapes import MODELS

from .measured import Linker, Measured, describe

TITLE: Final = "Random problems of ten models"
_DRAWN = f"""\
`lowlp bench --set models` draws them by a seed, new in each run: shapes of the products in the layers of
{", ".join(model.name for model in MODELS[:-1])} and {MODELS[-1].name},
whole and cut for 2, 4 and 8 GPUs; M in equal parts from {ranges_text(DECODE_RANGES)}, and of a fifth of
the problems from {ranges_text(PREFILL_RANGES)}; type, group, scales, zero points, activations.
Times are taken by at least {EFFORT.least} repeats; {CHECKED_COLUMNS} columns of a result are compared with
float64, and all of it must be finite. Required time = max(rival / factor, empty kernel + {OVER_FLOOR} x floor); the
rival is the faster of humming and torch up to 512 rows, and torch above. The {AGAIN} worst are timed again, in turns
with the rival. From the runs of 27 November on, where `linear` decodes weights to memory (slabs), that and the
library's product are timed together; their floors are by the bandwidth that was measured."""
_SUMMARY = """\
Each cell: required / ours (plain: the time of the fastest peer over ours; the least of the rival's time over ours;
number of problems). Bold is what is missed. These are kinds that humming has; others are on the page of details."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Means by range of M of all runs, side by side."""
    if not measured.drawn:
        return
    yield _DRAWN
    yield _SUMMARY
    yield report.means_of_runs(list(measured.drawn.values()))
    yield links.picture(measured.drawn_path)
    yield links.runs({path: one.run for path, one in measured.drawn.items()})


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """Each run."""
    for path, one in measured.drawn.items():
        by = "by measurements and estimate" if one.with_measured else "by estimate alone"
        yield f"## Seed {one.seed} on one {one.run.gpu}, schedules {by}"
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield from report.section(one)
