"""AWQ, version gemm: `qweight`, `qzeros` and `scales`, packed along N in an order of their own.

    qweight  int32 [K, N / 8]        nibble i of word j is column 8 j + (0, 2, 4, 6, 1, 3, 5, 7)[i]
    qzeros   int32 [K / g, N / 8]    in the same order, the zero points themselves
    scales   float16 [K / g, N]

    W[n, k] = scales[k // g, n] * (q[k, n] - z[k // g, n])

Sources: casper-hansen/AutoAWQ (modules/linear/gemm.py, utils/packing_utils.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from lowlp.checkpoints.bit_streams import centred, stream
from lowlp.checkpoints.groups import consecutive_groups
from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

# The nibble that holds each of eight columns.
_NIBBLES: Final = [0, 4, 1, 5, 2, 6, 3, 7]


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'awq'."""
    settings.integer("bits", "w_bit", allowed=(4,), default=4)
    version = str(settings.text("version", "format", default="gemm")).lower()
    if version != "gemm":
        raise CheckpointError(
            f"{settings.where}: AWQ of version {version!r:.20} packs in another order, which is not read; allowed: gemm"
        )
    size = settings.integer("group_size", "q_group_size")
    has_zeros = settings.flag("zero_point", default=False)
    for name in files.ending(".qweight"):
        if has_zeros and f"{name}.qzeros" not in files:
            raise CheckpointError(f"{name}.qzeros: is missing, and zero_point is true in {settings.where}")
        yield layer_of(files, name, size)


def layer_of(files: TensorFiles, name: str, group_size: int | None) -> Layer:
    """The layer `name`. Raises `CheckpointError` where its tensors do not fit each other."""
    shape = files.shape(f"{name}.qweight")
    if len(shape) != 2 or len(files.shape(f"{name}.scales")) != 2:
        raise CheckpointError(f"{name}: expected matrices qweight and scales, got qweight of shape {list(shape)}")
    k, n = shape[0], 8 * shape[1]
    tensors = tuple(f"{name}.{part}" for part in ("qweight", "qzeros", "scales") if f"{name}.{part}" in files)
    return Layer(f"{name}.weight", (n, k), "AWQ gemm, 4 bits", tensors, partial(_parts, files, name, n, k, group_size))


def _parts(files: TensorFiles, name: str, n: int, k: int, group_size: int | None) -> Parts:
    groups = files.shape(f"{name}.scales")[0]
    size = group_size if group_size is not None and group_size > 0 else -(-k // max(groups, 1))
    if -(-k // size) != groups:
        raise CheckpointError(
            f"{name}.scales: expected {-(-k // size)} groups of {size} columns for K = {k}, got {groups}"
        )
    scales = files.array(f"{name}.scales", (groups, n), FLOATS)
    words = files.array(f"{name}.qweight", kinds=("int32", "uint32"))
    if f"{name}.qzeros" in files:
        zeros = in_order(files.array(f"{name}.qzeros", (groups, n // 8), ("int32", "uint32")))
    else:
        zeros = np.full((groups, n), 8, np.uint8)
    signed = bool((zeros == 8).all())
    grouping = consecutive_groups(k, size)

    def read(rows: slice) -> AnyArray:
        first = rows.start // 8
        codes = in_order(words[:, first : -(-rows.stop // 8)])[:, rows.start - 8 * first : rows.stop - 8 * first]
        found = np.ascontiguousarray(codes.T)
        return centred(found, 4) if signed else found

    arguments = {
        "dtype": "int4" if signed else "uint4",
        "scales": grouping.spread(np.ascontiguousarray(scales.T)),
        "zeros": None if signed else grouping.spread(np.ascontiguousarray(zeros.T)),
        "group_size": grouping.size,
    }
    return Parts((n, k), read, arguments)


def in_order(words: AnyArray) -> AnyArray:
    """The codes [..., 8 W] of words [..., W], uint8, in the order of their columns."""
    codes = stream(words, 4, 8 * words.shape[-1]).reshape(*words.shape, 8)
    return codes[..., _NIBBLES].reshape(*words.shape[:-1], -1)
