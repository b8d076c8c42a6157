"""gemlite: `A16Wn`, its helper for grouped integers, whose Triton kernels search for a schedule at their first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowlp.benchmarks.cases import GROUP_SIZE, WeightKind

_BITS = (1, 2, 4, 8)


class _Product:
    detail = ""

    def __init__(self, layer: Any, codes: Any, scales: Any, zeros: Any) -> None:
        self._layer = layer
        self._parts: tuple[Any, ...] = (codes, scales, zeros)

    def __call__(self, x: Any) -> Any:
        return self._layer(x)

    def dequantized(self) -> Any:
        codes, scales, zeros = self._parts
        self._parts = ()
        n, k = codes.shape
        values = codes.view(n, k // GROUP_SIZE, GROUP_SIZE).float() - zeros.float()[:, :, None]
        return (values * scales.float()[:, :, None]).view(n, k)


class _Gemlite:
    name = "gemlite"
    package = "gemlite"
    module = "gemlite"

    def supports(self, kind: WeightKind | None) -> bool:
        return kind is not None and kind.bits in _BITS and "int" in kind.dtype and not kind.table

    def make(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> _Product:
        import torch
        from gemlite.helper import A16Wn

        assert kind is not None
        n, k = weights.shape
        grouped = weights.float().view(n, k // GROUP_SIZE, GROUP_SIZE)
        top = (1 << kind.bits) - 1
        low, high = grouped.amin(-1), grouped.amax(-1)
        if kind.zero_bytes:
            scales = ((high - low) / top).half()
            zeros = (-low / scales.float()).round().clamp(0, top).half()
        else:
            # Symmetric integers are unsigned codes with the same zero point in every group.
            half = 1 << (kind.bits - 1)
            scales = (torch.maximum(-low, high) / max(1, half - 1)).half()
            zeros = torch.full_like(scales, half)
        steps = (grouped / scales.float()[:, :, None]).round() + zeros.float()[:, :, None]
        codes = steps.clamp(0, top).to(torch.uint8).view(n, k)
        layer = A16Wn(device=weights.device, dtype=torch.float16).from_weights(
            codes, scales, zeros, W_nbits=kind.bits, group_size=GROUP_SIZE
        )
        return _Product(layer, codes, scales, zeros)


PEER = _Gemlite()
