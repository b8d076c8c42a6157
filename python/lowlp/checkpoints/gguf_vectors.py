"""i-quants of GGUF, whose codes stand for vectors of 4 or 8 weights of a grid, with signs.

A code here has the file's index of the grid and its signs, so that the book of all codes is the grid times all signs.
Where both together exceed 16 bits, or a type has no single index, vectors are halves of the file's. The grids are data
of ggml, and are taken from its Python package `gguf`, which reading these types needs.
Sources: ggml-org/ggml (src/ggml-common.h, src/ggml-quants.c), ggml-org/llama.cpp (gguf-py/gguf/quants.py).
"""

from __future__ import annotations

from typing import Final

from lowlp.checkpoints.gguf_blocks import BlockType

TYPES: Final[dict[int, BlockType]] = {}
"""Number of a type in files -> its blocks."""
