"""What quantisation by codebooks asks of an array library beyond `array_ops`: searches and sums over float64 blocks.

Blocks are [problems, vectors, values]; books are [problems, entries, values], one for each problem. Elementwise
arithmetic is IEEE 754's in both libraries. A sum has the same bits in every order where its terms are whole numbers
whose partial sums stay within 2^53, which is what callers arrange.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.array_ops import ArrayOps, NumpyOps, TorchOps
from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp_runtime.array import is_torch_tensor

_MAX_WORKERS: Final = 8

Part = tuple[slice, slice]
"""Some problems, and some of the vectors of each."""


class VectorOps(ArrayOps, Protocol):
    """`ArrayOps` on vectors."""

    vectors_at_once: int
    """Vectors that `each_part` gives to one call, for books of 256 entries."""

    def doubles(self, array: Any) -> Any:
        """The values as float64, in memory of their own."""

    def whole(self, array: Any) -> Any:
        """The nearest whole numbers, ties to even."""

    def join(self, left: Any, right: Any) -> Any:
        """Two arrays side by side along the last dimension."""

    def ones(self, shape: tuple[int, ...]) -> Any:
        """float64 ones."""

    def integers(self, shape: tuple[int, ...]) -> Any:
        """int64 zeros."""

    def select(self, condition: Any, yes: Any, no: Any) -> Any:
        """Elements of one array or another."""

    def highest(self, points: Any, table: Any, count: int) -> Any:
        """Of each point the indices of the highest scores, `points @ table`, best first; of equal ones the lower.

        points [problems, vectors, d], table [problems, d, entries] -> int64 [problems, vectors, count]
        """

    def entries(self, books: Any, codes: Any) -> Any:
        """books [problems, entries, values], codes [problems, vectors] -> [problems, vectors, values]"""

    def sums(self, codes: Any, values: Any, entries: int) -> Any:
        """The sums of the values with each code: [problems, vectors, values] -> [problems, entries, values]"""

    def largest(self, values: Any, count: int) -> Any:
        """The indices of the largest of float64 [n], largest first; of equal ones the lower."""

    def each_part(self, work: Callable[[Part], None], problems: int, vectors: int, entries: int) -> None:
        """Calls `work` for all vectors of all problems, a part at a time, some of them at the same time."""


class NumpyVectorOps(NumpyOps):
    """numpy, in threads: its products and searches let others run.

    Products are so small that BLAS computes them in the calling thread. Threads of its own for each, among ours, would
    wait for each other most of the time.
    """

    products_at_once = 1 << 18
    columns_at_once = 1 << 12
    vectors_at_once = 1 << 14

    def doubles(self, array: AnyArray) -> NDArray[np.float64]:
        return np.array(array, np.float64)

    def whole(self, array: AnyArray) -> AnyArray:
        return np.rint(array)

    def join(self, left: AnyArray, right: AnyArray) -> AnyArray:
        return np.concatenate([left, right], axis=-1)

    def ones(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return np.ones(shape)

    def integers(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return np.zeros(shape, np.int64)

    def select(self, condition: AnyArray, yes: AnyArray, no: AnyArray) -> AnyArray:
        return np.where(condition, yes, no)

    def highest(self, points: AnyArray, table: AnyArray, count: int) -> NDArray[np.int64]:
        problems, vectors, depth = points.shape
        entries = table.shape[2]
        columns = min(entries, self.columns_at_once)
        rows = max(1, self.products_at_once // (depth * columns))
        found = np.empty((problems, vectors, count), np.int64)
        scores = np.empty((min(rows, vectors), entries))
        for problem in range(problems):
            for start in range(0, vectors, rows):
                part = points[problem, start : start + rows]
                held = scores[: len(part)]
                for first in range(0, entries, columns):
                    some = slice(first, first + columns)
                    np.matmul(part, table[problem, :, some], out=held[:, some])
                self._best_first(held, found[problem, start : start + rows])
        return found

    @staticmethod
    def _best_first(scores: AnyArray, found: NDArray[np.int64]) -> None:
        for place in range(found.shape[1]):
            best = scores.argmax(axis=1)
            found[:, place] = best
            if place + 1 < found.shape[1]:
                scores[np.arange(len(best)), best] = -np.inf

    def entries(self, books: AnyArray, codes: AnyArray) -> AnyArray:
        found = np.empty((*codes.shape, books.shape[2]), books.dtype)
        for problem in range(len(books)):
            np.take(books[problem], codes[problem], axis=0, out=found[problem], mode="clip")
        return found

    def sums(self, codes: AnyArray, values: AnyArray, entries: int) -> NDArray[np.float64]:
        found = np.empty((len(codes), entries, values.shape[2]))
        for problem in range(len(codes)):
            for column in range(values.shape[2]):
                found[problem, :, column] = np.bincount(codes[problem], values[problem, :, column], entries)
        return found

    def largest(self, values: AnyArray, count: int) -> AnyArray:
        return np.argsort(-values, kind="stable")[:count]

    def each_part(self, work: Callable[[Part], None], problems: int, vectors: int, entries: int) -> None:
        parts = list(parts_of(problems, vectors, max(1, (self.vectors_at_once << 8) // max(entries, 256))))
        if self.workers == 1 or len(parts) == 1:
            for part in parts:
                work(part)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            for _ in pool.map(work, parts):
                pass


class TorchVectorOps(TorchOps):
    """PyTorch on one device. float64 leaves products out of the reach of TF32 settings."""

    def __init__(self, device: Any) -> None:
        super().__init__(device)
        on_cpu = self.torch.device(device).type == "cpu"
        self.scores_at_once = 1 << 17 if on_cpu else 1 << 26
        self.vectors_at_once = 1 << 14 if on_cpu else 1 << 20

    def doubles(self, array: Any) -> Any:
        return array.detach().to(self.torch.float64, copy=True)

    def whole(self, array: Any) -> Any:
        return array.round()

    def join(self, left: Any, right: Any) -> Any:
        return self.torch.cat([left, right], dim=-1)

    def ones(self, shape: tuple[int, ...]) -> Any:
        return self.torch.ones(shape, dtype=self.torch.float64, device=self.device)

    def integers(self, shape: tuple[int, ...]) -> Any:
        return self.torch.zeros(shape, dtype=self.torch.int64, device=self.device)

    def select(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.torch.where(condition, yes, no)

    def highest(self, points: Any, table: Any, count: int) -> Any:
        problems, vectors, _ = points.shape
        found = self.integers((problems, vectors, count))
        for some, rows in parts_of(problems, vectors, max(1, self.scores_at_once // table.shape[2])):
            scores = self.torch.matmul(points[some, rows], table[some])
            for place in range(count):
                best = scores.argmax(dim=2, keepdim=True)
                found[some, rows, place : place + 1] = best
                if place + 1 < count:
                    scores.scatter_(2, best, -self.torch.inf)
        return found

    def entries(self, books: Any, codes: Any) -> Any:
        return books.reshape(-1, books.shape[2])[self._flat(codes, books.shape[1])]

    def sums(self, codes: Any, values: Any, entries: int) -> Any:
        flat = self.torch.zeros(len(codes) * entries, values.shape[2], dtype=self.torch.float64, device=self.device)
        flat.index_add_(0, self._flat(codes, entries).reshape(-1), values.reshape(-1, values.shape[2]))
        return flat.reshape(len(codes), entries, -1)

    def _flat(self, codes: Any, entries: int) -> Any:
        """Codes as places in the books of all problems."""
        if len(codes) == 1:
            return codes
        return codes + entries * self.torch.arange(len(codes), device=self.device)[:, None]

    def largest(self, values: Any, count: int) -> Any:
        return values.sort(stable=True, descending=True).indices[:count]

    def each_part(self, work: Callable[[Part], None], problems: int, vectors: int, entries: int) -> None:
        for part in parts_of(problems, vectors, max(1, (self.vectors_at_once << 8) // max(entries, 256))):
            work(part)


def parts_of(problems: int, vectors: int, at_once: int) -> Iterator[Part]:
    """Parts of at most `at_once` vectors: of one problem, or all vectors of several."""
    together = max(1, at_once // max(vectors, 1))
    for first in range(0, problems, together):
        some = slice(first, min(first + together, problems))
        for start in range(0, vectors, at_once):
            yield some, slice(start, min(start + at_once, vectors))


def library_of(value: object, name: str) -> tuple[VectorOps, Any]:
    """What computes with an array that errors call `name`, and the array in it: PyTorch on its GPU, else numpy."""
    if is_torch_tensor(value) and cast(Any, value).device.type == "cuda":
        return TorchVectorOps(cast(Any, value).device), value
    return NumpyVectorOps(min(os.cpu_count() or 1, _MAX_WORKERS)), as_host_array(value, name)
