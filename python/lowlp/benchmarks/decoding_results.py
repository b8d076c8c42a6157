"""Steps of whole models as `benchmarks/decode_model.py` writes them, as tables and a plot of tokens per second."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lowlp.drawing.picture import Picture
from lowlp_runtime.errors import LowlpValueError

from .charts import COLORS, Series, bars
from .report import markdown

MARK: Final = ".decoding-"
"""In the names of files that the pages of NAME.json show: NAME.decoding-1.json."""
BASE: Final = "bf16"
_NAMES: Final = {
    "7b": "Llama 2 7B",
    "8b": "Llama 3.1 8B",
    "70b": "Llama 3.1 70B",
    "gemma-270m": "Gemma 3 270M",
    "qwen-0.5b": "Qwen2.5-Coder 0.5B",
}
SMALL: Final = ("Gemma 3 270M", "Qwen2.5-Coder 0.5B")
"""Models whose weights lie in the L2 cache, in part or all of them."""
_MOST_BARS: Final = 14


@dataclass(frozen=True)
class DecodingResults:
    """One run.

    model   whose shape the model has
    device  name of the GPU
    ms      milliseconds of a step, by kind of weights, sequences and tokens of each
    date    of the run; '': not written down
    """

    model: str
    device: str
    ms: dict[tuple[str, int, int], float]
    date: str = ""

    @staticmethod
    def load(path: Path) -> DecodingResults:
        """Reads a file. Raises `LowlpValueError` where it holds no such results, `OSError`."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            name = str(data["shape"]["name"])
            ms = {(row["kind"], row["batch"], row["tokens"]): float(row["ms"]) for row in data["results"]}
            return DecodingResults(_NAMES.get(name, name), str(data["device"]), ms, str(data.get("date", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LowlpValueError(f"{path}: no results of benchmarks/decode_model.py: {error!r}") from error

    @property
    def kinds(self) -> list[str]:
        """In the order in which they were measured."""
        return list(dict.fromkeys(kind for kind, _, _ in self.ms))

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Sequences and tokens of each; decoding first, then prompts."""
        return sorted({(batch, tokens) for _, batch, tokens in self.ms}, key=lambda step: (step[1], step[0]))

    def tokens_per_s(self, kind: str, step: tuple[int, int]) -> float | None:
        """None where it was not measured."""
        ms = self.ms.get((kind, *step))
        return None if ms is None else step[0] * step[1] / ms * 1e3


def step_table(results: DecodingResults) -> str:
    """Tokens per second by kind and step, and over bf16."""
    rows = [[kind, *(_cell(results, kind, step) for step in results.steps)] for kind in results.kinds]
    head = [f"batch {batch}" if tokens == 1 else f"prompt of {tokens}" for batch, tokens in results.steps]
    return markdown(["weights:", *head], rows)


def decoding_picture(results: DecodingResults) -> Picture | None:
    """Tokens per second at batch 1 by kind; None where none was measured."""
    speeds: Sequence[tuple[str, float | None]] = [(kind, results.tokens_per_s(kind, (1, 1))) for kind in results.kinds]
    found = sorted(((kind, speed) for kind, speed in speeds if speed is not None), key=lambda one: one[1])[-_MOST_BARS:]
    if not found:
        return None
    title = f"Tokens per second at batch 1, {results.model}'s shape, one {results.device.removeprefix('NVIDIA ')}"
    series = Series("one CUDA graph a step", tuple(speed for _, speed in found), COLORS[0])
    return bars(title, [kind for kind, _ in found], [series], step=100.0, digits=0)


def _cell(results: DecodingResults, kind: str, step: tuple[int, int]) -> str:
    speed, base = results.tokens_per_s(kind, step), results.tokens_per_s(BASE, step)
    if speed is None:
        return ""
    return f"{speed:.0f}" + (f" ({speed / base:.2f}x)" if base and kind != BASE else "")
