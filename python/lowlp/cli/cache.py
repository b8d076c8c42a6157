"""`lowlp cache`: the kernels that are kept on disk."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

from lowlp_runtime.cache import KernelCache
from lowlp_runtime.errors import LowlpValueError

from . import output

ACTIONS = {
    "path": "print the folder",
    "list": "list the kernels, the one used last first",
    "clear": "remove all of them",
}


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    actions = "\n".join(f"  {name:<8} {meaning}" for name, meaning in ACTIONS.items())
    parser = commands.add_parser(
        "cache",
        help="list or remove the compiled kernels that are kept on disk",
        description="Compiled kernels are kept on disk, by everything that changes them, so that no process compiles "
        "one again. The folder may be removed at any time.",
        epilog=f"actions:\n{actions}\n\nenvironment:\n"
        "  LOWLP_CACHE_DIR        the folder (default: below XDG_CACHE_HOME or ~/.cache); empty: keep nothing\n"
        "  LOWLP_CACHE_MAX_BYTES  the kernels used longest ago go where there are more bytes (default: 1 GiB)\n\n"
        "example:\n  lowlp cache list",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("action", choices=tuple(ACTIONS), metavar="ACTION", help=", ".join(ACTIONS))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Does the action."""
    cache = KernelCache.from_environment()
    if cache is None:
        raise LowlpValueError("no kernels are kept on disk: LOWLP_CACHE_DIR is empty, or there is no home folder")
    if options.action == "path":
        print(cache.folder)
    elif options.action == "list":
        print("\n".join(_listing(cache)))
    else:
        entries = cache.entries()
        cache.clear()
        print(f"removed {_kernels(len(entries))} from {cache.folder}")
    return 0


def _kernels(number: int) -> str:
    return f"{output.count(number)} kernel{'' if number == 1 else 's'}"


def _listing(cache: KernelCache) -> Iterator[str]:
    entries = cache.entries()
    total = sum(entry.size for entry in entries)
    yield (
        f"{_kernels(len(entries))} in {cache.folder}, {output.count(total)} bytes of at most "
        f"{output.count(cache.max_bytes)}"
    )
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        kernel = cache.get(entry.key, mark_used=False)
        if kernel is None:
            what = "damaged, or of another version"
        else:
            what = f"{kernel.description.name} for {', '.join(dict.fromkeys([*kernel.cubins, *kernel.ptx]))}"
        yield f"{entry.key[:12]}  {used}  {output.count(entry.size):>12}  {what}"
