"""Random weights of codebooks: every code at random, entries Gaussian, of bytes with a scale for each book."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.array_ops import TorchOps
from lowlp.numeric.host_array import AnyArray

from .book_form import BookForm, book_form
from .cases import Shape
from .saved_weights import SavedWeights

_SEED: Final = 20
_ODD: Final = 40503
_BOOK_SCALE: Final = 2.0**-6
_FLOATS: Final = 32.0
"""The root mean square of entries of e4m3, of which the largest number is 448."""
# About the root mean square of an output of Gaussian activations.
_OUTPUT: Final = 8.0
_BLOCK_ELEMENTS: Final = 1 << 25


@dataclass(frozen=True)
class DrawnBooks:
    """On the host: codes uint8 or uint16 [N, K / v, R]; entries, None of computed books; book_scales float32, None
    without; scales float16 [N, 1]."""

    codes: AnyArray
    entries: AnyArray | None
    book_scales: NDArray[np.float32] | None
    scales: AnyArray


def draw_books(generator: np.random.Generator, form: BookForm, shape: Shape) -> DrawnBooks:
    """Weights of a small shape."""
    codes = generator.integers(0, 1 << form.bits, (shape.n, shape.k // form.vector, form.count))
    entries, book_scales = draw_entries(generator, form, shape)
    scales = generator.uniform(0.75, 1.25, (shape.n, 1)).astype(np.float16)
    return DrawnBooks(codes.astype(np.uint8 if form.bits <= 8 else np.uint16), entries, book_scales, scales)


def zipf_shares(entries: int) -> NDArray[np.float64]:
    """What part of the accesses each entry gets by Zipf's law, the first one most."""
    shares: NDArray[np.float64] = 1 / np.arange(1, entries + 1)
    shares /= shares.sum()
    return shares


def draw_entries(
    generator: np.random.Generator, form: BookForm, shape: Shape
) -> tuple[AnyArray | None, NDArray[np.float32] | None]:
    """The books, and their scales."""
    if not form.entries:
        return None, None
    whole = form.shape_in(shape)
    if form.entries == "f16":
        return generator.standard_normal(whole, np.float32).astype(np.float16), None
    if form.entries == "int8":
        entries: AnyArray = generator.integers(-127, 128, whole, np.int8)
    else:
        entries = (_FLOATS * generator.standard_normal(whole, np.float32)).astype(ml_dtypes.float8_e4m3fn)
    # As they are learnt: the first book has the largest.
    scales = -np.sort(-_BOOK_SCALE * generator.uniform(0.75, 1.25, whole[:-2]))
    return entries, scales.astype(np.float32)


@dataclass
class RandomBooks:
    """On the GPU: codes [N, K / v, R], integers; values of all entries float64 [blocks, R, 2**b, v]; scales [N, 1].
    `operands` is what kernels take of them."""

    form: BookForm
    codes: Any
    values: Any
    scales: Any
    operands: dict[str, Any]

    def dequantized(self, saved: SavedWeights, rows: Any = None) -> Any:
        """float64 [N, K]: the meaning of the weights; `rows`: of these rows alone, a tensor of their numbers."""
        import torch

        n, length, count = self.codes.shape
        device = self.codes.device
        numbers = torch.arange(n, device=device) if rows is None else rows
        first = self._first_entries(numbers, length)
        found = torch.empty((len(numbers), length * self.form.vector), dtype=torch.float64, device=device)
        entries = self.values.reshape(-1, self.form.vector)
        step = max(1, _BLOCK_ELEMENTS // found.shape[1])
        for start in range(0, len(numbers), step):
            part = slice(start, start + step)
            codes = self.codes[numbers[part]].to(torch.int64)
            block = torch.zeros((), dtype=torch.float64, device=device)
            for book in range(count):
                block = block + entries[first[part] + (book << self.form.bits) + codes[:, :, book]]
            found[part] = block.reshape(len(codes), -1) * self.scales[numbers[part]].double()
        return found

    def _first_entries(self, rows: Any, length: int) -> Any:
        """Where the books of each vector of these rows begin: [rows, vectors], or of one column where all are alike."""
        import torch

        if not self.form.rows:
            return torch.zeros((len(rows), 1), dtype=torch.int64, device=rows.device)
        columns = torch.arange(length, device=rows.device) * self.form.vector // self.form.columns
        across = -(-length * self.form.vector // self.form.columns)
        return (rows[:, None] // self.form.rows * across + columns) * (self.form.count << self.form.bits)


def random_books(saved: SavedWeights, sample: dict[str, AnyArray], shape: Shape, device: Any) -> RandomBooks:
    """Weights [N, K] of this kind. Raises `LowlpValueError` where packing here differs from the compiler's."""
    import torch

    ops = TorchOps(device)
    saved.check_sample(ops, sample)
    form = book_form(saved.vectors)
    entries, book_scales = draw_entries(np.random.default_rng(_SEED), form, shape)
    books = {"codebooks": sample["codebooks"] if entries is None else entries}
    if book_scales is not None:
        books["book_scales"] = book_scales
    elif "book_scales" in sample:
        books["book_scales"] = sample["book_scales"]
    values = (sample["vectors"] if entries is None else entries).astype(np.float64)
    if "book_scales" in books:
        values *= books["book_scales"][..., None, None]
    generator = torch.Generator(device=device).manual_seed(_SEED)
    extents = (shape.n, shape.k // form.vector, form.count)
    if saved.skewed:
        ends = torch.from_numpy(np.cumsum(zipf_shares(1 << form.bits))).to(device)
        drawn = torch.rand(extents, dtype=torch.float32, device=device, generator=generator)
        codes = torch.searchsorted(ends.float(), drawn).clamp(max=(1 << form.bits) - 1).to(torch.int32)
        if not saved.frequent:
            # A product with an odd number is a permutation of codes.
            codes = (codes * _ODD + (1 << form.bits) // 2) % (1 << form.bits)
    else:
        codes = torch.randint(0, 1 << form.bits, extents, dtype=torch.int32, device=device, generator=generator)
    codes = codes.to(torch.uint8 if form.bits <= 8 else torch.uint16)
    wanted = 0.75 + 0.5 * torch.rand((shape.n, 1), device=device, generator=generator)
    largest = float(np.sqrt(form.count * np.mean(values**2)))
    scales = (wanted * (_OUTPUT / (largest * math.sqrt(shape.k)))).to(torch.float16)
    operands = saved.make_operands(ops, codes.reshape(shape.n, -1), scales, None, None, books)
    for operand in saved.operands:
        if operand.element == "int8":
            # Entries come as bytes.
            operands[operand.name] = operands[operand.name].view(torch.int8)
    on_device = torch.from_numpy(values).to(device)
    return RandomBooks(form, codes.to(torch.int32), on_device, scales, operands)
