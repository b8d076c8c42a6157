"""`lowlp doctor`: what this machine has of what lowlp needs, and what it lacks."""

from __future__ import annotations

import argparse
from typing import Any

from . import output

_MARKS = {"has": "   ", "note": " - ", "lacks": " ! "}


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "doctor",
        help="say what this machine lacks to compile and run kernels",
        description="Look at the compiler, the assembler, the NVIDIA driver and the PTX that it takes, the GPUs, the "
        "folder of compiled kernels and the packages that lowlp works with. Lines with '!' say what is missing and "
        "what to do; those with '-' name what only some need.",
        epilog="exit status:\n  0  kernels can be compiled, and run on a GPU\n  1  something is missing\n\n"
        "example:\n  lowlp doctor --cpu",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("--cpu", action="store_true", help="do not ask for a GPU: the CPU target is enough")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints a line for each finding; 1 where one is missing."""
    from lowlp.cli.findings import findings

    lacks = 0
    for found in findings(needs_gpu=not options.cpu):
        print(f"{_MARKS[found.state]}{found.name:<14}  {found.text}", flush=True)
        if found.advice:
            print(f"   {'':<14}  {found.advice}")
        lacks += found.state == "lacks"
    what = "1 thing is missing" if lacks == 1 else f"{lacks} things are missing"
    print(f"\n{what}" if lacks else "\nnothing is missing")
    return 1 if lacks else 0
