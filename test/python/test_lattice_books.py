"""Vectors of lattices that kernels compute: their tables, and what a vector takes."""

import re

import numpy as np
import pytest

from lowlp.kernels.linear.codebooks.lattice_tables import SHIFTS, lattice_tables
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.numeric.vectors import Vectors, lattice_vectors
from lowlp.ops.linear_kernels import compile_for_gpu


@pytest.mark.parametrize("name", ["e8p", "e81b"])
def test_words_are_all_vectors(name: str) -> None:
    """To the bit, for each code; the second operand that signs are is combined by XOR."""
    tables = lattice_tables(Vectors.lattice("e8p+e81b")).view(np.uint32)[..., 0]
    words = tables[2] if name == "e81b" else (tables[0][None] ^ tables[1][:, None]).reshape(-1)
    # Field f of a word that is rotated by one bit begins at bit 4 f + 1.
    fields = [0, 4, 1, 5, 2, 6, 3, 7]
    rotated = words >> np.uint32(1) | words << np.uint32(31)
    nibbles = np.stack([rotated >> np.uint32(4 * field) & 15 for field in fields], axis=-1)
    assert np.array_equal(nibbles / 2 - SHIFTS[name], lattice_vectors(name))


@pytest.mark.parametrize(
    ("name", "activation", "turns"), [("e8p", "f16", 1), ("e8p+e8p", "f16", 1), ("e8p", "bf16", 3)]
)
def test_the_inner_loop(name: str, activation: str, turns: int) -> None:
    """Of a vector: two lookups whose address is one PRMT each, an XOR, rotations, and 4 LOP3 and 4 subtractions."""
    spec = LinearSpec(512, 2048, Codec(Vectors.lattice(name), "channel", "f16"), activation, "f32", aligned=True)
    ptx = compile_for_gpu(spec, Schedule(8, 4, stages=4, row_tiles=1), "sm_90a").ptx
    assert "shfl" not in ptx and ".local" not in ptx
    begin, end = ptx.index("prmt.b32"), ptx.rindex("mma.sync")
    loop = ptx[begin:end]

    def count(pattern: str) -> int:
        return len(re.findall(pattern, loop))

    vectors = count(r"xor\.b32")
    assert vectors == 16 * spec.unit_k // 8 // 32 * Vectors.lattice(name).books
    assert count(r"prmt\.b32") == count(r"ld\.shared\.b32") == 2 * vectors
    assert count(r"add\.rn\.b?f16x2|sub\.rn\.b?f16x2") == 4 * vectors
    assert count(r"shf\.|prmt\.b32|shr\.u32") <= (turns + 2) * vectors + 4
    # A mask and an OR of constants, of which the assembler alone makes two.
    assert count(r"lop3\.b32") == 4 * vectors and count(r"and\.b32") <= 4
