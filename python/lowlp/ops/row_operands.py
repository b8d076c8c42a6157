"""What the kernel of dequantised rows takes of weights: its spec, and the arrays of the host."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lowlp.kernels.rows import RowsSpec
from lowlp.numeric.codec import Table
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.weights.codebooks import parts_of_books
from lowlp.weights.packing import stored_form
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.unit_places import runs_of_codes
from lowlp.weights.vector_values import tables_of_stored_codes

_PER_GROUP: Final = ("scales", "zeros", "offsets", "super_scales", "super_offsets")


def rows_spec(qw: QuantizedTensor, wide_ids: bool, out: str) -> RowsSpec:
    """The spec of the kernel for weights [N, K]."""
    meaning, placement = qw.meaning, qw.form.placement
    n, k = qw.shape
    runs, rows, codes = runs_of_codes(placement).shape
    shape = placement.packed_shape(n, k)
    fields: dict[str, Any] = {}
    if meaning.vectors is not None:
        vectors = meaning.vectors
        columns, books = parts_of_books(vectors)
        fields = {
            "table_scope": "blocks",
            "vector": vectors.vector,
            "books": books,
            "codes_of_vector": columns,
            "block_rows": meaning.book_rows or 0,
            "block_columns": meaning.book_columns or 0,
            "blocks_k": -(-k // meaning.book_columns) if meaning.book_columns else 1,
        }
    elif isinstance(meaning.code, Table):
        fields = {"table_scope": meaning.code.scope}
    of_super = meaning.super_group if isinstance(meaning.super_group, int) else k
    kinds: dict[str, Any] = {name: _kind(array) for name, array in _arrays_of_groups(qw).items()}
    return RowsSpec(
        n=n,
        k=k,
        unit_rows=rows,
        unit_codes=codes,
        unit_words=int(np.prod(shape[2:])),
        units_k=shape[1],
        runs=runs,
        flip=stored_form(meaning.code)[1],
        table_size=1 << (placement.bits if meaning.vectors is None else meaning.vectors.stored_bits),
        group_size=meaning.group_size,
        one_scale=meaning.group == "tensor",
        groups_of_super=of_super // meaning.group_size,
        scale2="" if meaning.scale2 is None else "row" if isinstance(meaning.scale2, np.ndarray) else "one",
        permutation=meaning.permutation is not None,
        wide_ids=wide_ids,
        out=out,
        **fields,
        **kinds,
    )


def row_operands(qw: QuantizedTensor) -> dict[str, AnyArray]:
    """The arrays that the kernel takes, all but the packed words, as contiguous arrays of one dimension."""
    meaning = qw.meaning
    arrays = {"places": runs_of_codes(qw.form.placement), **_arrays_of_groups(qw)}
    if meaning.vectors is not None:
        tables = tables_of_stored_codes(meaning, meaning.vectors)
        size = 1 << meaning.vectors.stored_bits
        # Computed books may have fewer vectors than others.
        arrays["table"] = np.concatenate(
            [np.resize(table, (-(-len(table) // size) * size, table.shape[1])) for table in tables]
        )
    else:
        arrays["table"] = np.asarray(meaning.lut if meaning.lut is not None else qw.codec.values(), np.float32)
    if meaning.scale2 is not None:
        arrays["scale2"] = np.atleast_1d(np.asarray(meaning.scale2, np.float32))
    if meaning.permutation is not None:
        arrays["order"] = np.argsort(meaning.permutation).astype(np.int32)
    if _kind(arrays["scales"]) in ("e8m0", "e4m3"):
        every = np.arange(256, dtype=np.uint8).view(arrays["scales"].dtype)
        arrays["scale_values"] = every.astype(np.float32)
        arrays["scales"] = arrays["scales"].view(np.uint8)
    return {name: np.ascontiguousarray(array).reshape(-1) for name, array in arrays.items()}


def _arrays_of_groups(qw: QuantizedTensor) -> dict[str, AnyArray]:
    """Scales, zero points and the like, unpacked where several are in a byte."""
    meaning, groups = qw.meaning, qw.shape[1] // qw.group_size
    found: dict[str, AnyArray] = {}
    for name in _PER_GROUP:
        if getattr(meaning, name) is not None:
            found[name] = getattr(meaning, name) if "super" in name else meaning.numbers(name, groups)
    return found


def _kind(array: AnyArray) -> str:
    return next((name for name, kind in SCALE_DTYPES.items() if kind == array.dtype), array.dtype.name)
