"""The command `lowlp`: compile, look at kernels and layouts, see the whole run on real weights.

Each subcommand is a module of this package with two functions: `add_parser`, which declares its arguments, and `run`,
which does the work and returns the exit status. Importing them loads neither MLIR nor numpy: `lowlp --help` is quick.

Exit status: 0; 1 where something went wrong, with the reason on stderr; 2 where the command line is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from lowlp import __version__
from lowlp.cli import bench, cache, convert, demo, doctor, inspect, layout, output, targets, tune
from lowlp.cli import compile as compile_command
from lowlp.cli import run as run_command
from lowlp_runtime.errors import LowlpError

_EPILOG = """`lowlp COMMAND --help` describes a command. The compiler's single passes are run with `lowlp-opt`.

exit status:
  0    all went well
  1    something went wrong; stderr says what
  2    the command line is wrong
  130  interrupted

environment:
  LOWLP_CACHE_DIR        where compiled kernels are kept; empty: nowhere
  LOWLP_CACHE_MAX_BYTES  how many bytes of them (default: 1 GiB)
  LOWLP_ASSEMBLER        ptxas, nvjitlink or driver (default: the first that is there)
  LOWLP_TUNED            schedules that `lowlp tune` measured: files or folders, ':' between them"""
_INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="lowlp",
        description="Compile and run GPU kernels on weights of 1 to 8 bits. Nothing here needs a GPU.",
        epilog=_EPILOG,
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lowlp {__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for module in (
        bench,
        cache,
        compile_command,
        convert,
        demo,
        doctor,
        inspect,
        layout,
        run_command,
        targets,
        tune,
    ):
        module.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit status.

    arguments  without the program's name; None: those of the process

    Raises `SystemExit` for `--help`, `--version` and a wrong command line, as argparse does.
    """
    options = build_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` for example, has seen enough. Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except LowlpError as error:
        print(f"lowlp: error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"lowlp: error: {what}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lowlp: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return status
