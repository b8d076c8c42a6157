"""The least time that a product can take: what must be read and written, and what must be multiplied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .book_form import book_form
from .cases import Shape, WeightKind

TARGET_GPU: Final = "NVIDIA H200"
"""The GPU that targets in microseconds are for, as its driver names it."""
READ_BYTES_PER_S: Final = 4.49e12
"""Read bandwidth of an H200: the sum over 2 GiB, measured."""
FLOP_PER_S: Final = 720e12
"""What f16 products of an H200 are held against. It is limited by power, and so no constant of the hardware."""
OVER_FLOOR: Final = 1.08
"""No requirement asks for less than an empty kernel and this many times the floor."""
_ACTIVATION_BYTES: Final = 2


@dataclass(frozen=True)
class Ceilings:
    """What a GPU can do: bytes read per second, floating-point operations per second."""

    read_bytes_per_s: float = READ_BYTES_PER_S
    flop_per_s: float = FLOP_PER_S

    def bytes_us(self, kind: WeightKind, shape: Shape, m: int) -> float:
        """Microseconds to move all bytes of the product."""
        return problem_bytes(kind, shape, m) / self.read_bytes_per_s * 1e6

    def floor_us(self, kind: WeightKind, shape: Shape, m: int) -> float:
        """Microseconds below which the product cannot be: the larger of moving and multiplying."""
        return max(self.bytes_us(kind, shape, m), 2 * m * shape.n * shape.k / self.flop_per_s * 1e6)


def weight_bytes(kind: WeightKind, shape: Shape) -> int:
    """Packed codes, scales, zero points, and codebooks. A table of 16 entries is not counted, nor computed books."""
    if kind.vectors:
        books = book_form(kind.vectors)
        codes = shape.n * shape.k * books.bits * books.count // (8 * books.vector)
        return codes + shape.n * kind.scale_bytes + books.book_bytes(shape)
    groups = shape.n * (shape.k // kind.group_in(shape.k))
    return shape.n * shape.k * kind.bits // 8 + groups * (kind.scale_bytes + kind.zero_bytes)


def problem_bytes(kind: WeightKind, shape: Shape, m: int) -> int:
    """All that must be moved once: weights, activations and results, these two of 16 bits."""
    return weight_bytes(kind, shape) + _ACTIVATION_BYTES * m * (shape.k + shape.n)


def required_us(peer_us: float, factor: float, empty_us: float, floor_us: float) -> float:
    """The time that meets a requirement of `factor` times the peer's speed, where the hardware allows that."""
    return max(peer_us / factor, empty_us + OVER_FLOOR * floor_us)
