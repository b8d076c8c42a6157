"""How weights of one kind become the operands of a kernel, as data that a machine without the compiler can follow.

`describe` (in `preparing`) writes it down from the compiler's own functions, with a small sample of weights and its
operands; `check_sample` makes the sample's operands again, from the data alone, and compares them bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lowlp.numeric.array_ops import ArrayOps
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.array_packing import pack_with
from lowlp_runtime.errors import LowlpValueError

from .cases import GROUP_SIZE, Shape


@dataclass(frozen=True)
class SavedPlacement:
    """A `Placement` by its data; `shapes` gives the packed shape of each 'NxK' that is needed."""

    name: str
    bits: int
    unit_rows: int
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

    def packed_shape(self, n: int, k: int, group_size: int) -> tuple[int, int, int, int, int]:
        """As `Placement.packed_shape`. Raises `LowlpValueError` for weights that were not prepared."""
        if group_size != GROUP_SIZE or str(Shape(n, k)) not in self.shapes:
            raise LowlpValueError(f"{self.name}: no packed shape was prepared for {n}x{k} in groups of {group_size}")
        return self.shapes[str(Shape(n, k))]


@dataclass(frozen=True)
class Operand:
    """One argument of the kernel between x and y.

    what   'packed', 'scales', 'zeros', or 'constant'
    axes   of scales and zeros: the order in which the kernel has rows (0) and groups (1)
    value  of a constant: a number, or an array of the host
    """

    what: str
    axes: tuple[int, ...] = ()
    value: Any = None


@dataclass(frozen=True)
class SavedWeights:
    """All that makes random weights of one kind, their operands, and their meaning.

    values      float64 by code
    codes       those that are finite numbers, all that may be drawn
    flip        turns a code into a stored one
    padded      weights that a group takes in packed words
    """

    kind: str
    values: tuple[float, ...]
    codes: tuple[int, ...]
    flip: int
    padded: int
    zeros_dtype: str
    placement: SavedPlacement
    operands: tuple[Operand, ...]

    def make_operands(self, ops: ArrayOps, codes: Any, scales: Any, zeros: Any) -> list[Any]:
        """The operands of weights: codes uint8 [N, K], scales f16 and zeros [N, K / group_size], arrays of `ops`."""
        made: list[Any] = []
        for operand in self.operands:
            if operand.what == "packed":
                made.append(pack_with(ops, self.placement, codes, GROUP_SIZE, self.padded, self.flip))
            elif operand.what == "constant":
                is_array = isinstance(operand.value, np.ndarray)
                made.append(ops.put(operand.value) if is_array else operand.value)
            else:
                # The one place where scales and zero points get the order that kernels read.
                part = {"scales": scales, "zeros": zeros}[operand.what]
                made.append(_contiguous(ops.permute(part, operand.axes)))
        return made

    def check_sample(self, ops: ArrayOps, sample: dict[str, AnyArray]) -> None:
        """Raises `LowlpValueError` unless the sample's operands come out as the compiler's own functions made them."""
        zeros = ops.put(sample["zeros"]) if "zeros" in sample else None
        made = self.make_operands(ops, ops.put(sample["codes"]), ops.put(sample["scales"]), zeros)
        for number, (operand, found) in enumerate(zip(self.operands, made, strict=True)):
            wanted = sample[f"operand{number}"]
            got = np.asarray(found if isinstance(found, float) else ops.host(found))
            if got.tobytes() != wanted.tobytes():
                raise LowlpValueError(
                    f"{self.kind}: operand {number} ({operand.what}) differs from what the compiler packs; prepare the "
                    "kernels again with this version"
                )

    def to_json(self) -> dict[str, Any]:
        """As JSON; arrays by dtype and numbers."""
        data = asdict(self)
        data["operands"] = [
            {"what": operand.what, "axes": list(operand.axes), "value": _value_to_json(operand.value)}
            for operand in self.operands
        ]
        return data

    @staticmethod
    def from_json(data: dict[str, Any]) -> SavedWeights:
        """The inverse of `to_json`. Raises `KeyError`, `TypeError` for other data."""
        placement = dict(data["placement"])
        placement["bit_moves"] = tuple(tuple(move) for move in placement["bit_moves"])
        placement["shapes"] = {name: tuple(shape) for name, shape in placement["shapes"].items()}
        operands = [
            Operand(entry["what"], tuple(entry["axes"]), _value_from_json(entry["value"])) for entry in data["operands"]
        ]
        return SavedWeights(
            **{
                **data,
                "values": tuple(data["values"]),
                "codes": tuple(data["codes"]),
                "placement": SavedPlacement(**placement),
                "operands": tuple(operands),
            }
        )


def find_operands(operands: Sequence[Any], packed: AnyArray, scales: AnyArray, zeros: AnyArray | None) -> list[Operand]:
    """What each of a sample's operands is. Raises `LowlpValueError` for one that is none of packed weights, scales,
    zero points and constants.

    A constant is an array smaller than the scales, or a number.
    """
    parts = {"scales": scales, **({} if zeros is None else {"zeros": zeros})}
    return [_find_operand(number, operand, packed, parts) for number, operand in enumerate(operands)]


def _find_operand(number: int, operand: Any, packed: AnyArray, parts: dict[str, AnyArray]) -> Operand:
    if isinstance(operand, float | int):
        return Operand("constant", value=float(operand))
    array = np.asarray(operand)
    if array.dtype == packed.dtype and array.tobytes() == packed.tobytes():
        return Operand("packed")
    for name, part in parts.items():
        for axes in ((0, 1), (1, 0)):
            if array.dtype == part.dtype and np.array_equal(array, part.transpose(axes)):
                return Operand(name, axes)
    if array.size < parts["scales"].size:
        return Operand("constant", value=array)
    raise LowlpValueError(
        f"operand {number} of the kernel, {array.dtype} {list(array.shape)}, is none that the bench can make: packed "
        "weights, scales or zero points in either order, constants"
    )


def _contiguous(array: Any) -> Any:
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array.contiguous()


def _value_to_json(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "hex": value.tobytes().hex(), "shape": list(value.shape)}
    return value


def _value_from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return np.frombuffer(bytes.fromhex(value["hex"]), value["dtype"]).reshape(value["shape"])
    return value
