"""Quantised weights as a flat dict of arrays and a header of JSON text, version 1: what files hold.

    packed    uint32, the words (docs/packed-format.md)
    scales    of the shape of `QuantizedTensor.scales`; so zeros and offsets
    scale2    float32 [1], or for each row [N]
    lut       of the shape of `QuantizedTensor.lut`
    permutation  int32 [K]; in the header only of tensors that have one
    super_scales, super_offsets  of the shape of those of `QuantizedTensor`, with their type and super-group in the
              header's field 'super', which others do not have; scales and offsets are then integers, of less than 8
              bits as bytes (`lowlp.numeric.group_codes`)

    codebooks, book_scales  of the shape of those of `QuantizedTensor`, in the header's field 'vectors' what the codes
              are, `vec8:2x8:f16` for example, which others do not have; computed ones have no array of books

Those that a tensor does not have are left out. Types that numpy and safetensors lack are stored as their bits: bf16 as
uint16, e8m0 and e4m3 as uint8; the header names the types.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np

from lowlp.numeric.codec import OFFSET_TYPES, ZERO_TYPES, Codec
from lowlp.numeric.group_codes import GROUP_CODE_TYPES, PACKED_CODE_TYPES, bytes_of_groups, unpacked_codes
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.numeric.lookup_tables import TABLE_TYPES
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.numeric.vectors import Vectors
from lowlp.weights.codebooks import ENTRY_DTYPES
from lowlp.weights.families import FAMILIES
from lowlp.weights.meaning import Meaning, shape_of_words
from lowlp.weights.packing import PACKED_FORMAT_VERSION
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.stored_header import PERMUTATION_TYPE, check_fields
from lowlp_runtime.stored_weights import KIND, STORED_TYPES, VERSION, types_of_books

_TYPES: Final[dict[str, np.dtype[Any]]] = {
    **{name: np.dtype(name) for name in ZERO_TYPES if "int" in name},
    **SCALE_DTYPES,
    **{name: np.dtype(STORED_TYPES[name]) for name in PACKED_CODE_TYPES},
    **ENTRY_DTYPES,
}
_FIELDS: Final = ("shape", "family", "dtype", "group", "scales", "zeros", "offsets", "scale2", "lut")
_ONE_LEVEL: Final[dict[str, Collection[str]]] = {
    "family": FAMILIES,
    "scales": SCALE_DTYPES,
    "zeros": ZERO_TYPES,
    "offsets": OFFSET_TYPES,
    "lut": TABLE_TYPES,
    "super": FLOAT_DTYPES,
}
_TWO_LEVELS: Final[dict[str, Collection[str]]] = {
    **_ONE_LEVEL,
    "scales": GROUP_CODE_TYPES,
    "offsets": (*OFFSET_TYPES, *GROUP_CODE_TYPES),
}


def stored_arrays(
    words: AnyArray, shape: tuple[int, ...], family: str, meaning: Meaning
) -> tuple[dict[str, AnyArray], str]:
    """The arrays, contiguous and without copies where possible, and the header."""
    codec = meaning.codec
    types = {
        "scales": codec.scale,
        "zeros": codec.zeros,
        "offsets": codec.offsets,
        "super_scales": codec.super_scale,
        "super_offsets": None if meaning.super_offsets is None else codec.super_scale,
        "codebooks": None if codec.vectors is None else codec.vectors.entries,
    }
    arrays = {"packed": np.ascontiguousarray(words)}
    for name, array in meaning.arrays():
        stored: np.dtype[Any] = np.dtype(STORED_TYPES.get(types.get(name) or "", array.dtype))
        stored_array = np.ascontiguousarray(array).view(stored)
        if len(shape) == 3 and meaning.is_by_row(name, array):
            stored_array = stored_array.reshape(*shape[:-1], *([] if name == "scale2" else [-1]))
        elif len(shape) == 3 and name in ("codebooks", "book_scales") and meaning.book_rows:
            stored_array = stored_array.reshape(shape[0], -1, *stored_array.shape[1:])
        arrays[name] = stored_array
    return arrays, header_of(codec, shape, family, meaning.dtype.name, meaning.permutation is not None)


def header_of(codec: Codec, shape: tuple[int, ...], family: str, dtype: str, has_permutation: bool) -> str:
    """The header of weights of this shape; `dtype`: the name of the type of their codes."""
    header: dict[str, object] = {
        "kind": KIND,
        "version": VERSION,
        "packed_format": PACKED_FORMAT_VERSION,
        "shape": list(shape),
        "family": family,
        "dtype": dtype,
        "group": codec.group,
        "scales": codec.scale,
        "zeros": codec.zeros,
        "offsets": codec.offsets,
        "scale2": codec.scale2,
        "lut": None if codec.table is None else codec.table.element,
    }
    if has_permutation:
        header["permutation"] = PERMUTATION_TYPE
    if codec.vectors is not None:
        header["vectors"] = str(codec.vectors)
    if codec.super_scale is not None:
        header["super"] = {"type": codec.super_scale, "group": codec.super_group}
    return json.dumps(header)


def arguments_of(arrays: Mapping[str, object], header: str) -> dict[str, Any]:
    """What `QuantizedTensor.from_packed` takes, from what `stored_arrays` gave. Raises `LowlpTypeError` and
    `LowlpValueError`, which name `header` or the array."""
    fields = header_fields(header)
    if not isinstance(arrays, Mapping):
        raise LowlpTypeError(f"arrays: expected a dict of arrays, got {type(arrays).__name__}")
    wanted, supers, vectors = _types_of(fields), fields.get("super"), stored_vectors(fields)
    if set(wanted) != set(arrays):
        raise LowlpValueError(
            f"arrays: expected {', '.join(sorted(wanted))}, got {', '.join(sorted(map(str, arrays)))}"
        )
    found = {name: _read(arrays[name], name, kind) for name, kind in wanted.items()}
    group = fields["group"]
    if vectors is not None:
        return {
            "codebooks": str(vectors) if vectors.lattices else None,
            **found,
            "book_per": vectors.book_per,
            "shape": shape_of_words(fields["shape"]),
            "group_size": -1 if group == "channel" else group,
            "activation": fields["family"],
            "is_spread": bool(vectors.spread),
        }
    if supers:
        found |= _two_levels(found, fields)
    return {
        **found,
        "shape": shape_of_words(fields["shape"]),
        "dtype": fields["dtype"],
        "group_size": None if group == "channel" else group,
        "activation": fields["family"],
    }


def stored_types(header: str) -> dict[str, np.dtype[Any]]:
    """The arrays that go with a header, 'packed' first, and what numpy stores their elements as. Raises as
    `arguments_of`."""
    return {name: np.dtype(STORED_TYPES[kind]) for name, kind in _types_of(header_fields(header)).items()}


def _types_of(fields: Mapping[str, Any]) -> dict[str, str]:
    """The arrays that the header names, and the types of their elements."""
    types = {"packed": "uint32", **{name: fields[name] for name in ("scales", "zeros", "offsets", "lut")}}
    types["scale2"] = "f32" if fields["scale2"] else None
    types["permutation"] = fields.get("permutation")
    supers = fields.get("super")
    if supers:
        types["super_scales"] = supers["type"]
        types["super_offsets"] = supers["type"] if fields["offsets"] in GROUP_CODE_TYPES else None
    vectors = stored_vectors(fields)
    if vectors is not None:
        types |= types_of_books(str(vectors))
    return {name: kind for name, kind in types.items() if kind is not None}


def header_fields(header: str) -> dict[str, Any]:
    """The header's fields, all there and well formed, of a version that is known."""
    if not isinstance(header, str):
        raise LowlpTypeError(f"header: expected a str of JSON, got {type(header).__name__}")
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise LowlpValueError(f"header: no JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("kind") != KIND:
        raise LowlpValueError(f"header: expected an object whose kind is {KIND!r}, got {header[:60]!r}")
    for name, known in (("version", VERSION), ("packed_format", PACKED_FORMAT_VERSION)):
        if fields.get(name) != known:
            raise LowlpValueError(f"header: {name} {fields.get(name)!r} is not known; this lowlp reads {known}")
    missing = [name for name in _FIELDS if name not in fields]
    if missing:
        raise LowlpValueError(f"header: lacks {', '.join(missing)}")
    check_fields(fields, "header", _TWO_LEVELS if fields.get("super") is not None else _ONE_LEVEL)
    return fields


def stored_vectors(fields: Mapping[str, Any]) -> Vectors | None:
    """What vectors the header names; None where its codes are of one weight."""
    text = fields.get("vectors")
    if text is None:
        return None
    try:
        vectors = Codec.parse(text).vectors
    except LowlpValueError as error:
        raise LowlpValueError(f"header: vectors: {error}") from None
    if vectors is None or str(vectors) != text:
        raise LowlpValueError(f"header: vectors must be such as 'vec8:2x8:f16', got {text!r:.40}")
    return vectors


def _two_levels(found: Mapping[str, AnyArray], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of integer scales and offsets, and of super-scales."""
    shape, group, super_group = shape_of_words(fields["shape"]), fields["group"], fields["super"]["group"]
    groups = shape[-1] // group if isinstance(group, int) else 1
    made: dict[str, Any] = {"super_group_size": None if super_group == "channel" else super_group}
    for name in ("scales", "offsets"):
        kind = fields[name]
        if kind not in GROUP_CODE_TYPES:
            continue
        stored, wanted = found[name], (*shape[:-1], bytes_of_groups(kind, groups))
        if stored.shape != wanted:
            raise LowlpValueError(f"{name}: expected shape {list(wanted)}, got {list(stored.shape)}")
        if kind in PACKED_CODE_TYPES:
            made["scale_dtype"] = kind
            numbers = unpacked_codes(stored.reshape(-1, stored.shape[-1]), kind, groups)
            made[name] = numbers.reshape(*shape[:-1], groups)
    return made


def _read(value: object, name: str, kind: str) -> AnyArray:
    """An array of the file in the type that the header names."""
    array = as_host_array(value, name)
    meant = np.dtype(STORED_TYPES[kind]) if name in ("packed", "permutation") else _TYPES[kind]
    stored = np.dtype(STORED_TYPES[kind])
    if array.dtype != stored:
        raise LowlpTypeError(f"{name}: expected {stored} for {kind}, got {array.dtype}")
    return array.view(meant)
