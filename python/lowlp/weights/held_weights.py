"""What quantised weights hold: packed words, what they mean, and what is made of both at first use and kept."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.errors import RepackWarning, frames_to_user
from lowlp.numeric.codec import Codec
from lowlp.weights.dequantize import sums_of_codes
from lowlp.weights.families import FAMILIES, are_placed_alike
from lowlp.weights.meaning import Meaning
from lowlp.weights.words import Words, WordsForm, repacked_apart


class HeldWeights:
    """The state of a `QuantizedTensor`: words of one family, their form, and their meaning.

    Words of other families, and arrays that kernels take, are made when they are first asked for. They go with the
    object, and no copy or pickle has them.
    """

    __slots__ = ("__weakref__", "_codec", "_derived", "_form", "_lock", "_meaning", "_others", "_spread", "_words")

    def _hold(self, form: WordsForm, meaning: Meaning, words: Words) -> None:
        view = words.view()
        view.setflags(write=False)
        self._form, self._meaning, self._words, self._codec = form, meaning, view, meaning.codec
        # Reentrant: what is derived from words of another family makes these first.
        self._lock = threading.RLock()
        self._others: dict[str, Words] = {}
        self._spread: HeldWeights | None = None
        self._derived: dict[str, Mapping[str, Any]] = {}

    @property
    def codec(self) -> Codec:
        """What the codes mean, without the weights: equal for tensors that one kernel serves, but for second scales by
        rows and permutations; hashable."""
        return self._codec

    @property
    def form(self) -> WordsForm:
        """What the packed words depend on; for the library itself."""
        return self._form

    @property
    def meaning(self) -> Meaning:
        """What the codes mean, with the arrays; for the library itself."""
        return self._meaning

    @property
    def family(self) -> str:
        """For activations of which type the words are placed: 'f16', 'bf16', 's8', 'e4m3' or 'b1'."""
        return self._form.family

    @property
    def packed(self) -> Words:
        """The packed words of the family, uint32, read-only (docs/packed-format.md); of [E, N, K] those of each matrix
        in turn, [E, ...]. Of slices along K a view."""
        return self._words if self._form.experts is None else self._words.reshape(self._form.public_shape)

    @property
    def is_spread(self) -> bool:
        """Whether `spread` returns at once: this tensor, or what it has made."""
        vectors = self._meaning.vectors
        return vectors is None or bool(vectors.spread) or not vectors.can_spread or self._spread is not None

    @property
    def nbytes(self) -> int:
        """Bytes of host memory that these weights keep: the packed words, padding included, scales, zeros, offsets,
        scale2, super-scales, tables and codebooks; and, after products that needed them, words of another family or
        with spread codes, words of gate and up packed apart, and what the CPU target keeps in the order of its
        kernels. Copies on a GPU, as large, are not counted; of a slice its part is, whoever owns the memory."""
        own = [self._words, *(array for _, array in self._meaning.arrays())]
        others = list(self._others.values())
        if self._spread is not None:
            others.append(self._spread._words)
        for parts in self._derived.values():
            for part in parts.values():
                if isinstance(part, np.ndarray) and not any(np.may_share_memory(part, known) for known in own + others):
                    others.append(part)
        return sum(array.nbytes for array in own + others)

    def words_on(self, device: object, family: str) -> Any | None:
        """The words of a family where they are on a device already, as a tensor there; None: they are not."""
        return None

    def packed_for(self, family: str) -> Words:
        """The words in a family. Those of another one are made at the first use, with a `lowlp.errors.RepackWarning`
        that names their bytes, and kept."""
        if are_placed_alike(self._form.code, self.family, family):
            return self._words
        with self._lock:
            if family not in self._others:
                made = self._form.repacked(self._words, family)
                made.setflags(write=False)
                self._others[family] = made
                warnings.warn(
                    f"qw: packed for {self.family} and used with {FAMILIES[family]} activations: repacked once, and "
                    f"{made.nbytes} more bytes are kept; quantize with activation={family!r}, or use "
                    f"qw.pack_for({family!r})",
                    RepackWarning,
                    stacklevel=frames_to_user(),
                )
            return self._others[family]

    def packed_apart(self, family: str, parts: int) -> Words:
        """The words of `parts` equal ranges of rows in a family, each padded to whole units; not kept."""
        return repacked_apart(self._form, self._words, family, parts)

    @property
    def code_sums(self) -> NDArray[np.int32]:
        """int32 [N, K / group_size], read-only: the sums of each group's stored codes, which count up from 0 (those of
        `int{b}` with the sign bit turned over). Products of planes take offsets off by them. Made at first use, and
        kept; of all rows of [E, N, K], [E N, K / group_size]. Raises `LowlpValueError` for floats, tables and vectors.
        """
        sums: NDArray[np.int32] = self.derived(
            "code_sums", lambda: {"sums": sums_of_codes(self._form, self._words, self._meaning)}
        )["sums"]
        return sums

    def derived(self, key: str, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Arrays and numbers of the host, by name, made from these weights by `make` at the first use of `key`, and
        kept: counted by `nbytes`, left out of copies and pickles."""
        with self._lock:
            if key not in self._derived:
                self._derived[key] = make()
            return self._derived[key]
