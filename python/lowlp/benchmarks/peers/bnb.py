"""bitsandbytes: `matmul_4bit` on weights of NF4, in blocks as large as our groups, with scales of f32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowlp.benchmarks.cases import GROUP_SIZE, WeightKind


class _Product:
    detail = f"blocksize {GROUP_SIZE}, f32 scales"

    def __init__(self, packed: Any, state: Any) -> None:
        self._packed, self._state = packed, state

    def __call__(self, x: Any) -> Any:
        import bitsandbytes

        return bitsandbytes.matmul_4bit(x, self._packed, quant_state=self._state)

    def dequantized(self) -> Any:
        from bitsandbytes import functional

        return functional.dequantize_4bit(self._packed, self._state)


class _BitsAndBytes:
    name = "bitsandbytes"
    package = "bitsandbytes"
    module = "bitsandbytes"

    def supports(self, kind: WeightKind | None) -> bool:
        return kind is not None and kind.table and kind.bits == 4

    def make(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> _Product:
        from bitsandbytes import functional

        packed, state = functional.quantize_4bit(weights, blocksize=GROUP_SIZE, quant_type="nf4")
        return _Product(packed, state)


PEER = _BitsAndBytes()
