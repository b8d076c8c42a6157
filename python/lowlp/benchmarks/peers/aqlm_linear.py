"""AQLM: `QuantizedLinear`, which takes one kernel for few rows and another one for more, by its own rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowlp.benchmarks.book_form import BookForm, book_form
from lowlp.benchmarks.cases import WeightKind


class _Product:
    detail = "random codes"

    def __init__(self, layer: Any, bits: int) -> None:
        self._layer, self._bits = layer, bits

    def __call__(self, x: Any) -> Any:
        return self._layer(x)

    def dequantized(self) -> Any:
        from aqlm.utils import _dequantize_weight, unpack_int_data

        codes = unpack_int_data(self._layer.codes, self._bits)
        return _dequantize_weight(codes, self._layer.codebooks, self._layer.scales)


class _Aqlm:
    name = "aqlm"
    package = "aqlm"
    module = "aqlm"

    def supports(self, kind: WeightKind | None) -> bool:
        if kind is None or not kind.vectors:
            return False
        form = book_form(kind.vectors)
        return form.vector == 8 and form.entries == "f16" and not form.rows

    def make(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> _Product:
        """Of the weights only the shape and the size: codes and entries are random, as ours are."""
        import torch
        from aqlm import QuantizedLinear

        assert kind is not None
        form: BookForm = book_form(kind.vectors)
        n, k = weights.shape
        layer = QuantizedLinear(
            k, n, form.vector, 1, form.count, form.bits, bias=False, device=weights.device, dtype=torch.float16
        )
        generator = torch.Generator(device=weights.device).manual_seed(n + k)
        # Codes are the bits of an index in a signed type.
        kind_of_codes = torch.iinfo(layer.codes.dtype)
        codes = torch.randint(
            kind_of_codes.min, kind_of_codes.max + 1, layer.codes.shape, device=weights.device, generator=generator
        )
        if form.bits not in (8, 16):
            codes &= (1 << form.bits) - 1
        layer.codes.data = codes.to(layer.codes.dtype)
        layer.codebooks.data.normal_(generator=generator)
        layer.scales.data.fill_(float(weights.float().std()) / form.count**0.5)
        return _Product(layer, form.bits)


PEER = _Aqlm()
