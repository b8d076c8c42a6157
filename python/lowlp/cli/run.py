"""`lowlp run`: a kernel in a file, run on given or random arguments."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from . import output
from .device import CHOICES, choose_device
from .output import number_from
from .program_file import KERNEL_HELP, explained, open_file

if TYPE_CHECKING:
    from .run_kernel import Run

_VALUES = """values of arguments, by the kernel's names:
  m=16             a number
  x=16x384         an array of this shape; what the kernel reads is random, what it writes begins as zeros
  x=ones:16x384    the same filled: random, zeros, ones, arange (0, 1, 2, ...), undefined (to be written first)
  b=int6:384x64    packed codes: an array of as many bytes as these elements take
  x=in.npy         an array in a file; x=in.npz:KEY for one of several (KEY is the name if left out)

examples:
  lowlp run examples/fig2.mlir -a a=1024x1024 transformed_b=int6:1024x1024 c=1024x1024
  lowlp run examples/rmsnorm.py --kernel 'make_rmsnorm(n=300)' -o y.npz -a x=3x300 w=ones:300 y=undefined:3x300 m=3"""


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "run",
        help="run a kernel on given or random arguments",
        description="Run a kernel: on the CPU target, which checks every access and counts by op, or on a GPU. Prints "
        "a summary of what the kernel wrote.",
        epilog=_VALUES,
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a program (.mlir), a Python file (.py), a saved kernel (.lowlp)")
    parser.add_argument(
        "-a",
        "--args",
        dest="arguments",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="arguments of the kernel, see below",
    )
    parser.add_argument("--kernel", metavar="NAME", help=KERNEL_HELP)
    parser.add_argument("--device", choices=CHOICES, default="auto", help="auto: a GPU if there is one (default)")
    parser.add_argument(
        "--seed",
        type=number_from(0, 2**64 - 1),
        default=0,
        help="of random arrays and of the order of threads (default: 0)",
    )
    parser.add_argument(
        "--checks",
        choices=("all", "bounds", "races", "uninitialised"),
        default="all",
        help="what the CPU target checks beside bounds (default: %(default)s)",
    )
    parser.add_argument("-o", dest="output", metavar="OUT.npz", help="save the arrays that the kernel wrote")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Runs the kernel and prints the report."""
    from lowlp.errors import CompileError

    from .run_kernel import run_on_cpu, run_on_gpu, save_outputs

    device = choose_device(options.device)
    program = open_file(options.file, options.kernel)
    try:
        if device.is_cuda:
            done = run_on_gpu(program, options.arguments, options.seed)
        else:
            done = run_on_cpu(program, options.arguments, options.seed, options.checks)
    except CompileError as error:
        raise explained(error, options.file, options.kernel) from error
    if options.output:
        save_outputs(done, options.output)
    print(output.aligned([("device", device.label), *([("note", device.note)] if device.note else []), *_facts(done)]))
    for title, lines in (("arguments", done.arguments_in_words()), ("outputs", done.outputs_in_words())):
        print(f"\n{title}\n{output.aligned(lines, '  ') or '  none'}")
    if done.traffic:
        print(f"\ntraffic by op\n{done.traffic_table()}")
    if options.output:
        print(f"\nwritten to {options.output}")
    return 0


def _extents(extents: tuple[int, int, int]) -> str:
    """The extents of a grid or a block, without those that are 1."""
    return " x ".join(output.count(extent) for extent in extents if extent != 1) or "1"


def _facts(done: Run) -> list[tuple[str, str]]:
    facts = [
        ("kernel", done.description.name),
        ("grid", f"{_extents(done.grid)} blocks of {_extents(done.description.block)} threads"),
    ]
    if done.median_us is not None:
        facts.append(("time", f"{done.median_us:.1f} us median, cold L2"))
    if done.checks:
        facts.append(("checks", f"{done.checks}: passed"))
    if done.counters:
        counted = ((name.replace("_", " "), number) for name, number in done.counters.items() if number)
        facts.append(("counted", ", ".join(f"{output.count(number)} {name}" for name, number in counted)))
    return facts
