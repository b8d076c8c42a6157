"""What `lowlp inspect` tells of a checkpoint."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from . import output

if TYPE_CHECKING:
    from lowlp.checkpoints import Checkpoint
    from lowlp.checkpoints.summaries import LayerSummary

_ENDS = (".safetensors", ".gguf", ".index.json")


def is_model(path: Path) -> bool:
    """Whether a path names a checkpoint, and not a saved kernel."""
    return path.is_dir() or path.name.endswith(_ENDS)


def told(path: Path, as_json: bool) -> str:
    """The text, or all of it as JSON. Raises what `lowlp.checkpoints.open` raises."""
    from lowlp.checkpoints import open as open_checkpoint
    from lowlp.checkpoints.summaries import summaries

    opened = open_checkpoint(path)
    layers = list(summaries(opened))
    if as_json:
        facts = {"path": str(path), "format": opened.format, "layers": [asdict(layer) for layer in layers]}
        return json.dumps({**facts, "arrays": list(opened.arrays)}, indent=1)
    return "\n".join(_lines(path, opened, layers))


def _lines(path: Path, opened: Checkpoint, layers: Sequence[LayerSummary]) -> Iterator[str]:
    yield f"checkpoint {output.printable(str(path))}"
    here, stored = (sum(getattr(layer, field) for layer in layers) for field in ("nbytes", "stored_bytes"))
    arrays = sum(opened.stored_bytes(name) for name in opened.arrays)
    facts = [
        ("format", opened.format or "nothing is quantised"),
        ("quantised", f"{len(layers)} weights, {output.count(here)} bytes packed, {output.count(stored)} in the file"),
        ("arrays", f"{len(opened.arrays)}, {output.count(arrays)} bytes"),
    ]
    yield output.aligned(facts, "  ")
    if not layers:
        return
    yield "codecs"
    yield output.aligned(_codecs(layers), "  ")
    yield "layers"
    rows = [("name", "shape", "format", "codec", "bits", "bytes", "error bound"), *map(_row, layers)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        texts = [
            cell.rjust(width) if column > 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(texts)}".rstrip()
    yield "error bound: how far rounding moved a weight within the range of its codes at most; codebooks have none"


def _codecs(layers: Sequence[LayerSummary]) -> list[tuple[str, str]]:
    found: dict[str, list[LayerSummary]] = defaultdict(list)
    for layer in layers:
        found[layer.codec].append(layer)
    return [
        (codec, f"{len(same)} weights, {output.count(sum(layer.nbytes for layer in same))} bytes")
        for codec, same in found.items()
    ]


def _row(layer: LayerSummary) -> tuple[str, ...]:
    bound = "-" if layer.error_bound is None else f"{layer.error_bound:.3g}"
    shape = " x ".join(map(str, layer.shape))
    texts = (layer.name, shape, layer.format, layer.codec, f"{layer.bits:.2f}", output.count(layer.nbytes), bound)
    return tuple(output.printable(text) for text in texts)
