"""Weights whose packed words are on a device, in a tensor of PyTorch, and not in the memory of the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lowlp.numeric.host_array import AnyArray
from lowlp.weights.families import are_placed_alike
from lowlp.weights.given_meaning import form_and_meaning
from lowlp.weights.meaning import Meaning
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.stored_arrays import arguments_of, stored_types
from lowlp.weights.words import Words, WordsForm
from lowlp_runtime.errors import LowlpValueError


class ResidentTensor(QuantizedTensor):
    """As `QuantizedTensor`. Kernels on that device read the words where they are; what reads them on the host
    (`dequantize`, `codes`, slices, `to_arrays`, copies) fetches them at each use, and does not keep them. Scales and
    the like are on the host, since numbers that kernels take are made of them."""

    __slots__ = ("_tensor",)

    _tensor: Any

    @classmethod
    def of_tensor(cls, words: Any, arrays: Mapping[str, object], header: str) -> ResidentTensor:
        """words   int32 of any shape, contiguous, on a device: as many as the header says, and not changed afterwards
        arrays     those of `QuantizedTensor.to_arrays` but 'packed', on the host
        header     their text

        Raises as `QuantizedTensor.from_arrays`; codes are not looked at.
        """
        held = np.broadcast_to(np.zeros((), stored_types(header)["packed"]), (1,))
        arguments = arguments_of({"packed": held, **arrays}, header)
        del arguments["packed"]
        form, meaning = form_and_meaning(**arguments)
        wanted = int(np.prod(form.shape))
        if words.numel() != wanted:
            raise LowlpValueError(f"packed: expected {wanted} words for {header[:80]}, got {words.numel()}")
        return cls._resident(form, meaning, words.flatten())

    @classmethod
    def _resident(cls, form: WordsForm, meaning: Meaning, words: Any) -> ResidentTensor:
        found = cls.__new__(cls)
        found._tensor = words
        found._hold(form, meaning, np.broadcast_to(np.zeros((), np.uint32), form.shape))
        return found

    @property
    def _words(self) -> Words:
        fetched: AnyArray = self._tensor.cpu().numpy().view(np.uint32)
        words: Words = fetched.reshape(self._form.shape)
        words.setflags(write=False)
        return words

    @_words.setter
    def _words(self, words: Words) -> None:
        """The tensor has them."""

    def words_on(self, device: object, family: str) -> Any | None:
        is_there = str(self._tensor.device) == str(device)
        return self._tensor if is_there and are_placed_alike(self._form.code, self.family, family) else None

    @classmethod
    def of_parts(cls, form: WordsForm, meaning: Meaning, words: Words) -> QuantizedTensor:
        """On the host: slices, and weights of another family."""
        return QuantizedTensor.of_parts(form, meaning, words)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed words on the device, and of what `QuantizedTensor.nbytes` counts beside them."""
        kept = [*(array for _, array in self._meaning.arrays()), *self._others.values()]
        kept += [] if self._spread is None else [self._spread.packed]
        return 4 * int(self._tensor.numel()) + sum(int(array.nbytes) for array in kept)
