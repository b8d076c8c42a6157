"""`lowlp demo`: a real weight matrix, quantised, packed, compiled, run, and compared with float64."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import demo_model, output
from .output import number_from

if TYPE_CHECKING:
    from .demo_run import Outcome

_OUT_DIR = "out"
_STEPS = 5


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "demo",
        help="quantise, pack, compile and run a real weight matrix",
        description="Take a trained weight matrix (a random one, and said so, where the model is not installed), "
        "quantise and pack it, compile the kernel y = x @ w^T for it, run it, and compare with float64. PTX, machine "
        "code and the saved kernel are left in the output folder. Fails if the error is larger than lowlp promises. "
        "With --model a whole model writes text instead.",
        epilog="examples:\n  lowlp demo\n  lowlp demo --dtype f6e3m2 --group-size 64 --rows 5\n"
        "  lowlp demo --model model-Q4_K_M.gguf --tokens 64",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument(
        "--dtype", default="int6", metavar="TYPE", help="int1..8, uint1..8, f{b}e{X}m{Y} (default: int6)"
    )
    parser.add_argument(
        "--group-size", type=int, default=128, metavar="G", help="weights that share a scale; -1: a row"
    )
    parser.add_argument("--zero-point", action="store_true", help="with zero points (integers)")
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto: a GPU if there is one (default)"
    )
    parser.add_argument(
        "--arch", metavar="ARCH", help="GPU architecture to compile for (default: the GPU's, or sm_90a)"
    )
    parser.add_argument(
        "--rows", type=number_from(1), default=16, metavar="M", help="rows of activations (default: 16)"
    )
    parser.add_argument("--outputs", type=number_from(1), metavar="N", help="use the first N rows of the matrix only")
    parser.add_argument("--seed", type=number_from(0, 2**64 - 1), default=0, help="of the activations (default: 0)")
    parser.add_argument("--out-dir", default=_OUT_DIR, metavar="DIR", help="where files are left (default: ./out)")
    parser.add_argument(
        "--model", metavar="PATH", help="a GGUF file, or a folder with a model of transformers, quantised or not"
    )
    parser.add_argument("--prompt", default=demo_model.PROMPT, metavar="TEXT", help="for --model, what it goes on with")
    parser.add_argument(
        "--tokens", type=number_from(1), default=32, metavar="T", help="for --model, how many it writes (default: 32)"
    )
    parser.set_defaults(run=run)


class Progress:
    """Numbered steps with their seconds, on stderr, so that stdout holds the table alone."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Says what begins, and how long it took."""
        self._done += 1
        print(f"[{self._done}/{self._steps}] {what} ... ", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            yield
        except BaseException:
            print("failed", file=sys.stderr, flush=True)
            raise
        print(f"{time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> int:
    """Does the steps, prints the table, and returns 1 where the error is above the limit."""
    if options.model is not None:
        return demo_model.run_model(options, Progress(demo_model.STEPS))
    from .demo_run import Demo
    from .device import choose_device

    progress = Progress(_STEPS)
    demo = Demo(options.dtype, options.group_size, options.rows, options.seed)
    device = choose_device(options.device)
    with progress.step("reading the weights"):
        demo.read_weights(options.outputs)
    with progress.step(f"quantising to {options.dtype} and packing"):
        demo.quantize(options.zero_point)
    with progress.step("compiling the kernel to PTX and machine code"):
        kernel = demo.compile(options.arch, device)
        files = _save(kernel, Path(options.out_dir))
    with progress.step(f"running it on {device.label}"):
        outcome = demo.execute(device, kernel)
    with progress.step("comparing with float64"):
        demo.compare(outcome)
    print(file=sys.stderr, flush=True)
    if device.note:
        print(output.aligned([("note", device.note)]) + "\n")
    print(output.aligned([*demo.facts(outcome), *_facts_of_files(files)]))
    print(f"\n{kernel.report()}")
    return _judge(outcome)


def _save(kernel: Any, folder: Path) -> list[Path]:
    """Writes PTX, machine code and the saved kernel."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{kernel.name}_{kernel.arch}"
    files = [folder / f"{stem}{suffix}" for suffix in (".ptx", ".cubin", ".lowlp")]
    files[0].write_text(kernel.ptx, encoding="utf-8")
    files[1].write_bytes(kernel.cubin)
    kernel.save(files[2])
    return files


def _facts_of_files(files: list[Path]) -> Iterator[tuple[str, str]]:
    names = ("PTX", "machine code", "saved kernel")
    for name, path in zip(names, files, strict=True):
        yield name, f"{os.path.relpath(path)}, {output.count(path.stat().st_size)} bytes"


def _judge(outcome: Outcome) -> int:
    # "not below" instead of "above", so that a NaN fails too.
    if not outcome.error <= outcome.error_limit:
        print(
            f"lowlp: error: the result differs from float64 by {outcome.error:.2e} (relative, Frobenius); "
            f"at most {outcome.error_limit:.1e} is allowed",
            file=sys.stderr,
        )
        return 1
    return 0
