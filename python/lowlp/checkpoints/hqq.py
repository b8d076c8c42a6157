"""HQQ: codes of the weights as a matrix of groups, whose rows are packed by halves, quarters and so on.

    W_q     uint8, or int32 for 3 bits: of the matrix [N K / g, g] (axis 1) part p of its rows, 1 / (8 / b) of them, is
            in the bits from b (8 / b - 1 - p) on; of 3 bits ten parts are in the bits from 27 down
    scale   float, [N K / g, 1]
    zero    float, often no integer, of the same shape
    nbits, group_size, shape, axis, packing, ...

    W = (q - zero) * scale

With axis 0 groups run down N, so that each weight of a row has a scale of its own: refused.
Source: dropbox/hqq (core/bitpack.py, core/quantize.py, core/utils.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

_PACKINGS: Final = {"8bit_u8": (8, 1), "4bit_u8": (4, 2), "3bit_32": (3, 10), "2bit_u8": (2, 4), "1bit_u8": (1, 8)}
"""Bits that a code takes, and codes of a byte or word."""


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'hqq'."""
    del settings
    for name in files.ending(".W_q"):
        n, k = (int(extent) for extent in files.array(f"{name}.shape", (2,)))
        shape = (n, k)
        if min(shape) < 1:
            raise CheckpointError(f"{name}.shape: expected positive extents, got {list(shape)}")
        bits = _number(files, name, "nbits")
        tensors = tuple(
            tensor for tensor in files.names if tensor.startswith(f"{name}.") and not tensor.endswith(".bias")
        )
        yield Layer(f"{name}.weight", shape, f"HQQ, {bits:g} bits", tensors, partial(_parts, files, name, shape))


def _number(files: TensorFiles, name: str, part: str, default: float | None = None) -> float:
    if default is not None and f"{name}.{part}" not in files:
        return default
    return files.number(f"{name}.{part}", ())


def _text(files: TensorFiles, name: str, part: str) -> str:
    return files.array(f"{name}.{part}", (None,)).astype(np.uint8).tobytes().decode("utf-8", "replace")


def _parts(files: TensorFiles, name: str, shape: tuple[int, int]) -> Parts:
    n, k = shape
    if _number(files, name, "axis", 1) != 1:
        raise CheckpointError(
            f"{name}: HQQ with axis 0 has groups that run down N, so each weight of a row has a scale of its own, "
            "which is not read; quantise with axis=1"
        )
    for part in ("quant_scale", "quant_zero"):
        if _number(files, name, part, 0):
            raise CheckpointError(f"{name}.{part}: scales or zero points that are quantised themselves are not read")
    packing = _text(files, name, "packing")
    if packing not in _PACKINGS:
        raise CheckpointError(f"{name}.packing: must be one of {', '.join(_PACKINGS)}, got {packing!r:.20}")
    size = int(_number(files, name, "group_size", 0)) or k
    if size < 1 or k % size:
        raise CheckpointError(f"{name}.group_size: must divide K = {k}, got {size}")
    groups = k // size
    words = _words(files, name, packing, n * groups, size)
    scales, zeros = (files.array(f"{name}.{part}", kinds=FLOATS) for part in ("scale", "zero"))
    for part, array in (("scale", scales), ("zero", zeros)):
        if array.size != n * groups:
            raise CheckpointError(
                f"{name}.{part}: expected {n * groups} numbers for groups of {size}, got {array.size}"
            )
    bits = _PACKINGS[packing][0]
    if packing == "8bit_u8" and _number(files, name, "nbits") in (5, 6, 7):
        bits = int(_number(files, name, "nbits"))
    arguments: dict[str, Any] = {
        "dtype": f"uint{bits}",
        "scales": np.array(scales).reshape(n, groups),
        "zeros": np.array(zeros).reshape(n, groups),
        "group_size": size,
    }

    def read(rows: slice) -> AnyArray:
        codes = _codes(words, packing, groups, rows)
        if codes.max() >= 1 << bits:
            raise CheckpointError(f"{name}.W_q: codes of {bits} bits must be below {1 << bits}, got {codes.max()}")
        return codes

    return Parts(shape, read, arguments)


def _words(files: TensorFiles, name: str, packing: str, rows: int, size: int) -> AnyArray:
    bits, per = _PACKINGS[packing]
    words = files.array(f"{name}.W_q")
    if _number(files, name, "view_as_float", 0):
        words = words.view(np.int32 if bits == 3 else np.uint8)
    if words.dtype not in (np.uint8, np.int8, np.int32):
        raise CheckpointError(f"{name}.W_q: expected elements of uint8 or int32, got {words.dtype.name}")
    stored = -(-rows // per)
    if words.size != stored * size:
        raise CheckpointError(f"{name}.W_q: expected {stored * size} words for {packing}, got {words.size}")
    return words.reshape(stored, size)


def _codes(words: AnyArray, packing: str, groups: int, rows: slice) -> AnyArray:
    """The codes of some rows of the weights, uint8 [rows, K]; a row has `groups` rows of the matrix that is packed."""
    bits, per = _PACKINGS[packing]
    places = np.arange(rows.start * groups, rows.stop * groups)
    part, row = np.divmod(places, words.shape[0])
    shifts = (bits * (per - 1 - part)).astype(words.dtype)
    codes: AnyArray = (words[row] >> shifts[:, None]) & ((1 << bits) - 1)
    return codes.astype(np.uint8).reshape(rows.stop - rows.start, -1)
