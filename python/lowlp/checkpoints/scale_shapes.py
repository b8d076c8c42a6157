"""Scales of files, for a tensor, a row, groups of a row or blocks of rows and columns, as weights take them."""

from __future__ import annotations

from typing import Any, Literal

import ml_dtypes
import numpy as np

from lowlp.checkpoints.groups import consecutive_groups
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

POWERS = np.dtype(ml_dtypes.float8_e8m0fnu)


def as_powers(array: AnyArray) -> AnyArray:
    """Exponents with a bias of 127, bytes, as the type that means powers of two."""
    return array.view(POWERS) if array.dtype == np.uint8 else array


def as_stored(array: AnyArray) -> AnyArray:
    """A copy in host memory, so that no file needs to stay open for it; of float64 its float32."""
    return array.astype(np.float32) if array.dtype == np.float64 else np.array(array)


def spread_scales(
    scales: AnyArray, shape: tuple[int, ...], name: str, block: tuple[int, int] | None = None
) -> dict[str, Any]:
    """The arguments `scales` and `group_size` of weights (N, K) or (E, N, K).

    scales  one number; [N] or [N, 1]; [N, groups], of groups of equal size; or with `block` [ceil(N / rows),
            ceil(K / columns)], of which the last may be smaller; of experts with E in front
    name    of the tensor, for errors

    Raises `CheckpointError` for other shapes.
    """
    array = as_stored(scales)
    *outer, n, k = shape
    if block is None and array.size == 1:
        return {"scales": array.reshape(1, 1), "group_size": "tensor"}
    if block is None and array.shape == (*outer, n):
        array = array[..., None]
    group: int | Literal["channel"] = "channel"
    if block is not None:
        rows, columns = block
        wanted = (*outer, -(-n // rows), -(-k // columns))
        if array.shape != wanted:
            raise CheckpointError(
                f"{name}: expected shape {list(wanted)} for blocks of {rows} x {columns} of [{n}, {k}], got "
                f"{list(array.shape)}"
            )
        array = np.repeat(array, rows, axis=-2)[..., :n, :]
        grouping = consecutive_groups(k, min(columns, k))
        return {"scales": grouping.spread(array), "group_size": grouping.size}
    if array.ndim != len(shape) or array.shape[:-1] != tuple(shape[:-1]) or k % max(array.shape[-1], 1):
        raise CheckpointError(
            f"{name}: expected one scale, or shape {[*shape[:-1], 1]} or {[*shape[:-1], 'groups']} with groups of "
            f"equal size of K = {k}, got {list(array.shape)}"
        )
    if array.shape[-1] > 1:
        group = k // array.shape[-1]
    return {"scales": array, "group_size": None if group == "channel" else group}
