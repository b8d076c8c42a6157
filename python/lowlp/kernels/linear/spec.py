"""What a kernel for `linear` is specialised for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lowlp.errors import LowlpValueError
from lowlp.numeric.codec import OFFSET_TYPES, SCOPES, ZERO_TYPES, Codec
from lowlp.numeric.dtypes import DType, dtype
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.weights.packing import find_placement

ACTIVATIONS: Final = ("f16", "bf16")
OUTPUTS: Final = ("f16", "bf16", "f32")
EPILOGUES: Final = ("relu", "gelu", "gelu_tanh", "silu", "silu_mul")


@dataclass(frozen=True)
class LinearSpec:
    """What a kernel for `linear` is specialised for; M and the row stride of x stay open.

    n, k          the weights' shape [N, K]
    weight        name of the codes' type: an integer, bipolar or float of 1 to 8 bits; or 'lut1' to 'lut8'
    group_size    weights of a row that share a scale; divides K
    activation    'f16' or 'bf16'
    out           type of the result
    scale         type of the scales
    zeros         type of the zero points [N, K / group_size], or ''
    offsets       type of the offsets [N, K / group_size], or ''
    table         'tensor', 'channel' or 'group' where the weight is a table: how many there are; else ''
    scale2        with a second scale, an f32 number; excludes offsets
    bias          type of a bias [N], or ''
    epilogue      what is done with the sums and the bias, one of `EPILOGUES`, or ''. With 'silu_mul' the first N / 2
                  rows are the gate and the others what it is multiplied with; y then has N / 2 columns
    residual      type of what is added to y behind that, [M, columns of y], or ''
    aligned       x and the residual are 16-byte aligned and their row strides multiples of 8 elements: wide loads
    dependent_launch  the kernel may begin while the launch before it runs (with stages): no launch that may still run
                  then writes weights, scales, zero points, offsets and tables
    """

    n: int
    k: int
    weight: str
    group_size: int
    activation: str = "f16"
    out: str = "f16"
    scale: str = "f16"
    zeros: str = ""
    offsets: str = ""
    table: str = ""
    scale2: bool = False
    bias: str = ""
    epilogue: str = ""
    residual: str = ""
    aligned: bool = False
    dependent_launch: bool = False

    def __post_init__(self) -> None:
        for name in ("n", "k", "group_size"):
            if getattr(self, name) < 1:
                raise LowlpValueError(f"{name}: must be at least 1, got {getattr(self, name)}")
        if self.k % self.group_size:
            raise LowlpValueError(f"group_size: must divide k = {self.k}, got {self.group_size}")
        is_table = table_bits(self.weight) is not None
        for name, allowed in (
            ("activation", ACTIVATIONS),
            ("out", OUTPUTS),
            ("scale", tuple(SCALE_DTYPES)),
            ("zeros", ("", *ZERO_TYPES)),
            ("offsets", ("", *OFFSET_TYPES)),
            ("table", SCOPES if is_table else ("",)),
            ("bias", ("", *OUTPUTS)),
            ("epilogue", ("", *EPILOGUES)),
            ("residual", ("", *OUTPUTS)),
        ):
            if getattr(self, name) not in allowed:
                listed = ", ".join(repr(choice) if choice == "" else choice for choice in allowed)
                raise LowlpValueError(f"{name}: must be one of {listed}, got {getattr(self, name)!r}")
        if self.zeros and self.offsets:
            raise LowlpValueError("zeros, offsets: at most one of them may be given, got both")
        if self.zeros and (is_table or not dtype(self.weight).is_integer):
            raise LowlpValueError(f"zeros: allowed for integer types only, got weight {self.weight}; use offsets")
        if self.scale2 and self.offsets:
            raise LowlpValueError("scale2, offsets: at most one of them may be given, got both")
        if self.epilogue == "silu_mul" and self.n % 2:
            raise LowlpValueError(f"epilogue: silu_mul needs an even n, rows of gate and up, got n = {self.n}")
        if not is_table:
            check_weight(dtype(self.weight), self.activation)

    @property
    def first_rows(self) -> tuple[int, ...]:
        """The row of scales, bias and the like at which each product that makes y begins: of gate and up, or one."""
        return (0, self.n // 2) if self.epilogue == "silu_mul" else (0,)

    @property
    def products(self) -> int:
        """How many products make y: 2 with gate and up, else 1."""
        return len(self.first_rows)

    @property
    def columns_of_y(self) -> int:
        """N, or half of it."""
        return self.n // self.products

    @property
    def packed_rows_of_product(self) -> int:
        """Rows of the packed weights of a product: whole units where there are two."""
        rows, unit = self.columns_of_y, self.rows_of_unit
        return rows if self.products == 1 else -(-rows // unit) * unit

    @property
    def is_packed_apart(self) -> bool:
        """Whether gate and up are packed each by itself, since their rows are no whole units."""
        return self.packed_rows_of_product * self.products > self.n

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return table_bits(self.weight) or dtype(self.weight).bits

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return self.k // self.group_size

    @property
    def rows_of_unit(self) -> int:
        """Rows of a unit of packed weights: 16, 32 or 64."""
        return int(find_placement(self.weight, self.activation).unit_rows)

    @property
    def is_bipolar(self) -> bool:
        """Whether codes u stand for 2 u - (2^b - 1)."""
        return self.weight.startswith("bipolar")

    @property
    def code_type(self) -> str:
        """The type as which codes are loaded."""
        return f"uint{self.bits}" if self.table or self.is_bipolar else self.weight

    @property
    def corrector(self) -> str:
        """The type of the zero points or offsets, or ''."""
        return self.zeros or self.offsets


def table_bits(weight: str) -> int | None:
    """b for 'lut{b}', else None."""
    return next((bits for bits in range(1, 9) if weight == f"lut{bits}"), None)


def check_weight(weight: DType, activation: str, argument: str = "weight") -> None:
    """Raises `LowlpValueError`, which names `argument`, unless products of these types are exact."""
    if weight.bits > 8:
        raise LowlpValueError(f"{argument}: must be a type of 1 to 8 bits, got {weight.name}")
    if activation == "f16" and weight.is_float and weight.exponent_bits > 5:
        raise LowlpValueError(
            f"{argument}: {weight.name} has {weight.exponent_bits} exponent bits and f16 has 5; use bf16 activations"
        )


def prescale(weight: DType, activation: str) -> float:
    """The power of two by which weights are multiplied so that the activation type holds all of them exactly."""
    factor = Codec(weight, "channel").prescale(activation)
    assert factor is not None, "check_weight refuses other types"
    return factor
