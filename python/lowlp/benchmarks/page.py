"""docs/performance.md: what was measured, as the bench itself writes it. The same results give the same text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from lowlp.drawing.svg import to_svg

from . import ablation, book_targets, report
from .acceptance import ABSENT, INCOMPLETE, MET, MISSED
from .activations import report as of_activations
from .activations.plots import effective_tops
from .attention import results as of_attention
from .attention.cases import HEAD_DIM, HEADS, PAGE
from .cases import GROUP_SIZE, SHAPES
from .floor import FLOP_PER_S, OVER_FLOOR
from .models import report as models_report
from .models.drawing import DECODE_RANGES, PREFILL_RANGES, ranges_text
from .models.model_results import MODELS_MARK, ModelResults
from .models.session import AGAIN, CHECKED_COLUMNS, EFFORT
from .models.shapes import MODELS
from .peers import NAMES
from .plots import plots
from .requirements import LARGEST
from .results import Results, Run

_METHOD = f"""\
Weights in groups of {GROUP_SIZE} with f16 scales, f16 activations and results. Codes, scales and activations are random
over the whole tensors. A time is the median over repeats of one call's time on the device, from event to event. Each
repeat starts with a cold, clean L2: a buffer of 256 MiB is read first. One function times all libraries. A result is
first compared with float64, in memory that was filled with NaN: ours may be off by 2e-3 (relative Frobenius), a
peer's by 1e-2 of the meaning of its own weights. What fails has no time."""

_READING = f"""\
A number is the geometric mean over the {len(SHAPES)} shapes of required time / our time, rounded down, and is met at 1
or more. The speed over the rival that is required follows in brackets; at 0.87x a time may be 15 % longer, at 0.833x
20 %. Required time of a shape = max(rival / factor, empty kernel + {OVER_FLOOR} x floor), with floor = max(bytes
/ read bandwidth, 2MNK / {FLOP_PER_S / 1e12:.0f} TFLOP/s)."""


_DRAWN = f"""\
`lowlp bench --set models` draws them by a seed, new in each run: shapes of the products in the layers of
{", ".join(model.name for model in MODELS[:-1])} and {MODELS[-1].name},
whole and cut for 2, 4 and 8 GPUs; M in equal parts from {ranges_text(DECODE_RANGES)}, and of a fifth of
the problems from {ranges_text(PREFILL_RANGES)}; type, group, scales, zero points, activations.
Times are taken as above, by at least {EFFORT.least} repeats; {CHECKED_COLUMNS} columns of a result are compared with
float64, and all of it must be finite. Plain is the time of the fastest peer over ours. Required time = max(rival /
factor, empty kernel + {OVER_FLOOR} x floor); the rival is the faster of humming and torch up to 512 rows, and torch
above. Worst is the least of the rival's time over ours. Bold is what is missed. The {AGAIN} worst are timed again, in
turns with the rival."""

_BOOKS = """\
Weights of codebooks with scales of rows, by `lowlp bench --codebooks`: microseconds, and in brackets the longest time
that is allowed, what the tables would allow at best, and the time of AQLM. Codes and entries are random. Bold is what
is missed. With many rows the time of our int4 is allowed, times 1.05 to 1.2."""

_ACTIVATIONS = """\
Products from codes to f16 by `lowlp bench --activations`: microseconds by each path of ours, bold the one that `linear`
takes, and the fastest library with such weights and activations of 8 bits. Required time = max(rival / factor, empty
kernel + 1.08 x floor); the first table has geometric means over shapes of required over ours, and in brackets the speed
over the rival and the factor asked. Sums of integers with a scale a row are equal to the exact ones, to the bit after
scales; others are within 2e-3, of 8-bit floats 5e-3. `_int_mm` returns int32 and takes no scales; up to 16 rows are
padded for it to 32."""

ACTIVATIONS_MARK: Final = ".activations-"
"""In the names of files that the page of NAME.json shows: NAME.activations-1.json."""
TOPS_END: Final = "-tops.svg"

_VERSIONS = """\
Products with codebooks in the versions of VQ-LLM's table IV, by `lowlp bench --codebooks --ablation`: microseconds, and
in brackets what part of the time of GC that is. GC has all entries in global memory, SC all in shared memory, O1 those
that fit, O2 the most frequent in registers, O3 divides K among blocks by the paper's rule, and O4 takes vectors as
operands as they are, where the others exchange them through shared memory. lowlp is what `linear` chooses. The paper's
own best versions take 0.54 of the time of GC on average, on an RTX 4090."""

_ATTENTION = f"""\
One new token of each sequence, {HEADS} query heads of {HEAD_DIM}, pages of {PAGE} tokens, by `lowlp bench --attention`:
microseconds, and in brackets the longest time that is allowed and the best that is hoped for. Bold is what is missed.
The second table holds times against what reading the cache takes alone, and against a kernel without values; the third
appends a token of each sequence."""

_PLAIN = """\
The kernel of `examples/plain_matmul.py --packed`, in which no layout, copy or barrier is named, by
`benchmarks/plain_matmul.py`: microseconds, and in brackets over the time of `lowlp.linear`, measured in turns."""


def write_report(results: Results, data: Path, page: Path) -> list[Path]:
    """Writes the plots beside the results' file and the page; returns what was written.

    data   the results' file, NAME.json; plots go beside it. From beside it are taken notes in Markdown, NAME.notes.md,
           and results on drawn problems, NAME.models-*.json, of attention, NAME.attention-*.json, and of quantised
           activations, NAME.activations-*.json
    page   docs/performance.md

    Raises `LowlpValueError` for results on drawn problems or of attention that are none.
    """
    written = []
    names = []
    for name, picture in plots(results).items():
        path = data.with_name(f"{data.stem}-{name}.svg")
        path.write_text(to_svg(picture), encoding="utf-8")
        written.append(path)
        names.append(path)
    notes = data.with_name(f"{data.stem}.notes.md")
    attention = sorted(data.parent.glob(f"{data.stem}{of_attention.MARK}*.json"))
    drawn = sorted(data.parent.glob(f"{data.stem}{MODELS_MARK}*.json"))
    activations = {
        path: Results.load(path) for path in sorted(data.parent.glob(f"{data.stem}{ACTIVATIONS_MARK}*.json"))
    }
    for path, one in activations.items():
        if tops := effective_tops(one):
            written.append(path.with_name(path.stem + TOPS_END))
            written[-1].write_text(to_svg(tops), encoding="utf-8")
    text = page_text(
        results,
        os.path.relpath(data, page.parent),
        [os.path.relpath(path, page.parent) for path in names],
        notes.read_text(encoding="utf-8") if notes.is_file() else "",
        {os.path.relpath(path, page.parent): ModelResults.load(path) for path in drawn},
        {os.path.relpath(path, page.parent): of_attention.AttentionResults.load(path) for path in attention},
        {os.path.relpath(path, page.parent): one for path, one in activations.items()},
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return [*written, page]


def page_text(
    results: Results,
    data: str,
    pictures: list[str],
    notes: str = "",
    drawn: Mapping[str, ModelResults] | None = None,
    attention: Mapping[str, of_attention.AttentionResults] | None = None,
    activations: Mapping[str, Results] | None = None,
) -> str:
    """The page; `data`, `pictures` and the keys of `drawn`, `attention` and `activations` are links from it."""
    parts = _parts(results, data, pictures, notes, drawn or {}, attention or {}, activations or {})
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _parts(
    results: Results,
    data: str,
    pictures: list[str],
    notes: str,
    drawn: Mapping[str, ModelResults],
    attention: Mapping[str, of_attention.AttentionResults],
    activations: Mapping[str, Results],
) -> Iterator[str]:
    yield "# Performance"
    yield f"Written by `lowlp bench --report` from [the results]({Path(data).as_posix()}); do not edit."
    yield "## How it was measured"
    yield _METHOD
    yield "\n".join(_describe(run, number, len(results.runs)) for number, run in enumerate(results.runs, 1))
    yield "## What it must reach"
    yield _READING
    yield from report.acceptance_tables(results)
    yield "Cells: " + _counted(report.summary(results), (MET, MISSED, INCOMPLETE, ABSENT))
    lines = report.missed(results)
    if lines:
        yield "### Missed cells"
        yield "\n".join(f"- {line}" for line in lines)
    if notes:
        yield "### What limits them"
        yield notes
    yield from _drawn(drawn)
    yield f"## Fraction of the read bandwidth, N x K = {LARGEST}"
    yield report.fraction_table(results)
    yield "Fractions: " + _counted(report.fraction_summary(results), (MET, MISSED, ABSENT))
    for picture in pictures:
        yield f"![{Path(picture).stem}]({Path(picture).as_posix()})"
    for who in NAMES:
        table = report.speedup_table(results, who)
        if table:
            yield f"## Speed over {'torch f16' if who == 'torch' else who}"
            yield "Geometric means over all shapes of its time / ours."
            yield table
    if books := book_targets.book_table(results):
        yield "## Codebooks"
        yield _BOOKS
        yield books
        if skewed := book_targets.skewed_table(results):
            yield "AQLM 1x16 with codes by Zipf's law, of whose times the parts in brackets are asked:"
            yield skewed
    if versions := ablation.ablation_table(results):
        yield "## Versions of products with codebooks"
        yield _VERSIONS
        yield versions
    yield from _of_attention(attention)
    yield from _of_activations(activations)
    yield "## Times in microseconds"
    for shape in SHAPES:
        table = report.times_table(results, shape)
        if table:
            yield f"### N x K = {shape}"
            yield table
    plain = report.plain_table(results)
    if plain:
        yield "## A kernel without layouts"
        yield _PLAIN
        yield plain
    problems = report.problems(results)
    if problems:
        yield "## What has no time"
        yield "\n".join(f"- {line}" for line in problems)


def _drawn(found: Mapping[str, ModelResults]) -> Iterator[str]:
    """The section of drawn problems."""
    if not found:
        return
    yield "## Random problems of ten models"
    yield _DRAWN
    for link, one in found.items():
        by = "by measurements and estimate" if one.with_measured else "by estimate alone"
        yield f"### Seed {one.seed}, schedules {by}"
        yield f"{_describe(one.run, 1, 1)}; [results]({Path(link).as_posix()})"
        yield from models_report.section(one)


def _of_attention(found: Mapping[str, of_attention.AttentionResults]) -> Iterator[str]:
    """The section of attention."""
    if not found:
        return
    yield "## Attention"
    yield _ATTENTION
    for link, one in found.items():
        yield f"{_describe(one.run, 1, 1)}; [results]({Path(link).as_posix()})"
        yield of_attention.decode_table(one)
        yield of_attention.limits_table(one)
        yield of_attention.append_table(one)


def _of_activations(found: Mapping[str, Results]) -> Iterator[str]:
    """The section of products with quantised activations."""
    if not found:
        return
    yield "## Quantised activations"
    yield _ACTIVATIONS
    for link, one in found.items():
        yield "\n".join(_describe(run, number, len(one.runs)) for number, run in enumerate(one.runs, 1))
        yield f"[results]({Path(link).as_posix()})"
        if table := of_activations.required_table(one):
            yield table
        if lines := of_activations.halves_lines(one):
            yield "\n".join(f"- {line}" for line in lines)
        yield of_activations.times_table(one)
        if lines := of_activations.badly_chosen(one):
            yield "Cells where another path is more than 5 % faster than the one that is taken:"
            yield "\n".join(f"- {line}" for line in lines)
        if effective_tops(one) is not None:
            picture = str(Path(link).with_suffix("")) + TOPS_END
            yield f"![{Path(picture).stem}]({Path(picture).as_posix()})"


def _counted(counts: Mapping[str, int], statuses: Sequence[str]) -> str:
    """'109 met, 7 missed'."""
    return ", ".join(f"{counts.get(status, 0)} {status}" for status in statuses)


def _describe(run: Run, number: int, count: int) -> str:
    """A run as a line of a list."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items() if version)
    absent = [name for name, version in run.versions.items() if not version]
    facts = [
        f"- {f'run {number}: ' if count > 1 else ''}{run.date}, {run.gpu}, driver {run.driver}; {versions}",
        "" if run.empty_us is None else f"empty kernel {run.empty_us:.2f} us",
        f"floors from {run.read_bytes_per_s / 1e12:.2f} TB/s",
        "" if run.measured_read is None else f"sum over 2 GiB at {run.measured_read / 1e12:.2f} TB/s",
        "" if run.host_us is None else f"a cached call of `linear` costs the host {run.host_us:.1f} us",
        f"absent: {', '.join(absent)}" if absent else "",
        *run.notes,
    ]
    return "; ".join(fact for fact in facts if fact)
