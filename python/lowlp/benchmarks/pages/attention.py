"""Attention over quantised caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks.attention import results as of_attention
from lowlp.benchmarks.attention.cases import HEAD_DIM, HEADS, PAGE

from .measured import Linker, Measured, describe

TITLE: Final = "Attention"
_ATTENTION = f"""\
One new token of each sequence, {HEADS} query heads of {HEAD_DIM}, pages of {PAGE} tokens, by `lowlp bench --attention`:
microseconds, and in brackets the longest time that is allowed and the best that is hoped for. Bold is what is missed.
The second table appends a token of each sequence."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Decoding and appending."""
    if not measured.attention:
        return
    yield _ATTENTION
    for path, one in measured.attention.items():
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield of_attention.decode_table(one)
        yield of_attention.append_table(one)


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """What limits decoding."""
    for path, one in measured.attention.items():
        yield "Times against what reading the cache takes alone, and against a kernel without values:"
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield of_attention.limits_table(one)
