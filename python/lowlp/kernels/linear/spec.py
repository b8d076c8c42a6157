"""What a kernel for `linear` is specialised for."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Final

from lowlp._layout import Placement
from lowlp.errors import LowlpValueError
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.group_codes import GROUP_CODE_TYPES
from lowlp.numeric.vectors import Vectors
from lowlp.weights.packing import find_placement
from lowlp_runtime.stored_weights import code_of_vectors

from .activations import BYTES, DECODED_TO, FAMILIES, HALVES, INTEGERS, PLACED_FOR, check_bytes, meaning_of
from .codebooks.lattice_tables import shape_of_tables

ACTIVATIONS: Final = HALVES
"""Of x that is not quantised."""
OUTPUTS: Final = ("f16", "bf16", "f32")
SUMS: Final = "s32"
"""Results that are sums of products of integers, without scales."""
X_SCALES: Final = ("", "token", "tensor")
ORDERED_ROWS: Final = (0, 1, 2, 4, 8)
MOST_EXPERTS: Final = 512
EPILOGUES: Final = ("relu", "gelu", "gelu_tanh", "silu", "silu_mul", "gpt_oss")
GATED: Final = ("silu_mul", "gpt_oss")
"""Those of two products, gate and up."""
_NUMBERS_OF_EPILOGUES: Final = {"gelu": 4, "gelu_tanh": 1}
"""What they need beside each accumulator, where it is not 0."""


@dataclass(frozen=True)
class LinearSpec:
    """What a kernel for `linear` is specialised for; M and the row stride of x stay open.

    n, k          the weights' shape [N, K]
    codec         what codes mean, a `Codec` or its text, 'int4 g128 f16'. Kept in the form that all codecs share whose
                  kernel is the same: a table's entries are an operand, and scales come for each group of each row
    activation    'f16' or 'bf16'; of quantised x 'int8', 'uint8', 'f8e4m3' or 'f8e5m2'
    out           type of the result; 's32': sums of integers, without any scale
    bias          type of a bias [N], or ''
    epilogue      what is done with the accumulators and the bias, one of `EPILOGUES`, or ''. With one of
                  `GATED` the first N / 2 rows are the gate and the others up; y then has N / 2 columns
    residual      type of what is added to y after that, [M, columns of y], or ''
    aligned       x and the residual are 16-byte aligned and their row strides multiples of 8 elements: wide loads
    row_scale2    the second scale is a number for each row of the weights, not one for all
    ordered_rows  for weights with a permutation: so many rows of x the kernel puts in order itself, 1, 2, 4 or 8, and m
                  is no more; 0: x comes in the order of the weights
    dependent_launch  the kernel may begin while the launch before it runs (`begins_early`): no launch that may still
                  run then writes weights, scales, zero points, offsets, tables and codebooks
    x_scale       of quantised x: 'token', a scale for each row, or 'tensor', one; '' without
    x_zeros       rows of quantised integers have zero points
    x_bipolar     bits of codes u of x that stand for 2 u - (2^b - 1); 0: others
    integer_sums  integer scales of groups multiply sums of int32, where they can; else they are floats
    scales_weights  schedules may scale weights, which rounds them, before they are multiplied; else accumulators alone
    f16_powers    scales of e8m0 are known to lead to no weights times 2^-p that f16 lacks (`fit_of`): it scales weights
    f32_differences  zero points are floats, and f32 is known to hold every code less its zero point, and these times
                  scales: one instruction scales a weight as two would
    largest_book  of several books with scales the one whose is known to be the largest (`book_sums.largest_book`), so
                  that their sums take fewer instructions; -1: none is
    experts       so many matrices [N, K], one after the other, of which each multiplies a range of the rows of x
                  (`experts`); 0: one matrix multiplies them all
    """

    n: int
    k: int
    codec: Codec
    activation: str = "f16"
    out: str = "f16"
    bias: str = ""
    epilogue: str = ""
    residual: str = ""
    aligned: bool = False
    row_scale2: bool = False
    ordered_rows: int = 0
    dependent_launch: bool = False
    scales_weights: bool = True
    f16_powers: bool = False
    f32_differences: bool = False
    largest_book: int = -1
    x_scale: str = ""
    x_zeros: bool = False
    x_bipolar: int = 0
    experts: int = 0
    integer_sums: bool = True

    def __post_init__(self) -> None:
        for name in ("n", "k"):
            if getattr(self, name) < 1:
                raise LowlpValueError(f"{name}: must be at least 1, got {getattr(self, name)}")
        given: Codec | str = self.codec
        codec = Codec.parse(given) if isinstance(given, str) else given
        if not codec.scale:
            raise LowlpValueError(f"codec: expected one with scales, got {codec}")
        if isinstance(codec.group, int) and self.k % codec.group:
            raise LowlpValueError(f"group_size: must divide k = {self.k}, got {codec.group}")
        object.__setattr__(self, "codec", codec.for_kernel(self.k))
        for name, allowed in (
            ("activation", (*ACTIVATIONS, *BYTES)),
            ("out", (*OUTPUTS, SUMS)),
            ("x_scale", X_SCALES),
            ("bias", ("", *OUTPUTS)),
            ("epilogue", ("", *EPILOGUES)),
            ("residual", ("", *OUTPUTS)),
        ):
            if getattr(self, name) not in allowed:
                listed = ", ".join(repr(choice) if choice == "" else choice for choice in allowed)
                raise LowlpValueError(f"{name}: must be one of {listed}, got {getattr(self, name)!r}")
        if self.ordered_rows not in ORDERED_ROWS:
            raise LowlpValueError(f"ordered_rows: must be one of 0, 1, 2, 4, 8, got {self.ordered_rows!r}")
        if self.row_scale2 and not codec.scale2:
            raise LowlpValueError(f"row_scale2: expected a codec with a second scale, got {codec}")
        if self.epilogue in GATED and self.n % 2:
            raise LowlpValueError(f"epilogue: {self.epilogue} needs an even n, rows of gate and up, got n = {self.n}")
        check_codec(codec, self.activation)
        _check_blocks(self)
        _check_quantised(self)
        _check_experts(self)

    @property
    def placement(self) -> Placement:
        """Where the bits of packed weights are, in the units of a matrix of this shape."""
        return _placement_of(self.codec, self.activation, self.n, self.k)

    @property
    def is_of_bytes(self) -> bool:
        """Whether x is quantised: a byte for each element."""
        return self.activation in BYTES

    @property
    def is_of_integers(self) -> bool:
        """Whether products are of integers, and their sums of int32."""
        return self.activation in INTEGERS

    @property
    def placed_for(self) -> str:
        """The compute type for which the weights are packed."""
        return PLACED_FOR[self.activation]

    @property
    def family(self) -> str:
        """The family of packed weights."""
        return FAMILIES[self.activation]

    @functools.cached_property
    def takes_signs(self) -> bool:
        """Whether weights are decoded to signed bytes and not to those of stored codes, which takes some instructions
        more: signed integers whose groups have scales, so that no sums of x are needed."""
        code = self.codec.code
        is_signed = isinstance(code, DType) and code.is_integer and code.is_signed
        return self.is_of_integers and is_signed and not self.adds_integers

    @property
    def operand_type(self) -> str:
        """The type to which weights are decoded."""
        return "int8" if self.takes_signs else DECODED_TO[self.activation]

    @property
    def x_bytes(self) -> int:
        """Of an element of x."""
        return 1 if self.is_of_bytes else 2

    @property
    def step_k(self) -> int:
        """Weights along K of a matrix instruction."""
        return 32 // self.x_bytes

    @functools.cached_property
    def adds_integers(self) -> bool:
        """Whether a row is one sum of integers, which is exact: where it has one scale, and none with 's32'; integer
        scales of groups go on sums in int32 too, if these stay within it."""
        if not self.is_of_integers or self.offsets or self.zeros in ("f16", "bf16", "f32"):
            return False
        return self.groups == 1 or self.out == SUMS or self.has_integer_scales

    @functools.cached_property
    def has_integer_scales(self) -> bool:
        """Whether integer scales of several groups multiply sums of integers: of scales in two levels, the second one
        for a whole row, with which no sum leaves int32."""
        if not self.is_of_integers or not self.super_scale or self.supers > 1 or self.corrector or self.out == SUMS:
            return False
        if not self.integer_sums or self.groups == 1:
            return False
        code, scale = self.codec.code, named_dtype(self.scale, "scale")
        assert isinstance(code, DType)
        meaning = meaning_of(code)
        largest = max(abs(meaning.offset), abs(meaning.factor * ((1 << code.bits) - 1) + meaning.offset))
        x = 128 if self.activation == "int8" else 255
        return largest * x * max(abs(int(scale.min)), int(scale.max)) * self.k < 1 << 31

    @functools.cached_property
    def weight(self) -> str:
        """The name of the codes' type, or 'lut{b}'; of vectors 'vec{v}-{r}x{b}'."""
        code = self.codec.code
        if isinstance(code, Vectors):
            return code_of_vectors(str(code))
        return code.name if isinstance(code, DType) else f"lut{self.codec.bits}"

    @functools.cached_property
    def table(self) -> str:
        """'tensor', 'channel' or 'group' where the weights are indices of a table: how many there are; else ''."""
        return "" if self.codec.table is None else self.codec.table.scope

    @functools.cached_property
    def vectors(self) -> Vectors | None:
        """What vectors the codes are; None for codes of one weight."""
        return self.codec.vectors

    @property
    def book_rows(self) -> int | None:
        """Rows that share books; None for all."""
        block = () if self.vectors is None else self.vectors.block
        return block[-2] or None if len(block) > 1 else None

    @property
    def book_columns(self) -> int | None:
        """Weights of a row that share books; None for all."""
        block = () if self.vectors is None else self.vectors.block
        return block[-1] or None if block else None

    @property
    def shape_of_books(self) -> tuple[int, ...]:
        """Of the operand: [R, 2**b, v], or [blocks of N, blocks of K, R, 2**b, v], with twice as many entries where
        codes name one of two copies; of computed books that of the tables that they are computed from."""
        assert self.vectors is not None
        if self.vectors.lattices:
            return shape_of_tables(self.vectors)
        entries = 1 << self.vectors.bits << (self.vectors.spread == "copies")
        shape = (self.vectors.books, entries, self.vectors.vector)
        if not self.vectors.block:
            return shape
        return (-(-self.n // (self.book_rows or self.n)), -(-self.k // (self.book_columns or self.k)), *shape)

    @property
    def bits_of_row(self) -> int:
        """Bits of the codes of a row, without padding."""
        return self.k * self.bits if self.vectors is None else int(self.k * self.vectors.stored_bits_per_weight)

    @functools.cached_property
    def group_size(self) -> int:
        """Weights of a row that share a scale."""
        group = self.codec.group
        return group if isinstance(group, int) else self.k

    @property
    def first_rows(self) -> tuple[int, ...]:
        """The row of scales, bias and the like at which each product that makes y begins: of gate and up, or one."""
        return (0, self.n // 2) if self.epilogue in GATED else (0,)

    @functools.cached_property
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
    def rows_of_weights(self) -> int:
        """N, of all experts."""
        return self.n * max(1, self.experts)

    @property
    def packed_rows(self) -> int:
        """Rows of the packed weights of a matrix: of each expert whole units."""
        rows, unit = self.products * self.packed_rows_of_product, self.rows_of_unit
        return -(-rows // unit) * unit if self.experts else rows

    @property
    def is_packed_apart(self) -> bool:
        """Whether gate and up are packed each by itself, since their rows are no whole units."""
        return self.packed_rows_of_product * self.products > self.n

    @functools.cached_property
    def bits(self) -> int:
        """Bits of a code."""
        return self.codec.bits

    @property
    def ending_numbers(self) -> int:
        """How many numbers beside each accumulator a thread needs to finish a tile, where it has them all at once."""
        return (self.products - 1) + bool(self.residual) + _NUMBERS_OF_EPILOGUES.get(self.epilogue, 0)

    @property
    def needs_registers_to_end(self) -> bool:
        """Whether the epilogue needs such numbers, which kernels may have of some columns at a time."""
        return self.epilogue in _NUMBERS_OF_EPILOGUES

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return self.k // self.group_size

    @functools.cached_property
    def rows_of_unit(self) -> int:
        """Rows of a unit of packed weights: 16 to 256."""
        return int(self.placement.unit_rows)

    @functools.cached_property
    def unit_k(self) -> int:
        """Weights of a row in a unit: 64, or 32 or 16 where K is no multiple of it."""
        return int(self.placement.unit_k)

    @property
    def is_bipolar(self) -> bool:
        """Whether codes u stand for 2 u - (2^b - 1)."""
        return self.weight.startswith("bipolar")

    @functools.cached_property
    def scale(self) -> str:
        """The type of the scales."""
        return self.codec.scale

    @functools.cached_property
    def zeros(self) -> str:
        """The type of the zero points [N, K / group_size], or ''."""
        return self.codec.zeros or ""

    @functools.cached_property
    def offsets(self) -> str:
        """The type of the offsets [N, K / group_size], or ''."""
        return self.codec.offsets or ""

    @functools.cached_property
    def scale2(self) -> bool:
        """Whether there is a second scale, f32: a number, or with `row_scale2` one for each row."""
        return self.codec.scale2

    def without_second_scale(self) -> LinearSpec:
        """The same for scales of one level."""
        codec = self.codec
        if not codec.scale2:
            return self
        one_level = Codec(codec.code, codec.group, codec.scale, codec.zeros, codec.offsets)
        return replace(self, codec=one_level, row_scale2=False)

    @functools.cached_property
    def super_scale(self) -> str:
        """The type of the super-scales, which multiply integer scales; '' for scales of one level."""
        return self.codec.super_scale or ""

    @functools.cached_property
    def super_group_size(self) -> int:
        """Weights of a row that share a super-scale."""
        group = self.codec.super_group
        return group if isinstance(group, int) else self.k

    @property
    def supers(self) -> int:
        """Super-groups of a row, of which the last may be short."""
        return -(-self.k // self.super_group_size)

    @property
    def has_super_offsets(self) -> bool:
        """Whether offsets are integers, which super-offsets multiply."""
        return bool(self.super_scale) and self.offsets in GROUP_CODE_TYPES

    @functools.cached_property
    def corrector(self) -> str:
        """The type of the zero points or offsets, or ''."""
        return self.zeros or self.offsets


@functools.cache
def _placement_of(codec: Codec, activation: str, n: int, k: int) -> Placement:
    return find_placement(codec, PLACED_FOR[activation]).for_matrix(n, k)


def _check_quantised(spec: LinearSpec) -> None:
    """Raises `LowlpValueError` for what products of bytes do not have, and others of their fields."""
    if not spec.is_of_integers and (spec.out == SUMS or spec.x_zeros or spec.x_bipolar):
        raise LowlpValueError(
            "out_dtype: sums of int32, zero points and bipolar codes of x are of integer activations, got "
            f"{spec.activation}"
        )
    if spec.is_of_bytes == (spec.x_scale == "" and spec.out != SUMS):
        raise LowlpValueError(
            f"x_scale: {spec.activation} activations {'need one' if spec.is_of_bytes else 'have none'}, got "
            f"{spec.x_scale!r}"
        )
    if spec.out == SUMS and (spec.bias or spec.epilogue or spec.residual or spec.x_scale):
        raise LowlpValueError("out_dtype: s32 is of sums as they are, without scale of x, bias, epilogue and residual")
    if spec.out == SUMS and not spec.adds_integers:
        raise LowlpValueError(
            "out_dtype: s32 needs weights that are integers, with integer zero points and no offsets, got "
            + str(spec.codec)
        )
    if spec.ordered_rows and spec.is_of_bytes:
        raise LowlpValueError(f"ordered_rows: {spec.activation} activations come in the order of the weights")


def _check_blocks(spec: LinearSpec) -> None:
    """Raises `LowlpValueError` for blocks of books that no kernel takes."""
    rows = spec.book_rows
    if rows is None or rows >= spec.n:
        return
    if rows % spec.rows_of_unit:
        raise LowlpValueError(
            f"weight: books of blocks of {rows} rows have no kernels; must be multiples of {spec.rows_of_unit}"
        )
    if spec.first_rows[-1] % spec.rows_of_unit:
        raise LowlpValueError(
            f"epilogue: {spec.epilogue} with books of blocks needs a multiple of {spec.rows_of_unit} rows of gate and "
            f"up, got {spec.first_rows[-1]}"
        )


def _check_experts(spec: LinearSpec) -> None:
    """Raises `LowlpValueError` for what products of experts do not have."""
    if not 0 <= spec.experts <= MOST_EXPERTS:
        raise LowlpValueError(f"experts: must be 0 to {MOST_EXPERTS}, got {spec.experts!r}")
    if not spec.experts:
        return
    if spec.vectors is not None or spec.ordered_rows or spec.table not in ("", "tensor"):
        raise LowlpValueError(
            "experts: multiply with codes of one weight and at most one table, by rows in the order of the weights, "
            f"got {spec.codec}"
        )
    if spec.is_packed_apart:
        raise LowlpValueError(
            f"epilogue: {spec.epilogue} of experts needs a multiple of {spec.rows_of_unit} rows of gate and of up, "
            f"whole units of {spec.weight}, got {spec.columns_of_y}"
        )


def check_codec(codec: Codec, activation: str, argument: str = "weight") -> None:
    """Raises `LowlpValueError`, which names `argument`, unless products of these types are exact."""
    if activation in BYTES:
        check_bytes(codec, activation, argument)
        return
    if codec.vectors is not None:
        return
    if codec.bits > 8:
        raise LowlpValueError(f"{argument}: must have codes of 1 to 8 bits, got {codec.code}")
    if isinstance(codec.code, DType):
        check_weight(codec.code, activation, argument)


def check_weight(weight: DType, activation: str, argument: str = "weight") -> None:
    """Raises `LowlpValueError`, which names `argument`, unless products of this type are exact."""
    if weight.bits > 8:
        raise LowlpValueError(f"{argument}: must be a type of 1 to 8 bits, got {weight.name}")
    if activation == "f16" and weight.is_float and weight.exponent_bits > 5:
        raise LowlpValueError(
            f"{argument}: {weight.name} has {weight.exponent_bits} exponent bits and f16 has 5; use bf16 activations"
        )


@functools.cache
def prescale(weight: DType, activation: str) -> float:
    """The power of two by which weights are multiplied so that the activation type holds all of them exactly."""
    factor = Codec(weight, "channel").prescale(PLACED_FOR[activation])
    assert factor is not None, "check_weight refuses other types"
    return factor
