"""Weights whose rows are of two matrices by turns, as gpt-oss ships gate and up, with the rows of each together."""

from __future__ import annotations

import numpy as np

from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.words import empty_words
from lowlp_runtime.errors import LowlpValueError


def with_turns_apart(qw: QuantizedTensor, argument: str = "qw") -> QuantizedTensor:
    """Rows 0, 2, 4, ... of each matrix and then 1, 3, 5, ..., with their scales and the like: weights [N, K] or
    [E, N, K] of one code a weight, N even. Unpacked and packed again, a matrix at a time.

    argument  how errors name the weights

    Raises `LowlpValueError` for other weights.
    """
    form, n = qw.form, qw.shape[-2]
    if n % 2:
        raise LowlpValueError(f"{argument}: rows by turns need an even N, got {list(qw.shape)}")
    if qw.codec.vectors is not None:
        raise LowlpValueError(f"{argument}: rows of codebooks cannot be put in another order, got {qw.codec}")
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)])
    given, words = qw.packed.reshape(form.shape), empty_words(form.shape)
    firsts = np.arange(0, form.rows, n)
    for first in firsts:
        rows = slice(int(first), int(first) + n)
        words[form.units(rows)] = form.packed(form.codes(given, rows)[order])
    meaning = qw.meaning.at_rows((firsts[:, None] + order).ravel())
    return QuantizedTensor.of_parts(form, meaning, words)
