"""How weights of one kind become the operands of a kernel, as data that a machine without the compiler can follow.

`describe` (in `preparing`) writes it down from the compiler's own functions, with a small sample of weights and its
operands; `check_sample` makes the sample's operands again, from the data alone, and compares them bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from lowlp.numeric.array_ops import ArrayOps
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.array_packing import pack_with
from lowlp.weights.spread_codes import spread_codes
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.operand_arrays import STORED_AS, host_operands
from lowlp_runtime.operands import Operand

from .cases import ACTIVATION, GROUP_SIZE, Shape

_NO_BOOKS: Final[Mapping[str, AnyArray]] = MappingProxyType({})


@dataclass(frozen=True)
class SavedPlacement:
    """A `Placement` by its data; `shapes` gives the packed shape of each 'NxK' that is needed."""

    name: str
    bits: int
    code_bytes: int
    unit_rows: int
    unit_k: int
    row_tiles: int
    num_words: int
    parts: int
    steps: int
    slots: int
    bit_moves: tuple[tuple[int, int, int, int], ...]
    shapes: dict[str, tuple[int, int, int, int, int]]

    def moves(self) -> list[tuple[int, int, int, int]]:
        """As `Placement.moves`."""
        return list(self.bit_moves)

    def packed_shape(self, n: int, k: int) -> tuple[int, int, int, int, int]:
        """As `Placement.packed_shape`. Raises `LowlpValueError` for weights that were not prepared."""
        if str(Shape(n, k)) not in self.shapes:
            raise LowlpValueError(f"{self.name}: no packed shape was prepared for {n}x{k}")
        return self.shapes[str(Shape(n, k))]


@dataclass(frozen=True)
class SavedWeights:
    """All that makes random weights of one kind, their operands, and their meaning.

    values      float64 by code
    codes       those that are finite numbers, all that may be drawn
    flip        turns a code into a stored one
    operands    what kernels take of them, in order
    lut         the entries of the table, where codes are its indices
    group       weights of a row that share a scale; 0: all of them
    scale       type of the scales
    activation  type of the activations that they meet, and of results
    vectors     what codes of vectors are, as `WeightKind` has it; such have no values, codes or lut
    skewed, frequent  as `WeightKind` has them
    spread      how codes of vectors are spread (`Vectors.spread`)
    """

    kind: str
    values: tuple[float, ...]
    codes: tuple[int, ...]
    flip: int
    zeros_dtype: str
    placement: SavedPlacement
    operands: tuple[Operand, ...]
    lut: tuple[float, ...] = ()
    group: int = GROUP_SIZE
    scale: str = "f16"
    activation: str = ACTIVATION
    vectors: str = ""
    skewed: bool = False
    frequent: bool = False
    spread: str = ""

    @property
    def second_scale(self) -> bool:
        """Whether the tensor has a scale beside those of its groups."""
        return any(operand.role == "scale2" for operand in self.operands)

    def group_in(self, k: int) -> int:
        """Weights that share a scale, of rows of k."""
        return self.group or k

    def make_operands(
        self,
        ops: ArrayOps,
        codes: Any,
        scales: Any,
        zeros: Any,
        scale2: float | None = None,
        books: Mapping[str, AnyArray] = _NO_BOOKS,
        super_scales: Any = None,
    ) -> dict[str, Any]:
        """What kernels take of weights, by name.

        codes          uint8 [N, K], an array of `ops`; of vectors uint8 or uint16 [N, K / vector * books]
        scales, zeros  [N, K / group_size], the like; of a type that `ops` may lack as integers of its bits
        scale2         the tensor's, or None
        books          'codebooks' and, where there are such, 'book_scales', of the host
        super_scales   [N, super-groups], like scales, which are then integers as they are stored; or None
        """
        stored = {"lut": np.array(self.lut, np.float32), **books}
        tables = [
            # Those of blocks have the shape that this matrix gives them.
            replace(operand, shape=_shape_of(stored[name], operand)) if name in books and operand.is_array else operand
            for operand in self.operands
            if (name := STORED_AS.get(operand.role, "")) in ("lut", "codebooks", "book_scales")
        ]
        made: dict[str, Any] = {
            name: ops.put(part) if isinstance(part, np.ndarray) else part
            for name, part in host_operands(tables, stored).items()
        }
        # The bench draws weights that f16 holds as they are.
        made |= {operand.name: 1.0 for operand in self.operands if operand.role in ("fit", "unfit")}
        given = {"scales": scales, "zeros": zeros, "super_scales": super_scales}
        if scale2 is not None:
            made |= {operand.name: scale2 for operand in self.operands if operand.role == "scale2"}
        for operand in self.operands:
            if operand.role == "packed":
                made[operand.name] = pack_with(ops, self.placement, self._as_packed(codes, books), self.flip)
            elif operand.role in given:
                made[operand.name] = _contiguous(ops.permute(given[operand.role], (1, 0)))
            elif operand.name not in made:
                raise LowlpValueError(f"{self.kind}: the bench makes no weights with {operand.role}")
        return {operand.name: made[operand.name] for operand in self.operands}

    def _as_packed(self, codes: Any, books: Mapping[str, AnyArray]) -> Any:
        """Codes as the matrix that is packed (`columns_of_codes`)."""
        if not self.spread:
            return codes
        count, entries, vector = books["codebooks"].shape[-3:]
        bytes_of_entry = vector * (1 if "book_scales" in books else 2)
        wide = spread_codes(codes.reshape(len(codes), -1, count), entries.bit_length() - 1, bytes_of_entry, self.spread)
        columns = wide.reshape(len(codes), -1)
        return columns.astype(np.uint16) if isinstance(columns, np.ndarray) else _as_uint16(columns)

    def check_sample(self, ops: ArrayOps, sample: dict[str, AnyArray]) -> None:
        """Raises `LowlpValueError` unless the sample's operands come out as the compiler's own functions made them."""
        zeros = ops.put(sample["zeros"]) if "zeros" in sample else None
        scale2 = float(sample["scale2"]) if "scale2" in sample else None
        books = {name: array for name, array in sample.items() if name in ("codebooks", "book_scales")}
        codes = ops.put(sample["codes"].reshape(len(sample["codes"]), -1))
        supers = ops.put(sample["super_scales"]) if "super_scales" in sample else None
        made = self.make_operands(ops, codes, ops.put(sample["scales"]), zeros, scale2, books, supers)
        for name, found in made.items():
            wanted = sample[f"operand {name}"]
            got = np.asarray(found if isinstance(found, float) else ops.host(found))
            if got.tobytes() != wanted.tobytes():
                raise LowlpValueError(
                    f"{self.kind}: operand {name!r} differs from what the compiler makes; prepare the kernels again "
                    "with this version"
                )

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "operands": [operand.to_json() for operand in self.operands]}

    @staticmethod
    def from_json(data: dict[str, Any]) -> SavedWeights:
        """The inverse of `to_json`. Raises `KeyError`, `TypeError` for other data."""
        placement = dict(data["placement"])
        placement["bit_moves"] = tuple(tuple(move) for move in placement["bit_moves"])
        placement["shapes"] = {name: tuple(shape) for name, shape in placement["shapes"].items()}
        return SavedWeights(
            **{
                **data,
                "values": tuple(data["values"]),
                "codes": tuple(data["codes"]),
                "placement": SavedPlacement(**placement),
                "operands": tuple(Operand(**entry) for entry in data["operands"]),
                "lut": tuple(data["lut"]),
            }
        )


def _as_uint16(tensor: Any) -> Any:
    import torch

    return tensor.to(torch.uint16)


def _shape_of(stored: AnyArray, operand: Operand) -> tuple[int, ...]:
    if not operand.transform.endswith("copies"):
        return stored.shape
    *outer, entries, vector = stored.shape
    return (*outer, 2 * entries, vector)


def _contiguous(array: Any) -> Any:
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array.contiguous()
