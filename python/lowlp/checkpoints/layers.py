"""What a format finds in a checkpoint: the weights of its layers, not yet read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.late_packing import meaning_of_arguments, packed_late
from lowlp.weights.meaning import Meaning
from lowlp.weights.part_packing import packed_part
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpError


@dataclass(frozen=True)
class Transform:
    """What a layer does to x before the product, or to y after it, besides the weights.

    side   'input' or 'output'
    kind   'scale': a factor for each element, `values`; 'hadamard': an orthonormal Hadamard matrix of `block` elements,
           by Sylvester's construction over a fixed one where that is no power of two
    Those of a side happen in their order.
    """

    side: Literal["input", "output"]
    kind: Literal["scale", "hadamard"]
    values: AnyArray | None = None
    block: int = 0


@dataclass(frozen=True)
class InputQuantization:
    """How x of a layer is rounded, where the checkpoint says so; products with x as it is are more exact.

    dtype    'int8', 'int4', 'f8e4m3', ...
    per      what shares a scale: 'tensor', 'token', or so many elements of a row
    dynamic  whether scales are found at run time; else `scale` is the factor that numbers of x are divided by
    """

    dtype: str
    per: str | int = "token"
    dynamic: bool = True
    scale: float | None = None


@dataclass(frozen=True)
class Parts:
    """What weights are made of: their shape, the arguments of `QuantizedTensor` but codes, and what reads codes of some
    rows, as `lowlp.weights.late_packing.packed_late` takes it."""

    shape: tuple[int, ...]
    read: Callable[[slice], AnyArray]
    arguments: Mapping[str, Any]

    @property
    def meaning(self) -> Meaning:
        """What the codes mean; the codes are not read."""
        return meaning_of_arguments(self.shape, self.arguments)

    def pack(self, activation: object = None) -> QuantizedTensor:
        """The weights."""
        return packed_late(self.shape, self.read, activation, **self.arguments)

    def pack_part(self, rows: slice, columns: slice, activation: object = None) -> QuantizedTensor:
        """Some rows and columns of weights [N, K]; no others are read."""
        n, k = self.shape
        return packed_part((n, k), self.read, rows, columns, activation, **self.arguments)


class Pieces(Protocol):
    """What a layer's weights are made of: `Parts`, or words that are packed already."""

    @property
    def meaning(self) -> Meaning:
        """What the codes mean."""

    def pack(self, activation: object = None) -> QuantizedTensor:
        """The weights."""

    def pack_part(self, rows: slice, columns: slice, activation: object = None) -> QuantizedTensor:
        """Some rows and columns of weights [N, K]."""


@dataclass(frozen=True)
class Layer:
    """Weights in a checkpoint.

    name        of the weights, as the model without quantisation has it: 'model.layers.0.mlp.down_proj.weight'
    shape       (N, K) or (E, N, K)
    format      the format in words: 'GPTQ v1, 4 bits'
    tensors     the names in the file of what they are made of
    find_parts  reads what groups have, and checks it; of codes nothing
    transforms  what else the layer does to x and y
    inputs      how the checkpoint wants x to be rounded; None: not at all
    """

    name: str
    shape: tuple[int, ...]
    format: str
    tensors: tuple[str, ...]
    find_parts: Callable[[], Pieces] = field(repr=False)
    transforms: tuple[Transform, ...] = ()
    inputs: InputQuantization | None = None

    def __post_init__(self) -> None:
        if min(self.shape, default=0) < 1:
            raise CheckpointError(f"{self.name} ({self.format}): is empty, of shape {list(self.shape)}")

    def parts(self) -> Pieces:
        """What the weights are made of. Raises `CheckpointError`, which names the layer."""
        try:
            return self.find_parts()
        except CheckpointError:
            raise
        except LowlpError as error:
            raise CheckpointError(f"{self.name} ({self.format}): {error}") from None

    def meaning(self) -> Meaning:
        """What the codes mean. Raises `CheckpointError`, which names the layer."""
        parts = self.parts()
        try:
            return parts.meaning
        except LowlpError as error:
            raise CheckpointError(f"{self.name} ({self.format}): {error}") from None

    def load(self, activation: object = None) -> QuantizedTensor:
        """The weights, packed; without the transforms. Raises `CheckpointError`, which names the layer."""
        parts = self.parts()
        try:
            return parts.pack(activation)
        except LowlpError as error:
            raise CheckpointError(f"{self.name} ({self.format}): {error}") from None

    def load_part(self, rows: slice, columns: slice, activation: object = None) -> QuantizedTensor:
        """Some rows and columns of the weights [N, K], packed: what one of several processes has of them. Rows end
        anywhere, columns where groups do. Raises `CheckpointError`, which names the layer, for other columns, for some
        columns of weights with act-order, and for weights of experts."""
        if len(self.shape) != 2:
            raise CheckpointError(f"{self.name} ({self.format}): parts are of weights [N, K], not {list(self.shape)}")
        parts = self.parts()
        try:
            return parts.pack_part(rows, columns, activation)
        except LowlpError as error:
            raise CheckpointError(f"{self.name} ({self.format}): {error}") from None
