"""What products with slabs of weights take (`slabs`), and into how many slabs weights are divided."""

from __future__ import annotations

from typing import Final

from lowlp.schedules.device import H200, Device

from .codebooks.entries import are_global
from .codebooks.schedules import codebook_us
from .codebooks.wide_estimates import wide_us
from .estimates import estimated_us
from .operands import NUMPY_TYPES
from .schedule import Schedule
from .spec import LinearSpec

MOST_BYTES: Final = 256 << 20
"""Of a slab."""
_SLAB_ROWS: Final = 256
"""Slabs begin at multiples of so many rows, whole tiles of libraries."""
_LEAST_ROWS: Final = 768
_LEAST_ROWS_OF_LARGE_BOOKS: Final = 256
"""Of x, from which slabs are thought of."""
_GAIN: Final = 0.97
"""Part of the time of the kernel that decodes in the product from which slabs are taken."""

# What cuBLAS takes for halves on an H100: to begin and to end, operations a microsecond, and for each weight along K.
# Of more operations than `_MANY` power allows fewer, and kernels that decode in the product, whose estimate knows
# nothing of that, fewer still. Fitted to 104 products of 500 rows and more, 7 % apart (docs/adr/0106). Where rows are
# shorter than `_HIDING_K`, products do not hide all of the time that the results' bytes take (docs/adr/0113).
_BEGIN_US: Final = 6.0
_OPERATIONS: Final = 780e6
_MANY: Final = 6e11
_OPERATIONS_BEYOND: Final = 715e6
_DECODED_BEYOND: Final = 620e6
_US_OF_K: Final = 3.0e-4
_OF_RESULTS: Final = 0.8
_HIDING_K: Final = 2048
# To decode a slab: its launch, the part of the bandwidth that it reaches with what the product finds in caches, and the
# microseconds that instructions take for each weight.
_DECODE_US: Final = 4.7
_OF_BANDWIDTH: Final = 1.05
_US_OF_WEIGHT: Final = 1.05e-6
# The same of codebooks: launch, part of the bandwidth, and beside what is written microseconds for a million vectors to
# be looked up in shared memory, in books of blocks of weights, and in the L2 cache: 40 slabs on an H200, 7 % apart
# (docs/adr/0120).
_VECTORS_DECODE_US: Final = 3.0
_VECTORS_OF_BANDWIDTH: Final = 0.85
_US_OF_VECTORS: Final = 0.3
_US_OF_VECTORS_OF_BLOCKS: Final = 0.85
_US_OF_FAR_VECTORS: Final = 3.2
_FEW_BYTES: Final = 16 << 10
"""Of books that are little beside shared memory."""


def parts_of_slabs(n: int, k: int) -> list[slice]:
    """The rows of each slab of weights [n, k]: as few slabs as `MOST_BYTES` allow, of about equal size."""
    slabs = -(-2 * n * k // MOST_BYTES)
    rows = -(-n // (slabs * _SLAB_ROWS)) * _SLAB_ROWS
    return [slice(first, min(first + rows, n)) for first in range(0, n, rows)]


def product_us(spec: LinearSpec, m: int, device: Device) -> float:
    """What a library takes for the product of as many halves."""
    in_library = _operations(spec, m) / _OPERATIONS / _of_device(device)
    in_library += _limited_us(spec, m, _OPERATIONS_BEYOND, device)
    written = spec.n * m * NUMPY_TYPES[spec.out].itemsize / device.bytes_per_us
    written *= _OF_RESULTS * max(0.0, 1 - spec.k / _HIDING_K)
    return _BEGIN_US + in_library + _US_OF_K * spec.k + written


def _operations(spec: LinearSpec, m: int) -> float:
    return 2.0 * spec.n * spec.k * m


def _of_device(device: Device) -> float:
    """What a device computes in a time, over what an H200 does."""
    return device.multiprocessors * device.cycles_per_us / (H200.multiprocessors * H200.cycles_per_us)


def _limited_us(spec: LinearSpec, m: int, beyond: float, device: Device) -> float:
    """What power adds to a product, where it lets `beyond` operations be done in a microsecond after `_MANY`."""
    return max(0.0, _operations(spec, m) - _MANY) * (1 / beyond - 1 / _OPERATIONS) / _of_device(device)


def slabs_us(spec: LinearSpec, m: int, device: Device = H200) -> float:
    """What a product of m rows of x takes by slabs."""
    slabs = len(parts_of_slabs(spec.n, spec.k))
    decoding = _decoding_us if spec.vectors is None else _decoding_us_of_vectors
    return decoding(spec, slabs, device) + product_us(spec, m, device) + _BEGIN_US * (slabs - 1)


def _moved_us(spec: LinearSpec, device: Device) -> float:
    """To read the packed weights and to write slabs, at the whole bandwidth."""
    return spec.n * (spec.bits_of_row / 8 + 2 * spec.k) / device.bytes_per_us


def _decoding_us(spec: LinearSpec, slabs: int, device: Device) -> float:
    in_instructions = _US_OF_WEIGHT * spec.n * spec.k / _of_device(device)
    return _DECODE_US * slabs + max(_moved_us(spec, device) / _OF_BANDWIDTH, in_instructions)


def _decoding_us_of_vectors(spec: LinearSpec, slabs: int, device: Device) -> float:
    assert spec.vectors is not None
    decoded = _VECTORS_DECODE_US * slabs + _moved_us(spec, device) / _VECTORS_OF_BANDWIDTH
    of_vectors = _US_OF_FAR_VECTORS if are_global(spec, device.shared_bytes) else _US_OF_VECTORS
    if spec.vectors.block:
        of_vectors = max(of_vectors, _US_OF_VECTORS_OF_BLOCKS)
    return decoded + of_vectors * 1e-6 * spec.n * spec.k / spec.vectors.vector * spec.vectors.books


def slabs_take_less(spec: LinearSpec, schedule: Schedule, m: int, device: Device = H200) -> bool:
    """Whether m rows of x take less time by slabs than by a kernel that decodes in the product."""
    # Results of f32 show that weights are rounded to the type of x.
    is_early = _has_books_of_some_size(spec) and spec.out != "f32"
    if m < (_LEAST_ROWS_OF_LARGE_BOOKS if is_early else _LEAST_ROWS):
        return False
    if spec.vectors is None:
        decoding = estimated_us(spec, schedule, m, device) + _limited_us(spec, m, _DECODED_BEYOND, device)
    else:
        estimate = wide_us if schedule.warpgroups else _without_warpgroups_us
        decoding = estimate(spec, schedule, m, device)
    return slabs_us(spec, m, device) <= _GAIN * decoding


def _without_warpgroups_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    return codebook_us(spec, m, device)


def _has_books_of_some_size(spec: LinearSpec) -> bool:
    """Whether books take much of shared memory, or do not fit there."""
    vectors = spec.vectors
    if vectors is None or vectors.lattices:
        return False
    return (vectors.books << vectors.bits) * vectors.vector * 2 > _FEW_BYTES
