"""The Hadamard transform of rows, by blocks: what it is, in numpy.

    y = x H / sqrt(n),   H = H_m (x) H_2 (x) ... (x) H_2        a block has n = m 2^j numbers, m = 1, 12, 20 or 28

All factors are symmetric, so the transform is its own inverse. Steps of 2 go first, of neighbours, then of numbers 2,
4, ... apart: (a, b) becomes (a + b, a - b), each sum rounded to float32. For m > 1 follow the sums of the m numbers
that are n / m apart, with the signs of H_m, added in their order; last, one product with float32(1 / sqrt(n)).

Sources: QuaRot (arXiv 2404.00456) and SpinQuant (arXiv 2405.16406) for the use; HadaCore (arXiv 2412.08832) for fast
kernels; Paley's second construction (J. Math. Phys. 12, 1933) for m = 12, 20 and 28, with q = 5, 9 and 13.
"""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

ODD_PARTS: Final = {12: 5, 20: 9, 28: 13}
"""Orders of Hadamard matrices that are not powers of two, and the q of Paley's construction, order = 2 (q + 1)."""
SMALLEST_BLOCK: Final = 32
LARGEST_BLOCK: Final = 32768


def checked_block(block: object, k: int, argument: str) -> int:
    """The numbers of a block; None: K. Raises `LowlpTypeError` and `LowlpValueError`, which name the argument."""
    if block is None:
        block = k
    if isinstance(block, bool) or not isinstance(block, int | np.integer):
        raise LowlpTypeError(f"{argument}: expected None or an int, got {block!r:.40}")
    size = int(block)
    if factors_of(size) is None or not SMALLEST_BLOCK <= size <= LARGEST_BLOCK:
        raise LowlpValueError(
            f"{argument}: blocks are a power of two, or 12, 20 or 28 times one, from {SMALLEST_BLOCK} to "
            f"{LARGEST_BLOCK}, got {size}"
        )
    if k % size:
        raise LowlpValueError(f"{argument}: must divide K = {k}, got {size}")
    return size


def factors_of(block: int) -> tuple[int, int] | None:
    """(m, power of two) of a block; None where there is no such transform."""
    for odd in (1, *ODD_PARTS):
        power, rest = divmod(block, odd)
        if not rest and power > 0 and power & (power - 1) == 0:
            return odd, power
    return None


@functools.lru_cache(maxsize=4)
def odd_signs(order: int) -> NDArray[np.int8]:
    """The symmetric Hadamard matrix of 12, 20 or 28, of +1 and -1.

    Of the symmetric conference matrix C of order q + 1 the Kronecker sum C (x) [[1, 1], [1, -1]] + I (x) [[1, -1], [-1,
    -1]].
    """
    q = ODD_PARTS[order]
    conference = np.ones((q + 1, q + 1), np.int8)
    conference[0, 0] = 0
    conference[1:, 1:] = _residues(q)
    even, diagonal = np.array([[1, 1], [1, -1]], np.int8), np.array([[1, -1], [-1, -1]], np.int8)
    signs: NDArray[np.int8] = np.kron(conference, even) + np.kron(np.eye(q + 1, dtype=np.int8), diagonal)
    return signs


def _residues(q: int) -> NDArray[np.int8]:
    """[q, q]: 1 where the difference of two elements of the field of q is a square, -1 where it is none, 0 of equal
    ones. The field of 9 is that of pairs a + b i modulo 3, with i^2 = -1."""
    base = 3 if q == 9 else q
    elements = [(a, b) for a in range(base) for b in range(q // base)]
    squares = {((a * a - b * b) % base, 2 * a * b % base) for a, b in elements if a or b}
    apart = [[((a - c) % base, (b - d) % base) for c, d in elements] for a, b in elements]
    return np.array([[0 if d == (0, 0) else 1 if d in squares else -1 for d in row] for row in apart], np.int8)


def inverse_root(block: int) -> np.float32:
    """float32(1 / sqrt(block))."""
    return np.float32(1 / math.sqrt(block))


def transformed(rows: NDArray[np.float32], block: int) -> NDArray[np.float32]:
    """The transform of float32 [..., K], in float32."""
    factors = factors_of(block)
    assert factors is not None, "a block that checked_block refuses"
    odd, power = factors
    result = rows.reshape(-1, block)
    step = 1
    with np.errstate(over="ignore", invalid="ignore"):
        while step < power:
            pairs = result.reshape(-1, 2, step)
            result = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
            step *= 2
        if odd > 1:
            result = _by_signs(result.reshape(-1, odd, power), odd_signs(odd))
        return (result * inverse_root(block)).reshape(rows.shape)


def _by_signs(parts: NDArray[np.float32], signs: NDArray[np.int8]) -> NDArray[np.float32]:
    result = parts[:, :1] * signs[None, :, :1]
    for column in range(1, signs.shape[1]):
        result = result + parts[:, column, None] * signs[None, :, column, None]
    return result.astype(np.float32, copy=False)
