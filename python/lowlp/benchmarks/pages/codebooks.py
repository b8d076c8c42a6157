"""Products with weights of vector codebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks import ablation, book_targets

from .measured import Linker, Measured

TITLE: Final = "Codebooks"
_BOOKS = """\
Weights of codebooks with scales of rows, by `lowlp bench --codebooks`: microseconds, and in brackets the longest time
that is allowed, what the tables would allow at best, and the time of AQLM. Codes and entries are random. Bold is what
is missed. With many rows the time of our int4 is allowed, times 1.05 to 1.2."""
_OF_THE_RUN: Final = "AQLM's times, if any, are of another run; int4's are of this one:"
_OF_ONE_RUN: Final = "AQLM's times and int4's are of the same run:"
_VERSIONS = """\
Products with codebooks in the versions of VQ-LLM's table IV, by `lowlp bench --codebooks --ablation`: microseconds, and
in brackets what part of the time of GC that is. GC has all entries in global memory, SC all in shared memory, O1 those
that fit, O2 the most frequent in registers, O3 divides K among blocks by the paper's rule, and O4 takes vectors as
operands as they are, where the others exchange them through shared memory. lowlp is what `linear` chooses. The paper's
own best versions take 0.54 of the time of GC on average, on an RTX 4090."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Times with their targets."""
    if books := book_targets.book_table(measured.books):
        yield _BOOKS
        if measured.codebooks:
            peers = {row.who for one in measured.codebooks.values() for row in one.rows}
            yield _OF_ONE_RUN if "aqlm" in peers else _OF_THE_RUN
            yield links.runs({path: one.runs[-1] for path, one in measured.codebooks.items()})
        yield books


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """Skewed codes, and the paper's versions."""
    if skewed := book_targets.skewed_table(measured.books):
        yield "AQLM 1x16 with codes by Zipf's law, of whose times the parts in brackets are asked:"
        yield skewed
    if versions := ablation.ablation_table(measured.books):
        yield "## Versions of the paper"
        yield _VERSIONS
        yield versions
        yield links.picture(measured.picture("codebook-versions"))
