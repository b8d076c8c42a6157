"""A kernel compiled for one GPU architecture: what it holds, saving, loading and calling it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from lowlp.errors import LowlpValueError
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.kernel import call_kernel
from lowlp_runtime.launcher import Launcher, launcher_of
from lowlp_runtime.resources import Resources

from .report import report_lines


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel for one GPU architecture.

    Made by `lowlp.compile` and `lowlp.compile_linear`, or read by `lowlp.load`. Calling it launches it: see `__call__`.
    """

    binary: KernelBinary
    arch: str

    def __repr__(self) -> str:
        return f"<lowlp compiled kernel {self.name} for {self.arch}>"

    @property
    def name(self) -> str:
        """The entry point in the PTX."""
        return self.binary.description.name

    @property
    def description(self) -> KernelDescription:
        """Parameters, grid and block."""
        return self.binary.description

    @property
    def ptx(self) -> str:
        """The PTX text. Raises `LowlpValueError` where a loaded kernel holds none."""
        if self.arch not in self.binary.ptx:
            raise LowlpValueError(f"ptx: kernel {self.name!r} holds no PTX for {self.arch}")
        return self.binary.ptx[self.arch]

    @property
    def cubin(self) -> bytes:
        """The machine code. Raises `LowlpValueError` where the kernel holds none (it was compiled without ptxas)."""
        if self.arch not in self.binary.cubins:
            raise LowlpValueError(f"cubin: kernel {self.name!r} holds no machine code for {self.arch}")
        return self.binary.cubins[self.arch]

    def ir(self, level: str) -> str:
        """The program at `level`: 'block', 'thread' or 'nvvm', as MLIR text. Raises `LowlpValueError` for others."""
        if not isinstance(level, str) or level not in self.binary.ir:
            held = ", ".join(self.binary.ir) or "none"
            raise LowlpValueError(f"level: kernel {self.name!r} holds no IR at level {level!r}; held: {held}")
        return self.binary.ir[level]

    @property
    def resources(self) -> Resources | None:
        """What the machine code takes, as the assembler says; None where there is none."""
        return self.description.resources_of(self.arch)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of registers that each thread keeps in local memory, as the assembler says; 0 where there is none."""
        return self.resources.spilled_bytes if self.resources else 0

    @property
    def product_remarks(self) -> int:
        """How often the assembler made products of warpgroups wait, or one after the other (`ProductWarning`)."""
        return self.resources.product_remarks if self.resources else 0

    def report(self, verbose: bool = False) -> str:
        """What the kernel costs, registers and spills first, and what was decided, as lines of text.

        The note `remarks` says what passes did not do, and why; with `verbose` decode plans are told step by step.
        """
        return "\n".join([f"kernel {self.name} for {self.arch}", *report_lines(self.description, verbose)])

    @property
    def launcher(self) -> Launcher:
        """What launches it; one for all kernels of equal content."""
        return launcher_of(self.binary)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the kernel to one file, which `lowlp.load` and `lowlp_runtime` read, the latter without a compiler.

        Raises `LowlpTypeError` for what is no path, and `LowlpOSError` (an `OSError`) where it cannot be written.
        """
        self.binary.save(path)

    def __call__(self, *arguments: Any, stream: object = None, **named: Any) -> Any:
        """Launches the kernel on a GPU.

        A kernel of `linear` is called `kernel(x, qw)`, with `bias=` and `residual=` where it takes them, and returns
        the result; x is a CUDA tensor (docs/saved-kernel.md). Any kernel can be called with all of its parameters, by
        position or by name, as `lowlp_runtime.launch` takes them, and then returns nothing.
        """
        return call_kernel(self.binary, arguments, named, stream)


def load(path: str | os.PathLike[str]) -> CompiledKernel:
    """The kernel saved at `path`.

    Raises `KernelFileError` for a file that is damaged, of another version or no saved kernel, `LowlpOSError` (an
    `OSError`, and `FileNotFoundError` where that is the reason) where it cannot be read, `LowlpTypeError` for what is
    no path.
    """
    binary = KernelBinary.load(path)
    arch = next(iter([*binary.cubins, *binary.ptx]))
    return CompiledKernel(binary, arch)
