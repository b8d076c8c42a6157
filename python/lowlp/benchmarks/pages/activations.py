"""Products with quantised activations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks.activations import report
from lowlp.benchmarks.activations.choices import choices_table
from lowlp.benchmarks.activations.plots import effective_tops

from .measured import Linker, Measured, describe_all, tops_path

TITLE: Final = "Quantised activations"
_SUMMARY = """\
Products from codes to f16 by `lowlp bench --activations`, in geometric means over shapes of required over our time, and
in brackets the speed over the rival and the factor asked. The rival is the fastest library with such weights and
activations of 8 bits. Required time = max(rival / factor, empty kernel + 1.08 x floor)."""
_DETAILS = """\
Microseconds by each path of ours, bold the one that `linear` takes, and the rival's. Sums of integers with a scale a
row are equal to the exact ones, to the bit after scales; others are within 2e-3, of 8-bit floats 5e-3. `_int_mm`
returns int32 and takes no scales; up to 16 rows are padded for it to 32."""

_COUNTS: Final = """\
Cells whose path takes more than 5 % longer than another one, by how the weights are packed: held against planes and
bytes, whose sums are exact, and against f16 too, which rounds x times its scale and is taken where it is asked for.
Times of f16 are without the launch that makes halves of codes."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Required over ours."""
    if not measured.activations:
        return
    yield _SUMMARY
    for path, one in measured.activations.items():
        if len(measured.activations) > 1:
            gpus, shapes = sorted({run.gpu for run in one.runs}), dict.fromkeys(str(row.shape) for row in one.rows)
            yield f"One {', '.join(gpus)}, {min(run.date for run in one.runs)[:10]}, {', '.join(shapes)}:"
        yield report.required_table(one)
        if lines := report.halves_lines(one):
            yield "\n".join(f"- {line}" for line in lines)
        if effective_tops(one) is not None:
            yield links.picture(tops_path(path))


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """All times."""
    for number, (path, one) in enumerate(measured.activations.items()):
        if not number:
            yield _DETAILS
        yield describe_all(one.runs)
        yield links.link("results", path)
        yield report.times_table(one)
        if counts := choices_table(one):
            yield _COUNTS
            yield counts
        if lines := report.badly_chosen(one):
            yield "Cells where another path is more than 5 % faster than the one that is taken:"
            yield "\n".join(f"- {line}" for line in lines)
