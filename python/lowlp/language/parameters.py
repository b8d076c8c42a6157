"""The parameters of a kernel: what stands after the colons of its signature."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.dtypes import DType, dtype, named_dtype

Kind = Literal["pointer", "integer", "float"]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel.

    kind           'pointer', 'integer' or 'float'
    dtype          of a pointer what it points to (`f16`, `int6`); else 'i32', 'i64' or 'f32'
    align          of a pointer: the bytes to which it is aligned, a promise that a launch checks; None promises nothing
    divisible_by   of an integer: a number that divides it, a promise that a launch checks; None promises nothing
    constant       of a pointer: what it points to is read only, and written by no launch that may still run
    name           how the kernel calls it; '' until a kernel has it
    """

    kind: Kind
    dtype: str
    align: int | None = None
    divisible_by: int | None = None
    constant: bool = False
    name: str = ""

    @property
    def mlir(self) -> str:
        """The type in the block dialect."""
        return f"!lowlp.ptr<{dtype(self.dtype).mlir}>" if self.kind == "pointer" else self.dtype

    def named(self, name: str) -> Parameter:
        """The same parameter under a name."""
        return dataclasses.replace(self, name=name)


def pointer(element: str | DType, align: int | None = None, constant: bool = False) -> Parameter:
    """A pointer to elements in global memory; those narrower than 8 bits are packed (Tilus, section 6.1).

    element   the element type, 'f16' or 'int6' for example
    align     bytes to which every argument is aligned, a power of two
    constant  a promise: the kernel only reads it, and no launch that may still run when the kernel begins writes it, as
              for weights that were there before. Then it may be read before `ll.wait_for_dependencies`. Nothing checks
              what other launches write; where they do, launch the kernel within `lowlp.no_dependent_launch`

    Raises LowlpValueError and LowlpTypeError for anything else.
    """
    found = named_dtype(element, "element")
    name = found.name
    _ = found.mlir  # bipolar types have no tiles of their own
    if align is not None:
        _positive("align", align)
        if align & (align - 1):
            raise LowlpValueError(f"align: must be a power of two, found {align}")
    if not isinstance(constant, bool):
        raise LowlpTypeError(f"constant: must be a bool, found {constant!r}")
    return Parameter("pointer", name, align=align, constant=constant)


def integer(bits: int, divisible_by: int | None = None) -> Parameter:
    """An integer of 32 or 64 bits, in the kernel a scalar of type index.

    divisible_by  a positive number that divides every argument

    Raises LowlpValueError and LowlpTypeError for anything else.
    """
    if bits not in (32, 64):
        raise LowlpValueError(f"bits: must be 32 or 64, found {bits!r}")
    if divisible_by is not None:
        _positive("divisible_by", divisible_by)
    return Parameter("integer", f"i{bits}", divisible_by=divisible_by)


def _positive(argument: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise LowlpTypeError(f"{argument}: must be an int or None, found {value!r}")
    if value < 1:
        raise LowlpValueError(f"{argument}: must be at least 1, found {value}")


i32: Final = integer(32)
i64: Final = integer(64)
f32: Final = Parameter("float", "f32")


def named_parameters(parameters: Mapping[str, object]) -> tuple[Parameter, ...]:
    """The parameters under their names, in order.

    Raises LowlpTypeError for one that is no `Parameter`.
    """
    result = []
    for name, parameter in parameters.items():
        if not isinstance(parameter, Parameter):
            raise LowlpTypeError(
                f"parameter {name!r}: must be ll.pointer(...), ll.integer(...), ll.i32, ll.i64 or ll.f32, "
                f"found {parameter!r}"
            )
        result.append(parameter.named(name))
    return tuple(result)
