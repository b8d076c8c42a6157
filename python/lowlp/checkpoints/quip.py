"""QuIP#: codes of points of a lattice, with signs and Hadamard transforms around the product.

    Qidxs   int64 [N, K / 32], read as [N / 16, K / 64, 8, 4]: of the block (n, k), rows 2 r and 2 r + 1 and the 16
            columns from 16 c on. Byte i of the low half is the index of vector i: (row 2 r, first 8 columns),
            (row 2 r + 1, the same), (2 r, last 8), (2 r + 1, the same); bit j of the sign byte of vector i is bit
            4 j + i of the high half
    SU, SV  float [K], [N];  Wscale  one number

    y = SV * H_N(Wscale * W . H_K(SU * x)),  H orthonormal

Only the codebook E8P12 with 2 bits a weight is read. Source: the description of Cornell-RelaxML/quip-sharp
(lib/codebook/latticee8_padded12.py, lib/linear/quantized_linear.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from lowlp.checkpoints.layers import Layer, Parts, Transform
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'quip#'. `load` gives W, and `transforms` what is around it."""
    book = settings.text("codebook", default="E8P12")
    if book != "E8P12":
        raise CheckpointError(f"{settings.where}: codebook must be E8P12, got {book!r:.40}")
    if settings.flag("rescale_WH", default=False) or settings.integer("lora_rank", default=0):
        raise CheckpointError(f"{settings.where}: rescale_WH and lora_rank are not read")
    for name in files.ending(".Qidxs"):
        n, words = files.array(f"{name}.Qidxs", (None, None), ("int64",)).shape
        k = 32 * words
        if n % 16 or k % 64:
            raise CheckpointError(f"{name}.Qidxs: expected N a multiple of 16 and K of 64, got [{n}, {k}]")
        if f"{name}.fuse_scales" in files:
            raise CheckpointError(f"{name}.fuse_scales: layers that are stored as one are not read")
        signs = {"SU": k, "SV": n}
        values = {
            part: files.array(f"{name}.{part}", (extent,), FLOATS).astype(np.float32) for part, extent in signs.items()
        }
        around = (
            Transform("input", "scale", values["SU"]),
            Transform("input", "hadamard", block=k),
            Transform("output", "hadamard", block=n),
            Transform("output", "scale", values["SV"]),
        )
        tensors = tuple(
            f"{name}.{part}"
            for part in ("Qidxs", "SU", "SV", "Wscale", "codebook_id", "scaleWH")
            if f"{name}.{part}" in files
        )
        yield Layer(f"{name}.weight", (n, k), "QuIP#, E8P", tensors, partial(_parts, files, name, n, k), around)


def _parts(files: TensorFiles, name: str, n: int, k: int) -> Parts:
    words = files.array(f"{name}.Qidxs").reshape(n // 16, k // 64, 8, 4)
    scale = files.number(f"{name}.Wscale")

    def read(rows: slice) -> AnyArray:
        first, stop = rows.start // 16, -(-rows.stop // 16)
        codes = codes_of_words(words[first:stop])
        return codes[rows.start - 16 * first : rows.stop - 16 * first]

    return Parts((n, k), read, {"codebooks": "e8p", "scales": scale})


def codes_of_words(words: AnyArray) -> AnyArray:
    """The 16-bit codes, uint16 [16 B, K / 8, 1], of blocks [B, K / 64, 8, 4]: the index in the high byte, signs in the
    low one."""
    blocks, wide = words.shape[:2]
    bits = words.view(np.uint64)
    codes = np.empty((blocks, 8, 2, wide, 4, 2), np.uint16)
    for vector in range(4):
        index = (bits >> np.uint64(8 * vector)) & np.uint64(255)
        signs = np.zeros_like(bits)
        for bit in range(8):
            signs |= ((bits >> np.uint64(32 + 4 * bit + vector)) & np.uint64(1)) << np.uint64(bit)
        found = (index << np.uint64(8) | signs).astype(np.uint16)
        # [blocks, wide, 8, 4] -> [blocks, 8, wide, 4]
        codes[:, :, vector % 2, :, :, vector // 2] = found.transpose(0, 2, 1, 3)
    return codes.reshape(16 * blocks, -1, 1)
