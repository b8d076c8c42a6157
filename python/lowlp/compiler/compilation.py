"""From a block program to a kernel that runs: the one way through the compiler for Python.

A program is a `Kernel` of the DSL, or text of the block dialect. The named pipelines of `lowlp-opt` do the work
(`lowlp-to-ptx`, `lowlp-to-cpu`); this module only feeds them and reads back what they leave.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from lowlp import __version__
from lowlp.errors import (
    CompileError,
    LowlpTypeError,
    LowlpValueError,
    ProductWarning,
    SpillWarning,
    frames_to_user,
    from_mlir_error,
)
from lowlp_runtime.assemble import AssembledCubin, assemble_ptx
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.product import Product
from lowlp_runtime.resources import Resources

from .architectures import DEFAULT_ARCH, check_arch
from .compiled_kernel import CompiledKernel
from .description import packed_format_of, read_kernels
from .forks import compiles
from .kernel_cache import cached, kernel_key
from .pipelines import failing_pass, stages_of
from .remarks import Remark, collected, summary

if TYPE_CHECKING:
    from lowlp._mlir import ir

LEVELS = ("block", "thread", "nvvm")
_UNKNOWN_ARCH = re.compile("unknown architecture '.*")
_FEW_SPILLED_BYTES = 64  # of a thread; 16 registers, which the assembler spills where that costs little


class BlockProgram(Protocol):
    """What can be compiled: the `Kernel` of the DSL."""

    @property
    def name(self) -> str:
        """The name of the kernel."""

    def module(self) -> ir.Module:
        """A fresh module with the kernel."""


def check_opt_level(opt_level: object) -> None:
    """Raises `LowlpValueError` unless it is a level of optimisation."""
    if not isinstance(opt_level, int) or isinstance(opt_level, bool) or opt_level not in (0, 1, 2, 3):
        raise LowlpValueError(f"opt_level: expected 0, 1, 2 or 3, got {opt_level!r}")


@compiles
def open_program(program: BlockProgram | str) -> ir.Module:
    """A fresh module of `program`, in a context of its own when it is text."""
    if not isinstance(program, str):
        if not callable(getattr(program, "module", None)):
            wanted = "a kernel of the DSL or text of the block dialect"
            raise LowlpTypeError(f"program: expected {wanted}, got {type(program).__name__}")
        return program.module()
    _refuse_path(program)
    from lowlp._mlir import ir

    try:
        program.encode()
    except UnicodeEncodeError as error:
        raise LowlpValueError(f"program: cannot be encoded as UTF-8: {error.reason} at {error.start}") from None
    with ir.Context() as context:
        try:
            return ir.Module.parse(program, context)
        except ir.MLIRError as error:
            raise from_mlir_error(error, "parsing the program", source=program) from error


def _refuse_path(text: str) -> None:
    if text.strip() and "\n" not in text and text.endswith((".mlir", ".py", ".lowlp")):
        way = "lowlp.load(path)" if text.endswith(".lowlp") else "pathlib.Path(path).read_text()"
        way = "the kernel that it defines" if text.endswith(".py") else way
        raise LowlpValueError(f"program: expected a kernel or its text, got the name of a file, {text!r}; use {way}")


@compiles
def run_pipeline(module: ir.Module, pipeline: str) -> None:
    """Runs a named pipeline, such as `lowlp-to-ptx{arch=sm_90a}`, on the module, in place.

    Raises `CompileError`, which carries the diagnostics and the program, so that both can be had again.
    """
    from lowlp._mlir import ir
    from lowlp._mlir.passmanager import PassManager

    source = module.operation.get_asm(enable_debug_info=True)
    try:
        PassManager.parse(f"builtin.module({pipeline})", module.context).run(module.operation)
    except ir.MLIRError as error:
        refused_by = failing_pass(source, pipeline, module.context) or pipeline.partition("{")[0]
        raise from_mlir_error(error, "compiling", source, pipeline, refused_by) from error


def read_ptx(module: ir.Module) -> str:
    """The PTX in the `gpu.binary` that `lowlp-to-ptx` left."""
    from lowlp._mlir.dialects import gpu

    for operation in module.body.operations:
        if isinstance(operation, gpu.BinaryOp):
            (entry,) = list(operation.objects)
            return bytes(gpu.ObjectAttr(entry).object).decode()
    raise LowlpValueError("program: expected one kernel, found none")


@compiles
def compile(  # noqa: A001
    program: BlockProgram | str,
    target: str = DEFAULT_ARCH,
    *,
    opt_level: int = 3,
    assemble: bool = True,
    assembler: str | None = None,
    notes: Mapping[str, object] | None = None,
    product: Product | None = None,
    cache: bool = True,
) -> CompiledKernel:
    """Compiles a block program for a GPU, or finds the kernel that an earlier call with the same arguments made.

    program    a kernel of the DSL, or text of the block dialect with one kernel
    target     the architecture, 'sm_90a' for example
    opt_level  0 to 3, of LLVM's optimiser; at 0 the passes that make programs faster are left out too
    assemble   also make machine code
    assembler  what makes it: 'ptxas', 'nvjitlink' or 'driver'; None: what LOWLP_ASSEMBLER names, or the first that is
               there (see `lowlp_runtime.assemble`)
    notes      JSON that is kept with the kernel
    product    what a kernel of `linear` multiplies, with the role of each parameter; None for other kernels
    cache      False: compile anew, and keep nothing; see `lowlp_runtime.cache` for where kernels are kept

    Raises `CompileError` with the user's source line where the program is wrong, `LowlpValueError` for an argument,
    `AssembleError` from the assembler. Gives a `ProductWarning` where it makes products of warpgroups wait, and a
    `SpillWarning` where a thread's values do not fit its registers.
    """
    kernel = _compiled(program, target, opt_level, assemble, assembler, notes or {}, product, cache)
    warn_of_spills(kernel)
    return kernel


@compiles
def compile_quietly(
    program: BlockProgram, target: str, notes: Mapping[str, object], product: Product | None
) -> CompiledKernel:
    """As `compile`, without a word of spills: the caller knows whether a user could mend them (`warn_of_spills`)."""
    return _compiled(program, target, 3, True, None, notes, product, True)


def _compiled(
    program: BlockProgram | str,
    target: str,
    opt_level: int,
    assemble: bool,
    assembler: str | None,
    notes: Mapping[str, object],
    product: Product | None,
    cache: bool,
) -> CompiledKernel:
    arch = check_arch(target)
    check_opt_level(opt_level)
    source = open_program(program)
    build = functools.partial(_build, source, arch, opt_level, assemble, assembler, notes, product)
    if not cache:
        return CompiledKernel(build(), arch)
    text = source.operation.get_asm(enable_debug_info=False)
    key = kernel_key(
        text, arch=arch, opt_level=opt_level, assemble=assemble, assembler=assembler, notes=notes, product=product
    )
    return CompiledKernel(cached(key, build), arch)


def warn_of_spills(kernel: CompiledKernel) -> None:
    """Says so where threads spill more than a few registers, each time that the kernel is asked for."""
    if kernel.spilled_bytes <= _FEW_SPILLED_BYTES:
        return
    warnings.warn(
        f"kernel {kernel.name} for {kernel.arch}: each thread spills {kernel.spilled_bytes} bytes of registers to "
        "memory, which is slow: give a thread less to hold, by smaller tiles or more threads, or unroll less",
        SpillWarning,
        stacklevel=frames_to_user(),
    )


def _build(
    source: ir.Module,
    arch: str,
    opt_level: int,
    assemble: bool,
    assembler: str | None,
    notes: Mapping[str, object],
    product: Product | None,
) -> KernelBinary:
    texts = {"block": str(source)}
    module = source.operation.clone()
    ends = (*LEVELS[1:], "ptx")
    pipelines = [f"lowlp-to-{end}{{arch={arch} opt-level={opt_level}}}" for end in ends]
    with collected(module.context) as remarks:
        for end, pipeline, stage in zip(ends, pipelines, stages_of(pipelines, module.context), strict=True):
            _run_stage(module, stage, pipeline, source)
            if end != "ptx":
                texts[end] = str(module)
    ptx = read_ptx(module)
    description = _only_kernel(read_kernels(module, compiler_version=__version__, notes=notes))
    description = _with_remarks(description, remarks)
    description = replace(description, product=product, packed_format=packed_format_of(source))
    if not assemble:
        return KernelBinary(description, {arch: ptx}, {}, texts)
    assembled = assemble_ptx(ptx, arch, assembler=assembler)
    for remark in assembled.product_remarks:
        warnings.warn(
            f"kernel {description.name}: {assembled.assembler}: {remark}", ProductWarning, stacklevel=frames_to_user()
        )
    description = replace(description, resources=(_resources(assembled, arch, description.shared_bytes),))
    return KernelBinary(description, {arch: ptx}, {arch: assembled.cubin}, texts)


def _with_remarks(description: KernelDescription, remarks: Sequence[Remark]) -> KernelDescription:
    """The kernel with a note of what passes declined, if they did."""
    declined = summary(remarks)
    return replace(description, notes={**description.notes, "remarks": declined}) if declined else description


def _run_stage(module: ir.Module, stage: str, pipeline: str, source: ir.Module) -> None:
    """Runs a stage of `pipeline` on what the stages before it made of `source`, in place; errors are of the whole."""
    from lowlp._mlir import ir
    from lowlp._mlir.passmanager import PassManager

    try:
        PassManager.parse(f"builtin.module({stage})", module.context).run(module.operation)
    except ir.MLIRError:
        try:
            run_pipeline(source.operation.clone(), pipeline)
        except CompileError as error:
            raise _target_error(error) or error from None
        raise


def _target_error(error: CompileError) -> LowlpValueError | None:
    """What the compiler says of `target`, without the place in the program, which is not at fault; or None."""
    found = next(filter(None, map(_UNKNOWN_ARCH.search, error.diagnostics)), None)
    return LowlpValueError(f"target: {found[0]}") if found else None


def _resources(assembled: AssembledCubin, arch: str, dynamic_shared_bytes: int) -> Resources:
    return Resources(
        arch=arch,
        assembler=assembled.assembler,
        registers=assembled.registers,
        spilled_bytes=assembled.spill_bytes,
        shared_bytes=assembled.shared_bytes + dynamic_shared_bytes,
        product_remarks=len(assembled.product_remarks),
    )


def _only_kernel(kernels: Sequence[KernelDescription]) -> KernelDescription:
    if len(kernels) != 1:
        names = ", ".join(kernel.name for kernel in kernels) or "none"
        raise LowlpValueError(f"program: expected one kernel, found {len(kernels)} ({names})")
    return kernels[0]


@dataclass(frozen=True)
class CpuKernel:
    """A kernel compiled for the CPU target: the thread-level program that would become PTX, run and checked here."""

    description: KernelDescription
    program: Any = field(repr=False)

    def __call__(
        self,
        *arguments: object,
        seed: int = 0,
        workers: int = 0,
        checks: bool | str = True,
        undefined: Collection[str] = (),
        sites: bool = False,
        **named: object,
    ) -> dict[str, Any]:
        """Runs the kernel on numpy arrays and numbers, and returns what it counted.

        seed       orders blocks and threads; a correct program gives the same result for all
        workers    operating-system threads; 0: one for each core
        checks     'bounds' of accesses, as False; with them 'races' or 'uninitialised' reads; or 'all', as True
        undefined  names of the arrays whose contents mean nothing before the kernel has written them
        sites      also count by op, at some cost: the item 'sites' is a list of dictionaries with the op's 'site', the
                   'accesses' of threads, their 'bytes', the 'requests' of warps that they make up, the 'sectors' of 32
                   bytes that these touch in arrays, and the 'extra_passes' that bank conflicts cost in shared memory

        Raises `CpuTargetError` with op, source line, block and thread where the program does what a GPU forbids.
        """
        from .cpu_launch import run

        return run(
            self.description,
            self.program,
            arguments,
            named,
            seed=seed,
            workers=workers,
            checks=checks,
            undefined=undefined,
            sites=sites,
        )


@compiles
def compile_cpu(
    program: BlockProgram | str,
    target: str = DEFAULT_ARCH,
    *,
    opt_level: int = 2,
    notes: Mapping[str, object] | None = None,
    product: Product | None = None,
) -> CpuKernel:
    """Compiles a block program for the CPU target; errors as for `compile`.

    target     the architecture whose thread program is run: without tensor copies, for example, where it has none
    opt_level  0 to 3: at 0 the passes that make programs faster are left out; at 3 LLVM optimises too, which is worth
               it for a program that runs for many seconds
    """
    from lowlp._mlir._mlir_libs import _compiler

    arch = check_arch(target)
    module = open_program(program)
    try:
        packed_format = packed_format_of(module)
        with collected(module.context) as remarks:
            run_pipeline(module, f"lowlp-to-cpu{{arch={arch} opt-level={opt_level}}}")
    except CompileError as error:
        raise _target_error(error) or error from None
    description = _only_kernel(read_kernels(module, compiler_version=__version__, notes=notes or {}))
    description = _with_remarks(description, remarks)
    description = replace(description, product=product, packed_format=packed_format)
    return CpuKernel(description, _compiler.CpuProgram(module.operation, opt_level))
