"""Attention over quantised caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks.attention import results as of_attention
from lowlp.benchmarks.attention.cases import HEAD_DIM, HEADS, PAGE
from lowlp.benchmarks.attention.versions import versions_picture, versions_table

from .measured import Linker, Measured, describe, versions_path

TITLE: Final = "Attention"
_ATTENTION = f"""\
One new token of each sequence, {HEADS} query heads of {HEAD_DIM}, pages of {PAGE} tokens, by `lowlp bench --attention`:
microseconds, and in brackets the longest time that is allowed and the best that is hoped for. Bold is what is missed.
The second table appends a token of each sequence."""
_VERSIONS = """\
Attention over codebooks in the versions of VQ-LLM's table IV, by `lowlp bench --attention --ablation`: microseconds,
and in brackets what part of the time of GC that is. GC has all entries in global memory, SC all in shared memory, O1
those that fit, O2 the most frequent in registers, with O3 a block keeps the codebooks of its head for several
sequences, and all but O4 exchange what they look up through shared memory. lowlp is `attention_decode`, whose codebooks
lie in lines, so that lookups meet in no bank. The paper's own best versions take 0.54 of the time of GC on average, on
an RTX 4090."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Decoding and appending."""
    found = {path: one for path, one in measured.attention.items() if not versions_table(one)}
    if not found:
        return
    yield _ATTENTION
    for path, one in found.items():
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield of_attention.decode_table(one)
        yield of_attention.append_table(one)


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """What limits decoding, and the paper's versions."""
    for path, one in measured.attention.items():
        if versions := versions_table(one):
            yield "## Versions of the paper"
            yield _VERSIONS
            yield f"{describe(one.run)}; {links.link('results', path)}"
            yield versions
            yield links.picture(None if versions_picture(one) is None else versions_path(path))
            continue
        yield "Times against what reading the cache takes alone, and against a kernel without values:"
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield of_attention.limits_table(one)
