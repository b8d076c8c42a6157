"""The operands of a product's kernel: one ordered list, which the compiler makes and a saved kernel carries.

    y = epilogue(x @ w^T + bias) + residual

An operand is one parameter of the kernel; its role says what it is, and so where a launch takes it from:

    call     x, bias, residual: arguments of the call; of quantised x also x_scales, x_sums, x_zeros, and weight_sums,
             which zero points of x multiply; of experts row_offsets, the row of x at which those of each begin, and
             where the last one's end
    weights  packed, scales, zeros, offsets, lut, lut_unscale, codebooks, codebooks_unscale, book_scales, scale2,
             super_scales, super_offsets, permutation, fit, unfit: made of the arrays that quantised weights are stored
             as, by the operand's transform (`lowlp_runtime.operand_arrays`)
    result   y
    launch   m, x_stride, residual_stride, blocks: numbers that follow from the shapes of a call
"""

import re
from dataclasses import dataclass
from typing import Final

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.weight_range import Fit

SOURCES: Final = {
    "x": "call",
    "packed": "weights",
    "scales": "weights",
    "zeros": "weights",
    "offsets": "weights",
    "lut": "weights",
    "lut_unscale": "weights",
    "codebooks": "weights",
    "codebooks_unscale": "weights",
    "book_scales": "weights",
    "scale2": "weights",
    "super_scales": "weights",
    "super_offsets": "weights",
    "permutation": "weights",
    "fit": "weights",
    "unfit": "weights",
    "bias": "call",
    "residual": "call",
    "x_scales": "call",
    "x_sums": "call",
    "x_zeros": "call",
    "weight_sums": "call",
    "row_offsets": "call",
    "y": "result",
    "m": "launch",
    "x_stride": "launch",
    "residual_stride": "launch",
    "blocks": "launch",
}
"""Role -> where a launch takes the operand from."""

ROWS: Final = "m"
"""Stands in shapes for the number of rows of x."""

_FIT: Final = "fit what largest"

TRANSFORMS: Final = {
    "": tuple(role for role in SOURCES if role not in ("fit", "unfit")),
    "by_group": ("scales", "zeros", "offsets", "super_scales", "super_offsets"),
    "by_row": ("scale2",),
    "apart": ("packed",),
    "filled": ("lut", "codebooks"),
    "copies": ("codebooks",),
    "filled copies": ("codebooks",),
    "filled sums": ("codebooks",),
    "filled sums copies": ("codebooks",),
    "unfill": ("lut_unscale", "codebooks_unscale"),
    "unfill sums": ("codebooks_unscale",),
    _FIT: ("fit", "unfit"),
}
"""What makes an operand of a stored array -> the roles that may have it.

    ''        as it is stored
    by_group  [N, K / group] as [K / group, N], and so what super-groups have, and bytes of packed integers; what a
              whole tensor has is repeated
    by_row    a number for each row, [N]; one for all is repeated
    apart     the words of gate and up, whose rows are no whole units, packed each by itself, one after the other
    filled    entries times the power of two that brings the largest to the top of the element's range, rounded
    unfill    the inverse of that power, a number
    sums      after either, of R books: a power of two that brings R times the largest entry there at most
    copies    entries twice, in two orders (`spread_books`); after 'filled' of those that are filled
    fit       text of a `weight_range.Fit`: the power of two by which f16 holds all weights, a number for role 'fit',
              and its inverse for 'unfit'
"""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ELEMENT = re.compile(r"[a-z][a-z0-9]*")


@dataclass(frozen=True)
class Operand:
    """One operand of a kernel.

    name       of the parameter
    role       what it is, one of `SOURCES`
    element    type of the elements as they are stored ('f16', 'e8m0', 'uint8', 'uint32'), or of the number ('i32')
    shape      extents of the array that the kernel reads or writes, with 'm' for the rows of x; () for a number
    transform  what makes it of stored arrays, one of `TRANSFORMS`

    Raises `LowlpTypeError` and `LowlpValueError` for anything else.
    """

    name: str
    role: str
    element: str
    shape: tuple[int | str, ...] = ()
    transform: str = ""

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for text in (self.name, self.role, self.element, self.transform)):
            raise LowlpTypeError(f"operand: name, role, element and transform must be text, got {self!r:.200}")
        if not _NAME.fullmatch(self.name) or not _ELEMENT.fullmatch(self.element):
            raise LowlpValueError(f"operand {self.name!r}: expected identifiers as name and element, got {self!r:.200}")
        if self.role not in SOURCES:
            raise LowlpValueError(f"operand {self.name!r}: role must be one of {', '.join(SOURCES)}, got {self.role!r}")
        if self.role not in TRANSFORMS.get(_FIT if Fit.parse(self.transform) else self.transform, ()):
            allowed = ", ".join(repr(name) for name, roles in TRANSFORMS.items() if self.role in roles)
            raise LowlpValueError(
                f"operand {self.name!r}: transform of {self.role} must be one of {allowed}, got {self.transform!r}"
            )
        if not isinstance(self.shape, list | tuple):
            raise LowlpTypeError(f"operand {self.name!r}: shape must be a list, got {self.shape!r:.80}")
        for extent in self.shape:
            if extent != ROWS and (not isinstance(extent, int) or isinstance(extent, bool) or extent < 1):
                raise LowlpValueError(
                    f"operand {self.name!r}: an extent must be {ROWS!r} or a positive int, got {extent!r:.40}"
                )
        object.__setattr__(self, "shape", tuple(self.shape))

    @property
    def source(self) -> str:
        """Where a launch takes it from: 'call', 'weights', 'result' or 'launch'."""
        return SOURCES[self.role]

    @property
    def is_array(self) -> bool:
        """Whether it is an array, not a number."""
        return bool(self.shape)

    def to_json(self) -> dict[str, object]:
        """As JSON, the inverse of `Operand(**data)`."""
        return {**vars(self), "shape": list(self.shape)}
