"""Tokens per second of whole models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lowlp.benchmarks.decoding_results import SMALL, DecodingResults, step_table

from .measured import Linker, Measured, decoding_path

TITLE: Final = "Models"
_SUMMARY = """\
Tokens per second, and in brackets over bf16, of models with random weights, by `benchmarks/decode_model.py`: a step is
one CUDA graph, with fused qkv and gate-up, and a quantised head; attention over a static cache in bf16, by Triton, of
prompts by PyTorch, and all else but the products are the same for all kinds of weights. A name after a colon is that
of a quantised cache, which `attention_decode` reads. Weights come from memory. A prompt of one sequence needs one row
of the head."""
_SMALL = """\
Small models, in the same script, each layer with weights of its own: launches take more of a step than bytes, and with
few bits the weights of all layers stay in the L2 cache."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Tables and plots of models that are served from memory."""
    for number, (path, one) in enumerate(_of_size(measured, small=False)):
        if not number:
            yield _SUMMARY
        yield from _shown(path, one, measured, links)


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """Those of small models."""
    for number, (path, one) in enumerate(_of_size(measured, small=True)):
        if not number:
            yield _SMALL
        yield from _shown(path, one, measured, links)


def _of_size(measured: Measured, small: bool) -> list[tuple[Path, DecodingResults]]:
    return [(path, one) for path, one in measured.decoding.items() if (one.model in SMALL) is small]


def _shown(path: Path, one: DecodingResults, measured: Measured, links: Linker) -> Iterator[str]:
    when = f", {one.date}" if one.date else ""
    yield f"{one.model}'s shape, {one.device}{when} ({links.link('results', path)}):"
    yield step_table(one)
    if decoding_path(path) in measured.pictures():
        yield links.picture(decoding_path(path))
