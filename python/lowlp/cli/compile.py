"""`lowlp compile`: a block program in a file, taken to any level."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from lowlp_runtime.assemble import ASSEMBLERS
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import LowlpValueError

from . import output
from .program_file import KERNEL_HELP, explained, open_file

if TYPE_CHECKING:
    from lowlp.compiler.compilation import BlockProgram
    from lowlp.compiler.remarks import Remark

DEFAULT_ARCH = "sm_90a"
EMIT = {
    "block": "the program as it was read and verified",
    "thread": "the program of one thread, in the dialects simt, gpu, scf, arith, math and vector",
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
        help="compile a kernel in an .mlir or .py file",
        description="Compile a program of the block dialect, or a kernel of a Python file, with the named pipelines of "
        "lowlp-opt.",
        epilog=f"what --emit gives:\n{levels}\n\nexamples:\n"
        "  lowlp compile examples/fig2.mlir --arch sm_90a --emit ptx -o fig2.ptx\n"
        "  lowlp compile examples/softmax.py --kernel 'make_softmax(n=300)' --emit lowlp -o softmax.lowlp --time",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a program (.mlir) or a Python file (.py); - is stdin")
    parser.add_argument("--kernel", metavar="NAME", help=KERNEL_HELP)
    parser.add_argument("--arch", default=DEFAULT_ARCH, metavar="ARCH", help="GPU architecture (default: %(default)s)")
    parser.add_argument("--emit", choices=tuple(EMIT), default="ptx", help="what to write (default: %(default)s)")
    parser.add_argument(
        "-O", dest="opt_level", type=int, choices=range(4), default=3, help="optimisation (default: %(default)s)"
    )
    parser.add_argument(
        "-o", dest="output", default=output.STDOUT, metavar="OUT", help="file to write; - is stdout (default: -)"
    )
    parser.add_argument(
        "--assembler", choices=ASSEMBLERS, help="what makes machine code (default: the first that is there)"
    )
    parser.add_argument(
        "--time", action="store_true", help="print on stderr what each pass, LLVM and the assembler take"
    )
    parser.add_argument(
        "--remarks", action="store_true", help="print on stderr what passes did to each op, or did not, and why"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compiles, and writes what was asked for."""
    from lowlp.compiler.architectures import check_arch
    from lowlp.compiler.compilation_times import compile_times
    from lowlp.errors import CompileError

    arch = check_arch(options.arch, "--arch")
    program = open_file(options.file, options.kernel)
    if isinstance(program, KernelBinary):
        raise LowlpValueError(f"{options.file}: compiled already; `lowlp inspect` shows what it holds")
    try:
        if options.time:
            end = "cubin" if options.emit in _BINARY else options.emit
            times = compile_times(program, arch, opt_level=options.opt_level, end=end, assembler=options.assembler)
            print(times, file=sys.stderr)
        if options.remarks:
            remarks = [str(remark) for remark in _remarks(program, arch, options.emit, options.opt_level)]
            print("\n".join(remarks or ["no remarks"]), file=sys.stderr)
        if options.emit in _BINARY:
            data: str | bytes = _machine_code(program, arch, options)
        else:
            data = _text(program, arch, options.emit, options.opt_level)
    except CompileError as error:
        raise explained(error, options.file, options.kernel) from error
    output.write(options.output, data)
    return 0


def _text(program: BlockProgram | str, arch: str, emit: str, opt_level: int) -> str:
    """The program after the pipeline that ends at `emit`."""
    from lowlp.compiler.compilation import open_program, read_ptx, run_pipeline

    module = open_program(program)
    if emit != "block":
        run_pipeline(module, f"lowlp-to-{emit}{{arch={arch} opt-level={opt_level}}}")
    return read_ptx(module) if emit == "ptx" else str(module)


def _remarks(program: BlockProgram | str, arch: str, emit: str, opt_level: int) -> list[Remark]:
    """What the passes on the way to `emit` say; after the machine level none speaks."""
    from lowlp.compiler.compilation import open_program, run_pipeline
    from lowlp.compiler.remarks import collected

    module = open_program(program)
    with collected(module.context) as remarks:
        if emit != "block":
            end = emit if emit in ("thread", "cpu") else "nvvm"
            run_pipeline(module, f"lowlp-to-{end}{{arch={arch} opt-level={opt_level}}}")
    return remarks


def _machine_code(program: BlockProgram | str, arch: str, options: argparse.Namespace) -> bytes:
    from lowlp.compiler import compilation

    kernel = compilation.compile(program, arch, opt_level=options.opt_level, assembler=options.assembler)
    return kernel.binary.to_bytes() if options.emit == "lowlp" else kernel.cubin
