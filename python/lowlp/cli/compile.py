"""`lowlp compile`: a block program in a file, taken to any level."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import LowlpValueError

from . import output

if TYPE_CHECKING:
    from lowlp._mlir import ir

DEFAULT_ARCH = "sm_90a"
EMIT = {
    "block": "the program as it was read and verified",
    "thread": "the program of one thread, in the dialects simt, gpu, scf, arith and vector",
    "nvvm": "the same in the dialects llvm and nvvm",
    "ptx": "PTX text",
    "cubin": "machine code, assembled by ptxas",
    "cpu": "the program for the CPU target, in the llvm dialect",
    "lowlp": "a saved kernel: PTX, machine code, IR and description in one file",
}
_BINARY = ("cubin", "lowlp")


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    levels = "\n".join(f"  {name:<8} {meaning}" for name, meaning in EMIT.items())
    parser = commands.add_parser(
        "compile",
        help="compile a block program in an .mlir file",
        description="Compile a program of the block dialect with the named pipelines of lowlp-opt.",
        epilog=f"what --emit gives:\n{levels}\n\nexample:\n"
        "  lowlp compile examples/fig2.mlir --arch sm_90a --emit ptx -o fig2.ptx",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.mlir", help="the program; - reads stdin")
    parser.add_argument("--arch", default=DEFAULT_ARCH, metavar="ARCH", help="GPU architecture (default: %(default)s)")
    parser.add_argument("--emit", choices=tuple(EMIT), default="ptx", help="what to write (default: %(default)s)")
    parser.add_argument(
        "-O", dest="opt_level", type=int, choices=range(4), default=3, help="LLVM's optimisation (default: %(default)s)"
    )
    parser.add_argument(
        "-o", dest="output", default=output.STDOUT, metavar="OUT", help="file to write; - is stdout (default: -)"
    )
    parser.set_defaults(run=run)


@dataclass(frozen=True)
class SourceFile:
    """A file that holds a block program; diagnostics name its lines."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    def module(self) -> ir.Module:
        """The file, parsed and verified. Raises `CompileError` and `OSError`."""
        from lowlp._mlir import ir
        from lowlp.errors import from_mlir_error

        with self.path.open("rb"):  # says why a file cannot be read, which MLIR does not
            pass
        with ir.Context() as context:
            try:
                return ir.Module.parseFile(str(self.path), context)
            except ir.MLIRError as error:
                raise from_mlir_error(error, "parsing") from error


def run(options: argparse.Namespace) -> int:
    """Compiles, and writes what was asked for."""
    from lowlp.compiler import check_arch
    from lowlp.errors import CompileError

    arch = check_arch(options.arch, "--arch")
    program = _read_stdin() if options.file == output.STDOUT else SourceFile(Path(options.file))
    make = _machine_code if options.emit in _BINARY else _text
    try:
        data = make(program, arch, options.emit, options.opt_level)
    except CompileError as error:
        if not error.pipeline:
            raise
        # The program is in a file already; the error's own text offers to write one.
        said = "\n".join([*error.diagnostics, f"refused by: {error.failing_pass}"])
        raise LowlpValueError(f"{said}\nreproduce: {error.command_for(options.file)}") from error
    output.write(options.output, data)
    return 0


def _read_stdin() -> str:
    """The text; bytes that are no UTF-8 become a character that the parser refuses."""
    return sys.stdin.read().encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _text(program: SourceFile | str, arch: str, emit: str, opt_level: int) -> str:
    """The program after the pipeline that ends at `emit`."""
    from lowlp.compiler import open_program, read_ptx, run_pipeline

    pipelines = {
        "thread": "lowlp-to-thread",
        "nvvm": f"lowlp-to-nvvm{{arch={arch}}}",
        "ptx": f"lowlp-to-ptx{{arch={arch} opt-level={opt_level}}}",
        "cpu": "lowlp-to-cpu",
    }
    module = open_program(program)
    if emit in pipelines:
        run_pipeline(module, pipelines[emit])
    return read_ptx(module) if emit == "ptx" else str(module)


def _machine_code(program: SourceFile | str, arch: str, emit: str, opt_level: int) -> bytes:
    from lowlp import compiler

    kernel = compiler.compile(program, arch, opt_level=opt_level)
    return kernel.binary.to_bytes() if emit == "lowlp" else kernel.cubin
