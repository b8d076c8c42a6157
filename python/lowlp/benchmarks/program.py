"""What the programs in the folder `benchmarks` share: options, and kernels that are compiled here or elsewhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from lowlp_runtime.errors import LowlpError

from . import session
from .prepared import PreparedKernels

_ARCH = "sm_90a"
_MULTIPROCESSORS = 132


def add_arguments(parser: argparse.ArgumentParser, rows: str) -> None:
    """Declares the options that all have; `rows` is the default of --m."""
    parser.add_argument("--shapes", default="8192x8192,57344x8192", metavar="NxK,...")
    parser.add_argument("--m", default=rows, metavar="M,...")
    parser.add_argument("--prepare", type=Path, metavar="DIR", help="only compile the kernels into this folder")
    parser.add_argument("--kernels", type=Path, metavar="DIR", help="measure the kernels of this folder")
    parser.add_argument("--arch", default=_ARCH, help="what --prepare compiles for (default: %(default)s)")
    parser.add_argument(
        "--multiprocessors",
        type=int,
        default=_MULTIPROCESSORS,
        metavar="N",
        help="of the GPU of --prepare (default: %(default)s)",
    )


def run(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    folder: str,
    prepare: Callable[[Path, str, int], bool],
    measure: Callable[[Path], bool],
) -> int:
    """Compiles, measures, or both, as the options say; the program's exit status.

    folder   where kernels go that no option names a folder for
    prepare  compiles into a folder for an architecture and so many multiprocessors; whether all could be
    measure  measures what a folder has; whether all has times

    A `LowlpError` of either ends the program with its message.
    """
    try:
        if options.prepare:
            return 0 if prepare(options.prepare, options.arch, options.multiprocessors) else 1
        if missing := session.why_not():
            parser.error(f"needs a GPU: {missing}; --prepare does not")
        kernels: Path = options.kernels or Path(folder)
        if not options.kernels:
            from lowlp.compiler.architectures import current_arch
            from lowlp_runtime.device import multiprocessors

            prepare(kernels, current_arch(), multiprocessors())
        return 0 if measure(kernels) else 1
    except LowlpError as error:
        parser.error(str(error))


def are_whole(folders: Iterable[Path]) -> bool:
    """Whether all kernels of these folders could be compiled; lists the others on stderr."""
    failed = [entry for folder in folders for entry in PreparedKernels.load_index(folder).kernels if entry.problem]
    for entry in failed:
        print(f"{entry.kind} {entry.n}x{entry.k}, M = {entry.rows}: {entry.problem}", file=sys.stderr)
    return not failed
