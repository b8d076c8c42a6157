"""`lowlp_runtime.load`: a saved kernel, ready to be launched where no compiler is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.errors import LowlpTypeError
from lowlp_runtime.launcher import launcher_of
from lowlp_runtime.product_launch import launch_product


@dataclass(frozen=True)
class Kernel:
    """A kernel that is launched by calling it."""

    binary: KernelBinary

    @property
    def description(self) -> KernelDescription:
        """Parameters, grid and block; of a kernel of `linear` what it multiplies."""
        return self.binary.description

    def __repr__(self) -> str:
        return f"<lowlp kernel {self.description.name} for {', '.join({**self.binary.cubins, **self.binary.ptx})}>"

    def __call__(self, *arguments: Any, stream: object = None, **named: Any) -> Any:
        """Launches the kernel on a GPU; see `call_kernel`."""
        return call_kernel(self.binary, arguments, named, stream)


def load(path: str | os.PathLike[str]) -> Kernel:
    """The kernel saved at `path`. Raises as `KernelBinary.load`."""
    return Kernel(KernelBinary.load(path))


def call_kernel(binary: KernelBinary, arguments: tuple[Any, ...], named: dict[str, Any], stream: object) -> Any:
    """Launches a kernel on a GPU.

    A kernel of `linear` is called `kernel(x, qw)`, with `bias=` and `residual=` where it takes them, and returns the
    result: see `launch_product`. Any kernel can be called with all of its parameters, by position or by name, as
    `lowlp_runtime.launch` takes them, and then returns nothing.
    """
    product = binary.description.product
    if product is not None and len(arguments) <= 2 and (arguments or "qw" in named):
        given = dict(zip(("x", "qw"), arguments, strict=False))
        names = ("x", "qw", "bias", "residual")
        wrong = [name for name in named if name not in names or name in given]
        missing = [name for name in ("x", "qw") if name not in given and name not in named]
        if wrong or missing:
            parts = ["missing: " + ", ".join(missing)] * bool(missing) + ["not expected: " + ", ".join(wrong)] * bool(
                wrong
            )
            raise LowlpTypeError(
                f"arguments of {binary.description.name}(x, qw, bias=, residual=, stream=): {'; '.join(parts)}"
            )
        return launch_product(binary, **given, **named, stream=stream)
    if arguments and named:
        raise LowlpTypeError("arguments: give all by position or all by name")
    launcher_of(binary)(named or arguments, stream)
    return None
