"""What a kernel for `linear` is specialised for, and how it divides its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..codec import OFFSET_TYPES, SCOPES, ZERO_TYPES, Codec
from ..dtypes import DType, dtype
from ..errors import LowlpValueError
from ..language.control_flow import MAX_STAGES
from ..language.kernels import TABLE_COPIES, TABLE_FORMS
from ..packing import find_placement
from ..scale_types import SCALE_DTYPES

ACTIVATIONS: Final = ("f16", "bf16")
OUTPUTS: Final = ("f16", "bf16", "f32")
EPILOGUES: Final = ("relu", "gelu", "gelu_tanh", "silu", "silu_mul")
COLUMNS: Final = (8, 16, 32, 64, 128, 256)
WARPS: Final = tuple(range(1, 17))
_MANY_SUMS: Final = 48
"""Of a thread, of one tile."""
ROW_TILES: Final = tuple(range(1, 17))
MAX_WARPS: Final = 32
PARTS_TYPES: Final = ("f32", "f16")
TABLE_EXPONENT: Final = {"f16": 16, "bf16": 0}
"""Entries of tables come times a power of two, and are at most two to this power: near the top of f16's range, where
least is lost; bf16's range is that of f32."""


@dataclass(frozen=True)
class Schedule:
    """How a kernel for `linear` divides its work. No packed weight depends on it, and results by roundings at most.

    columns        rows of x that a block takes, columns of its tile of y^T: 8, 16, 32, 64, 128 or 256
    warps          of a block, one above the other along N: 1 to 16
    table_form     how codes of a table are looked up: 'pair', 'entry', 'register', or 'auto', by estimated cost
    table_copies   of that table, for its banks: a power of two up to 32; 0 chooses

    With `stages` the work is streamed (`linear_streaming`), and the following count:

    stages         of the loop, which loads so many less one ahead: 2 to 9
    row_tiles      of 16 rows, of a warp: 1 to 16; whole units of packed weights
    slices         of K among warps: 1, 2, 4, 8 or 16; a block has warps x slices warps, 32 at most
    units          of 64 weights along K, of a slice in a step: 1 or 2
    steps          in a stage: 1, 2, 4 or 8
    producer       a warp of its own begins the loads
    share_tiles    blocks divide the work evenly, so that a tile may belong to several; else each tile is one block's
    blocks_per_sm  as which the work is divided: 1 to 8
    parts_type     of sums of shared tiles that a block leaves for another: 'f32'; or 'f16', half the bytes, which
                   rounds them, infinite beyond its range; for results of f16 without tables and second scale

    With `warpgroups` too, products are made by `wgmma` (`linear_wide`): warps, slices and units do not count, row_tiles
    are of 64 rows and of a warpgroup, and the following count:

    warpgroups     of a block: 1 to 4
    column_tiles   of `columns`, side by side, for which a block decodes its weights once: 1, 2 or 4
    scales_on      'sums', or 'weights', which rounds the products of weights and scales
    cluster        of so many blocks that have a tile together, each an equal part of K: 1, 2, 4 or 8; more than 1
                   share no tiles otherwise, and each finishes 8 columns or more
    under_way      products of a warpgroup, for each of which it holds its weights: 1 to 8
    """

    columns: int = 8
    warps: int = 1
    table_form: str = "auto"
    table_copies: int = 0
    stages: int = 0
    row_tiles: int = 4
    slices: int = 1
    units: int = 1
    steps: int = 1
    producer: bool = True
    share_tiles: bool = True
    blocks_per_sm: int = 1
    parts_type: str = "f32"
    warpgroups: int = 0
    scales_on: str = "sums"
    under_way: int = 2
    column_tiles: int = 1
    cluster: int = 1

    def __post_init__(self) -> None:
        choices = (
            ("columns", COLUMNS),
            ("warps", WARPS),
            ("table_form", TABLE_FORMS),
            ("table_copies", TABLE_COPIES),
            ("stages", (0, *range(2, MAX_STAGES + 1))),
            ("row_tiles", ROW_TILES),
            ("slices", (1, 2, 4, 8, 16)),
            ("units", (1, 2)),
            ("steps", (1, 2, 4, 8)),
            ("producer", (False, True)),
            ("share_tiles", (False, True)),
            ("blocks_per_sm", tuple(range(1, 9))),
            ("parts_type", PARTS_TYPES),
            ("warpgroups", (0, 1, 2, 3, 4)),
            ("scales_on", ("sums", "weights")),
            ("under_way", tuple(range(1, 9))),
            ("column_tiles", (1, 2, 4)),
            ("cluster", (1, 2, 4, 8)),
        )
        for name, allowed in choices:
            if getattr(self, name) not in allowed:
                found = getattr(self, name)
                raise LowlpValueError(f"{name}: must be one of {', '.join(map(str, allowed))}, got {found!r}")
        if self.warps * self.slices > MAX_WARPS:
            raise LowlpValueError(
                f"warps, slices: a block has at most {MAX_WARPS} warps, got {self.warps} x {self.slices}"
            )

    @property
    def threads(self) -> int:
        """Of a block."""
        return 128 * self.warpgroups or 32 * self.warps * self.slices

    @property
    def has_tile_each(self) -> bool:
        """Whether each tile is one block's, or one cluster's, so that there are as many of these as tiles."""
        return self.cluster > 1 or not self.share_tiles

    @property
    def exchanges_registers(self) -> bool:
        """Whether the producer is a warpgroup, whose registers the others get: where a block has an SM of its own, and
        its threads have many sums."""
        is_large = self.warpgroups > 1 or (self.threads == 256 and self.row_tiles * self.columns // 2 > _MANY_SUMS)
        return self.producer and is_large and self.blocks_per_sm == 1

    @property
    def takes_turns(self) -> bool:
        """Whether warpgroups begin their products in turn: two whose products are long."""
        return self.warpgroups == 2 and self.columns >= 128

    @property
    def rows(self) -> int:
        """Rows of W, columns of y, that a block with stages takes."""
        return self.row_tiles * (64 * self.warpgroups or 16 * self.warps)

    @property
    def columns_of_block(self) -> int:
        """Rows of x that a block takes."""
        return self.columns * self.column_tiles

    @property
    def step_k(self) -> int:
        """Weights along K of a step."""
        return 64 if self.warpgroups else 64 * self.units * self.slices

    @property
    def stage_k(self) -> int:
        """Weights along K of a stage."""
        return self.steps * self.step_k


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
