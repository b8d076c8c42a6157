"""`lowlp convert`: a checkpoint of another tool as one of lowlp."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import output
from .bench_progress import progress_bar

if TYPE_CHECKING:
    from lowlp.checkpoints import Checkpoint

_ACTIVATIONS = ("f16", "bf16", "s8", "e4m3")


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "convert",
        help="write a quantised checkpoint as one of lowlp",
        description="Read a quantised checkpoint (GPTQ, AWQ, compressed-tensors, GGUF, bitsandbytes, FP8, MXFP4, "
        "NVFP4, HQQ, AQLM and others) and write one of lowlp: a folder with safetensors files, config.json, and the "
        "files of the tokenizer. Weights keep their meaning to the bit. Files are written 4 GiB at a time, which is "
        "about the memory that is needed; no GPU is.",
        epilog="examples:\n  lowlp convert TheModel-GPTQ TheModel-lowlp\n"
        "  lowlp convert model.Q4_K_M.gguf model-lowlp --activation bf16\n"
        "  lowlp inspect TheModel-lowlp",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("source", metavar="SRC", help="folder, .safetensors file, its index, or .gguf file")
    parser.add_argument("target", metavar="DST", help="folder to write; must not have a checkpoint yet")
    parser.add_argument(
        "--method", metavar="NAME", help="read SRC as this format, where its config names none or a wrong one"
    )
    parser.add_argument(
        "--activation",
        choices=_ACTIVATIONS,
        help="pack for activations of this type (default: f16, or bf16 for floats that f16 cannot hold)",
    )
    parser.add_argument(
        "--approximate",
        action="store_true",
        help="keep a smaller form where one is within 2 units of the last place: NVFP4 of compressed-tensors in 4.5 "
        "bits in place of 6",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Converts, and prints what was written."""
    from lowlp.checkpoints import open as open_checkpoint
    from lowlp.checkpoints import save
    from lowlp.checkpoints.detection import read_json
    from lowlp.checkpoints.saving import copy_beside

    source, target = Path(options.source), Path(options.target)
    opened = open_checkpoint(
        source, method=options.method, activation=options.activation, exact=not options.approximate
    )
    folder = source if source.is_dir() else source.parent
    is_gguf = opened.format == "gguf"
    config = {} if is_gguf else read_json(folder / "config.json")
    with progress_bar("convert", "MiB") as show:
        written = save(target, _tensors(opened, show), config=config)
    if is_gguf:
        metadata = target / "gguf-metadata.json"
        metadata.write_text(json.dumps(opened.settings) + "\n", encoding="utf-8")
        others = [metadata.name]
    else:
        others = copy_beside(folder, target) if source.is_dir() or source.name.endswith(".index.json") else []
    size = sum(path.stat().st_size for path in written)
    facts = [
        ("read", f"{source}, {opened.format or 'nothing quantised'}"),
        ("quantised", f"{len(opened.layers)} weights, of {len(opened)} tensors"),
        ("written", f"{target}, {output.count(size)} bytes in {len(written)} files"),
        *([("beside", ", ".join(others))] if others else []),
    ]
    output.write(output.STDOUT, output.aligned(facts))
    return 0


def _tensors(opened: Checkpoint, show: Callable[[int, int, str], None]) -> Iterator[tuple[str, object]]:
    """The tensors, with progress by their bytes in MiB; what was written is let go."""
    total = sum(opened.stored_bytes(name) for name in opened.names)
    done, mebibyte = 0, 1 << 20
    before: str | None = None
    for name, value in opened:
        show(done // mebibyte, math.ceil(total / mebibyte), name)
        if before is not None:
            opened.release(before)
        yield name, value
        done += opened.stored_bytes(name)
        before = name
    show(math.ceil(total / mebibyte), math.ceil(total / mebibyte), "done")
