"""Rows of packed weights by their numbers, dequantised: what an embedding looks up, and slabs of weights for gradients.

A block has one row and `COLUMNS` of its weights, a thread four neighbours. Each weight's code is put together from the
runs of its bits in the words of its unit (`lowlp.weights.unit_places`), and is the index of a table of float32: so all
codes go one way, of integers, floats, tables and codebooks. What follows is `QuantizedTensor.dequantize`, operation by
operation in float32, and one rounding: results are its bits. Few rows are looked up for each token, and their units lie
in the L2 cache together; a kernel that decodes fragments would decode 15 rows for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from lowlp import language as ll
from lowlp.layouts.register_layout import local, spatial
from lowlp.weights.unit_places import SHIFT_BITS, WORD_BITS

COLUMNS: Final = 1024
_THREADS: Final = 256
_BYTE_FLOATS: Final = ("e8m0", "e4m3")
_LAYOUT: Final = spatial(_THREADS) * local(COLUMNS // _THREADS)


@dataclass(frozen=True)
class RowsSpec:
    """What a kernel depends on.

    n, k               the shape of the weights
    unit_rows, unit_codes, unit_words  of a unit: rows, codes of a row, words
    units_k            units of a row
    runs               of bits of a code, `runs_of_codes`
    flip               what turns stored codes into codes
    table_size         numbers of a table, or vectors of a book
    table_scope        'tensor', 'channel' or 'group': what has a table of its own; of books 'blocks'
    vector             weights of a code
    books              for each book the parts of its code: their columns among those of a vector, and their shifts
    codes_of_vector    columns of a vector
    block_rows, block_columns, blocks_k  weights that share books, 0 for all; blocks of a row
    group_size         weights of a row that share a scale; `one_scale`: all do
    scales, zeros, offsets, super_scales, super_offsets  types of their elements, '' for none
    groups_of_super    groups that share a super-scale
    scale2             '', 'one' or 'row'
    permutation        columns are packed in another order
    wide_ids           numbers of rows are int64, else int32
    out                'f16', 'bf16' or 'f32'
    """

    n: int
    k: int
    unit_rows: int
    unit_codes: int
    unit_words: int
    units_k: int
    runs: int
    flip: int
    table_size: int
    group_size: int
    scales: str
    table_scope: str = "tensor"
    vector: int = 1
    books: tuple[tuple[tuple[int, int], ...], ...] = (((0, 0),),)
    codes_of_vector: int = 1
    block_rows: int = 0
    block_columns: int = 0
    blocks_k: int = 1
    one_scale: bool = False
    zeros: str = ""
    offsets: str = ""
    super_scales: str = ""
    super_offsets: str = ""
    groups_of_super: int = 1
    scale2: str = ""
    permutation: bool = False
    wide_ids: bool = True
    out: str = "f16"

    @property
    def groups(self) -> int:
        """Of a row."""
        return self.k // self.group_size

    @property
    def units(self) -> int:
        """Of all weights."""
        return -(-self.n // self.unit_rows) * self.units_k

    @property
    def tables(self) -> int:
        """Tables, or books of blocks and of each place in a vector's sum."""
        if self.table_scope == "blocks":
            blocks_n = -(-self.n // self.block_rows) if self.block_rows else 1
            return blocks_n * self.blocks_k * len(self.books)
        return {"tensor": 1, "channel": self.n, "group": self.n * self.groups}[self.table_scope]

    @property
    def sizes(self) -> dict[str, int]:
        """Elements of each operand."""
        of_groups = 1 if self.one_scale else self.n * self.groups
        supers = self.n * -(-self.groups // self.groups_of_super)
        every = dict.fromkeys(("scales", "zeros", "offsets"), of_groups) | {
            "packed": self.units * self.unit_words,
            "places": self.runs * self.unit_rows * self.unit_codes,
            "table": self.tables * self.table_size * self.vector,
            "super_scales": supers,
            "super_offsets": supers,
            "scale_values": 256,
            "scale2": self.n if self.scale2 == "row" else 1,
            "order": self.k,
        }
        return {name: every[name] for name in self.operands}

    @property
    def operands(self) -> dict[str, str]:
        """The arrays that a kernel takes beside the numbers of rows and the result, and the types of their elements."""
        given = {name: getattr(self, name) for name in ("scales", "zeros", "offsets", "super_scales", "super_offsets")}
        arrays = {"packed": "uint32", "places": "int32", "table": "f32"}
        arrays |= {name: "uint8" if kind in _BYTE_FLOATS else kind for name, kind in given.items() if kind}
        if self.scales in _BYTE_FLOATS:
            arrays["scale_values"] = "f32"
        if self.scale2:
            arrays["scale2"] = "f32"
        if self.permutation:
            arrays["order"] = "int32"
        return arrays


class _Row:
    """What a block does, as it is traced."""

    def __init__(self, spec: RowsSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.token, self.chunk = ll.block_indices()
        step = 2 if spec.wide_ids else 1
        ids = ll.view_global(operands["ids"], shape=[operands["tokens"] * step])
        low = ll.full(ll.load_scalar(ids, offsets=[self.token * step]), "int32", layout=_LAYOUT)
        inside = (low >= 0) & (low < spec.n)
        if spec.wide_ids:
            high = ll.full(ll.load_scalar(ids, offsets=[self.token * step + 1]), "int32", layout=_LAYOUT)
            inside = inside & ll.equal(high, 0)
        self.inside = inside
        self.row = ll.where(inside, low, self.number(0))

    def number(self, value: Any) -> ll.Tile:
        """An integer for each weight."""
        return ll.full(value, "int32", layout=_LAYOUT)

    def taken(self, name: str, places: ll.Tile) -> ll.Tile:
        """Elements of an operand, which is seen as one dimension; zero beyond its end."""
        view = ll.view_global(self.operands[name], shape=[self.spec.sizes[name]])
        return ll.gather_global(view, places, dim=0, offsets=[0], layout=_LAYOUT)

    def as_f32(self, name: str, kind: str, places: ll.Tile) -> ll.Tile:
        """Scales and the like."""
        tile = self.taken(name, places)
        if kind in _BYTE_FLOATS:
            return self.taken("scale_values", ll.cast(tile, "int32"))
        if kind == "f32":
            return tile
        return ll.cast(tile if kind in ("f16", "bf16") else ll.cast(tile, "int32"), "f32")

    def code(self, column: ll.Tile, parts: tuple[tuple[int, int], ...]) -> ll.Tile:
        """The codes of which the parts begin in these columns of the packed matrix."""
        spec, code = self.spec, self.number(0)
        for added, shift in parts:
            code = code | (self.code_in_column(column + added if added else column) << shift)
        return code ^ spec.flip if spec.flip else code

    def code_in_column(self, column: ll.Tile) -> ll.Tile:
        """What is stored in columns of the packed matrix, in this row."""
        spec = self.spec
        unit = self.row // spec.unit_rows * spec.units_k + column // spec.unit_codes
        place = self.row % spec.unit_rows * spec.unit_codes + column % spec.unit_codes
        found = self.number(0)
        for run in range(spec.runs):
            field = self.taken("places", place + run * spec.unit_rows * spec.unit_codes)
            word = self.taken("packed", unit * spec.unit_words + (field & (1 << WORD_BITS) - 1))
            shift, to, bits = (
                ll.cast(field >> WORD_BITS + number * SHIFT_BITS & (1 << SHIFT_BITS) - 1, "uint32")
                for number in range(3)
            )
            one = ll.full(1, "uint32", layout=_LAYOUT)
            # Casts of what int32 does not hold would be its largest number.
            found = found | ll.cast((word >> shift & (one << bits) - 1) << to, "int32")
        return found

    def unscaled(self, packed: ll.Tile) -> ll.Tile:
        """The values that codes stand for, of weights at these places of the packed row."""
        spec = self.spec
        vector = packed // spec.vector if spec.vector > 1 else packed
        within = packed % spec.vector if spec.vector > 1 else None
        column = vector * spec.codes_of_vector if spec.codes_of_vector > 1 else vector
        total = None
        for book, parts in enumerate(spec.books):
            entry = self.table_of(packed, book) * spec.table_size + self.code(column, parts)
            value = self.taken("table", entry if within is None else entry * spec.vector + within)
            total = value if total is None else total + value
        assert total is not None
        return total

    def table_of(self, packed: ll.Tile, book: int) -> ll.Tile:
        """The number of the table of each weight."""
        spec = self.spec
        if spec.table_scope == "blocks":
            block = self.row // spec.block_rows * spec.blocks_k if spec.block_rows else self.number(0)
            if spec.block_columns:
                block = block + packed // spec.block_columns
            return block + book * (spec.tables // len(spec.books))
        if spec.table_scope == "tensor":
            return self.number(0)
        return self.row if spec.table_scope == "channel" else self.row * spec.groups + packed // spec.group_size

    def make(self) -> None:
        """Looks the row's part up and stores it."""
        spec = self.spec
        column = ll.iota(0, layout=_LAYOUT, dtype="int32") + self.number(self.chunk * COLUMNS)
        packed = self.taken("order", column) if spec.permutation else column
        value = self.unscaled(packed)
        of_group = packed // spec.group_size
        group = self.number(0) if spec.one_scale else self.row * spec.groups + of_group
        supers = self.row * -(-spec.groups // spec.groups_of_super) + of_group // spec.groups_of_super
        if spec.zeros:
            value = value - self.as_f32("zeros", spec.zeros, group)
        value = value * self.factor("scales", group, supers)
        if spec.scale2:
            value = value * self.taken("scale2", self.row if spec.scale2 == "row" else self.number(0))
        if spec.offsets:
            value = value + self.factor("offsets", group, supers)
        nan = ll.full(float("nan"), "f32", layout=_LAYOUT)
        result = ll.where(self.inside, value, nan)
        y_view = ll.view_global(self.operands["y"], shape=[self.operands["tokens"], spec.k])
        result = result if spec.out == "f32" else ll.cast(result, spec.out)
        ll.store_global(result, y_view, offsets=[self.token, self.chunk * COLUMNS])

    def factor(self, name: str, group: ll.Tile, supers: ll.Tile) -> ll.Tile:
        """Scales or offsets, times those of super-groups."""
        found = self.as_f32(name, getattr(self.spec, name), group)
        kind = getattr(self.spec, f"super_{name}")
        return found * self.as_f32(f"super_{name}", kind, supers) if kind else found


def rows_kernel(spec: RowsSpec) -> ll.Kernel:
    """The block program for `spec`. Its parameters are `ids`, the arrays of `spec.operands`, `y` [tokens, K] and
    `tokens`; ids of int64 are seen as twice as many int32."""

    def body(**operands: Any) -> None:
        _Row(spec, operands).make()

    arrays = {name: ll.pointer(kind, align=16) for name, kind in spec.operands.items()}
    return ll.make_kernel(
        body,
        name="dequantized_rows",
        parameters={
            "ids": ll.pointer("int32"),
            **arrays,
            "y": ll.pointer(spec.out, align=16),
            "tokens": ll.i32,
        },
        grid=lambda tokens: (tokens, -(-spec.k // COLUMNS)),
        num_threads=_THREADS,
    )
