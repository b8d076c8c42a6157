"""Quantised weights as `QuantizedTensor.to_arrays` stores them: a flat dict of arrays and a header of JSON text.

    packed    uint32, the words (docs/packed-format.md)
    scales    [N, K / group], or [1, 1] for the whole tensor; so zeros and offsets
    scale2    float32 [1], or for each row [N]
    lut       [2**b], [N, 2**b] or [N, K / group, 2**b]
    permutation  int32 [K], the columns in the order in which they are packed; in the header only where there is one
    super_scales, super_offsets  [N, ceil(K / super-group)]; scales are then integers, and of 'uint4' and 'int6' bytes
              [N, ceil(K / group * bits / 8)]; so offsets, with super_offsets
    codebooks [R, 2**b, v], or [blocks of N, blocks of K, R, 2**b, v], for codes of vectors, which the header's field
              'vectors' describes; book_scales float32, without the last two of these dimensions

Those that a tensor does not have are left out. Types that numpy and safetensors lack are stored as their bits: bf16 as
uint16, e8m0 and e4m3 as uint8; the header names the types. Here they are read without the compiler, from arrays of
numpy and tensors of PyTorch alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.stored_header import PERMUTATION_TYPE, check_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND: Final = "lowlp.QuantizedTensor"
VERSION: Final = 1
"""Of the header."""

STORED_TYPES: Final = {
    "f16": "float16",
    "bf16": "uint16",
    "f32": "float32",
    "e8m0": "uint8",
    "e4m3": "uint8",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "int32": "int32",
    "uint4": "uint8",
    "int6": "uint8",
    "uint32": "uint32",
    "f8e4m3": "uint8",
}
"""Type of elements -> numpy's type for what is stored."""

_GROUP_CODES: Final = ("uint4", "int6", "uint8", "int8")
_PER_GROUP: Final = ("scales", "zeros", "offsets")
_FIELDS: Final = ("shape", "family", "dtype", "group", *_PER_GROUP, "scale2", "lut")
# Which of them a kernel takes, its operands say.
_ALLOWED: Final = dict.fromkeys((*_PER_GROUP, "lut", "super"), tuple(STORED_TYPES))


def types_of_books(vectors: str) -> dict[str, str]:
    """The types of the arrays of books, by name, that the header's field 'vectors' means."""
    if not vectors.startswith("vec"):
        return {"book_scales": "f32"}
    entries = vectors.split(":")[2]
    return {"codebooks": entries} | ({"book_scales": "f32"} if entries in ("int8", "f8e4m3") else {})


def code_of_vectors(vectors: str) -> str:
    """What the packed words are, of the header's field 'vectors': 'vec8-2x8' of 'vec8:2x8:f16:256x256'."""
    return "-".join(vectors.split(":")[:2])


@dataclass(frozen=True)
class StoredWeights:
    """Weights [N, K] and what they mean, not yet read from their arrays.

    shape          (N, K)
    code           type of the codes, 'int6' for example; 'lut4' for indices of tables, 'vec8-2x8' for vectors
    group_size     weights of a row that share a scale
    super_group_size  and a super-scale; None for scales of one level
    family         the compute type that the words are placed for
    packed_format  the version in which they are packed
    types          of the elements of each array, by its name
    arrays         numpy's, or tensors of PyTorch, by name
    header         their text
    """

    shape: tuple[int, int]
    code: str
    group_size: int
    family: str
    packed_format: int
    types: Mapping[str, str]
    arrays: Mapping[str, Any] = field(repr=False)
    header: str = field(repr=False)
    super_group_size: int | None = None

    @staticmethod
    def of(value: Any) -> StoredWeights:
        """What `value` stores: an object with `to_arrays()`, as `QuantizedTensor` has it, or the pair (arrays, header)
        that it gives. Raises `LowlpTypeError` and `LowlpValueError`, which name `qw`."""
        pair = value.to_arrays() if callable(getattr(value, "to_arrays", None)) else value
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise LowlpTypeError(
                f"qw: expected quantised weights, or the pair (arrays, header) of their to_arrays(), got "
                f"{type(value).__name__}"
            )
        arrays, header = pair
        if not isinstance(arrays, Mapping):
            raise LowlpTypeError(f"qw: expected a dict of arrays and a header, got {type(arrays).__name__} first")
        fields = _fields_of(header)
        types = {"packed": "uint32"}
        types.update({name: fields[name] for name in (*_PER_GROUP, "lut") if fields[name] is not None})
        types.update({"scale2": "f32"} if fields["scale2"] else {})
        types.update({"permutation": PERMUTATION_TYPE} if "permutation" in fields else {})
        if fields.get("super"):
            types["super_scales"] = fields["super"]["type"]
            if fields["offsets"] in _GROUP_CODES:
                types["super_offsets"] = fields["super"]["type"]
        if fields.get("vectors"):
            types |= types_of_books(fields["vectors"])
        if set(types) != set(arrays):
            listed = ", ".join(sorted(map(str, arrays)))
            raise LowlpValueError(f"qw: its header names the arrays {', '.join(sorted(types))}, and it has {listed}")
        n, k = fields["shape"]
        code = fields["dtype"] if fields["lut"] is None else f"lut{re.sub(r'[^0-9]', '', fields['dtype'])}"
        if fields.get("vectors"):
            code = code_of_vectors(fields["vectors"])
        group = fields["group"]
        size = group if isinstance(group, int) else k
        super_size = None
        if fields.get("super"):
            super_group = fields["super"]["group"]
            # Kernels know a row that is shorter than a super-group as one.
            super_size = min(super_group, k) if isinstance(super_group, int) else k
        family, version = fields["family"], fields["packed_format"]
        return StoredWeights((n, k), code, size, family, version, types, arrays, header, super_size)

    def read(self, name: str) -> NDArray[Any]:
        """An array in host memory, as numpy stores its type (`STORED_TYPES`). Raises `LowlpTypeError` for another."""
        import numpy as np

        kind = self.types[name]
        wanted = np.dtype(STORED_TYPES[kind])
        value = self.arrays[name]
        if is_torch_tensor(value):
            stored = str(value.dtype).removeprefix("torch.")
            array = _bytes_of_tensor(value)
        else:
            array = np.ascontiguousarray(value)
            stored = array.dtype.name
        if not _holds(stored, kind, wanted.name):
            raise LowlpTypeError(f"qw: {name} must be stored as {wanted} for {kind}, got {stored}")
        return array.view(wanted)


def _holds(stored: str, kind: str, wanted: str) -> bool:
    """Whether an array of numpy's or PyTorch's type `stored` holds elements of a kind: as what is stored, or as the
    type itself where its library has it."""
    floats = {"bf16": "bfloat16", "e8m0": "float8_e8m0fnu", "e4m3": "float8_e4m3fn", "f8e4m3": "float8_e4m3fn"}
    own = floats.get(kind)
    # PyTorch has few unsigned types.
    signed = {"uint32": "int32", "uint16": "int16"}.get(wanted)
    return stored in (wanted, own, signed)


def _bytes_of_tensor(tensor: Any) -> NDArray[Any]:
    """The bytes of a tensor, on the CPU or a GPU, along its last dimension."""
    import sys

    torch: Any = sys.modules["torch"]
    array: NDArray[Any] = tensor.detach().cpu().contiguous().view(torch.uint8).numpy()
    return array


def _fields_of(header: object) -> dict[str, Any]:
    """The header's fields, all there and well formed, of a version that is known."""
    if not isinstance(header, str):
        raise LowlpTypeError(f"qw: expected a header of JSON text beside the arrays, got {type(header).__name__}")
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise LowlpValueError(f"qw: its header is no JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("kind") != KIND:
        raise LowlpValueError(f"qw: its header must be an object whose kind is {KIND!r}, got {header[:60]!r}")
    if fields.get("version") != VERSION:
        raise LowlpValueError(f"qw: its header has version {fields.get('version')!r:.40}; expected {VERSION}")
    missing = [name for name in (*_FIELDS, "packed_format") if name not in fields]
    if missing:
        raise LowlpValueError(f"qw: its header lacks {', '.join(missing)}")
    check_fields(fields, "qw: its header", _ALLOWED)
    shape = fields["shape"]
    if len(shape) == 3:
        raise LowlpValueError(f"qw: expected weights [N, K], got {shape!r:.40} of experts; take one with qw[e]")
    return fields
