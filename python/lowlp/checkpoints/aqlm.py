"""AQLM: codes of vectors along K, whose entries of several books add up.

    codes      int8 or int16 [N / og, K / ig, books], two's complement of numbers below 2^b
    codebooks  float [books, 2^b, og, ig]
    scales     float [N / og, 1, 1, 1]

    W[n, ig j ...] = scales[n] * sum of codebooks[c, codes[n, j, c]]

Source: Vahe1994/AQLM (inference_lib/src/aqlm/inference.py, utils.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'aqlm'."""
    del settings
    for name in files.ending(".codebooks"):
        codes, books = files.shape(f"{name}.codes"), files.shape(f"{name}.codebooks")
        if len(codes) != 3 or len(books) != 4 or codes[2] != books[0]:
            raise CheckpointError(
                f"{name}: expected codes [N, K / v, books] and codebooks [books, entries, 1, v], got {list(codes)} and "
                f"{list(books)}"
            )
        if books[2] != 1:
            raise CheckpointError(f"{name}.codebooks: vectors of {books[2]} rows are not read; allowed: 1")
        shape = (codes[0], codes[1] * books[3])
        tensors = tuple(f"{name}.{part}" for part in ("codes", "codebooks", "scales"))
        bits = books[1].bit_length() - 1
        yield Layer(f"{name}.weight", shape, f"AQLM {books[0]}x{bits}", tensors, partial(_parts, files, name, shape))


def _parts(files: TensorFiles, name: str, shape: tuple[int, int]) -> Parts:
    books = files.array(f"{name}.codebooks", kinds=("float16", "bfloat16"))
    codes = files.array(f"{name}.codes", kinds=("int8", "int16", "uint8", "uint16"))
    scales = files.array(f"{name}.scales", kinds=FLOATS)
    if scales.size != shape[0]:
        raise CheckpointError(f"{name}.scales: expected {shape[0]} numbers, one a row, got {scales.size}")
    entries = books.shape[1]
    wanted = np.uint8 if entries <= 256 else np.uint16

    def read(rows: slice) -> AnyArray:
        stored = codes[rows]
        numbers: AnyArray = stored.view(f"u{stored.dtype.itemsize}") & (entries - 1)
        return numbers.astype(wanted)

    arguments = {"codebooks": np.array(books[:, :, 0]), "scales": np.array(scales).reshape(-1, 1), "group_size": -1}
    return Parts(shape, read, arguments)
