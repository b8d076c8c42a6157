"""BitNet b1.58: ternary weights, of which a byte has one from each quarter of the rows.

    weight        uint8 [N / 4, K]: row r + i N / 4 is in the bits from 2 i on of row r; its number is one less
    weight_scale  one number, which divides (linear class 'bitlinear')

Source: transformers (integrations/bitnet.py, quantizers/quantizer_bitnet.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from lowlp.checkpoints.layers import InputQuantization, Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'bitnet'."""
    kind = settings.text("linear_class", default="bitlinear")
    if kind != "bitlinear":
        raise CheckpointError(
            f"{settings.where}: linear_class {kind!r:.20} has weights that are rounded at run time; allowed: bitlinear"
        )
    for name in files.ending(".weight_scale"):
        weight, scale = f"{name}.weight", f"{name}.weight_scale"
        rows, k = files.array(weight, (None, None), ("uint8",)).shape
        find = partial(_parts, files, weight, scale)
        yield Layer(weight, (4 * rows, k), "BitNet b1.58", (weight, scale), find, (), InputQuantization("int8"))


def _parts(files: TensorFiles, weight: str, scale: str) -> Parts:
    packed = files.array(weight)
    quarter, k = packed.shape
    divisor = np.float32(files.number(scale))
    if not np.isfinite(divisor) or divisor == 0:
        raise CheckpointError(f"{scale}: divides, and must be finite and not 0, got {divisor}")

    def read(rows: slice) -> AnyArray:
        part, row = np.divmod(np.arange(rows.start, rows.stop), quarter)
        return (packed[row] >> (2 * part).astype(np.uint8)[:, None]) & np.uint8(3)

    with np.errstate(over="ignore"):  # scales that are not finite are refused
        factor = np.float32(1) / divisor
    arguments = {
        "dtype": "uint2",
        "scales": np.full((1, 1), factor),
        "zeros": np.ones((1, 1), np.uint8),
        "group_size": "tensor",
    }
    return Parts((4 * quarter, k), read, arguments)
