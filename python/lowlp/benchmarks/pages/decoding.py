"""Tokens per second of whole models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks.decoding_results import step_table

from .measured import Linker, Measured, decoding_path

TITLE: Final = "Models"
_SUMMARY = """\
Tokens per second, and in brackets over bf16, of models with random weights, by `benchmarks/decode_model.py`: a step is
one CUDA graph, with PyTorch's attention over a static cache in bf16, fused qkv and gate-up, and a quantised head; the
same for all but the products. Weights come from memory. A prompt of one sequence needs one row of the head."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Tables and plots."""
    for number, (path, one) in enumerate(measured.decoding.items()):
        if not number:
            yield _SUMMARY
        yield f"{one.model}'s shape, {one.device} ({links.link('results', path)}):"
        yield step_table(one)
        if decoding_path(path) in measured.pictures():
            yield links.picture(decoding_path(path))


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """There are none: all is on the page."""
    yield from ()
