"""`lowlp targets`: what each architecture has, as a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from lowlp.compiler.targets import Target

_KIB = 1024


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "targets",
        help="list the architectures and what each has",
        description="List the architectures that lowlp compiles for, their limits, and how each carries out the "
        "instructions that not all have: 'yes' as one machine instruction, a number as that many, '-' not at all.",
        epilog="example:\n  lowlp targets --arch sm_80 sm_90a",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("--arch", metavar="ARCH", nargs="+", help="only these architectures")
    parser.add_argument("--markdown", action="store_true", help="write the tables of docs/targets.md")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints both tables."""
    from lowlp.compiler.targets import target, targets

    chosen = [target(chip) for chip in options.arch] if options.arch else list(targets())
    draw = _markdown if options.markdown else _plain
    print("\n\n".join(draw(table) for table in (_limits(chosen), _instructions(chosen))))
    return 0


def _limits(chosen: Sequence[Target]) -> list[list[str]]:
    heads = ["architecture", "PTX", "shared KiB per block", "per SM", "warps per SM", "blocks per SM", "f32 lanes"]
    rows = [
        [
            target.chip,
            f"{target.ptx_version / 10:.1f}",
            str(target.max_shared_bytes_per_block // _KIB),
            str(target.shared_bytes_per_sm // _KIB),
            str(target.max_warps_per_sm),
            str(target.max_blocks_per_sm),
            str(target.f32_lanes_per_sm),
        ]
        for target in chosen
    ]
    return [heads, *rows]


def _instructions(chosen: Sequence[Target]) -> list[list[str]]:
    words = {0: "-", 1: "yes"}
    heads = ["sm_", *(target.chip.removeprefix("sm_") for target in chosen)]
    counts = {name: [target.instructions[name] for target in chosen] for name in chosen[0].instructions}
    return [heads, *([name, *(words.get(n, str(n)) for n in row)] for name, row in counts.items())]


def _plain(table: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rows = ([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in table)
    return "\n".join("  ".join(row) for row in rows)


def _markdown(table: list[list[str]]) -> str:
    heads, *rows = (f"| {' | '.join(row)} |" for row in table)
    return "\n".join([heads, "|---" * len(table[0]) + "|", *rows])
