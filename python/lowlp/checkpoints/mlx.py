"""MLX, and "metal" of transformers: codes in words along K, scales, and biases that are added.

    weight            uint32 [N, K b / 32], a stream
    scales            float [N, K / g]
    biases or qbiases  of the same shape

    W = (q * scale) + bias

Sources: transformers (integrations/metal_quantization.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np

from lowlp.checkpoints.bit_streams import stream
from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError

_BITS: Final = (2, 3, 4, 5, 6, 8)


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of MLX ('quantization' in its config) or of method 'metal'."""
    for name in files.ending(".scales"):
        own = settings.with_fields(settings.part(name).fields)
        mode = own.text("mode", default="affine")
        if mode != "affine":
            raise CheckpointError(f"{settings.where}: mode {mode!r:.20} of MLX is not read; allowed: affine")
        bits, size = own.integer("bits", allowed=_BITS, default=4), own.integer("group_size", default=64)
        weight = f"{name}.weight"
        biases = f"{name}.qbiases" if f"{name}.qbiases" in files else f"{name}.biases"
        groups = files.shape(f"{name}.scales")
        if bits is None or size is None or size < 1 or len(groups) != 2:
            raise CheckpointError(f"{name}.scales: expected a matrix of groups, got {list(groups)}, groups of {size}")
        n, k = groups[0], groups[1] * size
        if files.shape(weight) != (n, k * bits // 32):
            raise CheckpointError(
                f"{weight}: expected shape [{n}, {k * bits // 32}] for {bits} bits in groups of {size}, got "
                f"{list(files.shape(weight))}"
            )
        tensors = (weight, f"{name}.scales", biases)
        yield Layer(weight, (n, k), f"MLX, {bits} bits", tensors, partial(_parts, files, tensors, n, k, bits, size))


def _parts(files: TensorFiles, tensors: tuple[str, str, str], n: int, k: int, bits: int, size: int) -> Parts:
    words = files.array(tensors[0], kinds=("uint32", "int32"))
    scales, offsets = (np.array(files.array(name, (n, k // size), FLOATS)) for name in tensors[1:])
    arguments = {"dtype": f"uint{bits}", "scales": scales, "offsets": offsets, "group_size": size}
    return Parts((n, k), lambda rows: stream(words[rows], bits, k), arguments)
