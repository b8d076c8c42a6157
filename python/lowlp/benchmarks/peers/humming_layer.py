"""humming-kernels: `HummingLayer` as its README uses it, with its own quantisation and its own choice of kernels.

At its first call a layer compiles the kernels of all ranges of M, some thirty. Here it is given the ranges that hold
the rows to be measured, from its own list, so that it launches the kernels it would have chosen and compiles no others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lowlp.benchmarks.cases import GROUP_SIZE, WeightKind


class _Product:
    detail = ""

    def __init__(self, layer: Any, ranges: str, meaning: Any) -> None:
        self._layer, self._ranges, self._meaning = layer, ranges, meaning

    def __call__(self, x: Any) -> Any:
        return self._layer(x, tuning_config=self._ranges)

    def dequantized(self) -> Any:
        meaning, self._meaning = self._meaning, None
        return meaning


class _Humming:
    name = "humming"
    package = "humming-kernels"
    module = "humming"

    def supports(self, kind: WeightKind | None) -> bool:
        return kind is not None and not kind.table

    def prepare(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> _Product:
        import torch
        from humming.layer import HummingLayer

        assert kind is not None
        n, k = weights.shape
        config: dict[str, Any] = {"dtype": _type_name(kind.dtype), "group_size": GROUP_SIZE}
        if kind.zero_bytes:
            config["has_zero_point"] = True
        layer = HummingLayer(shape_n=n, shape_k=k, weight_config=config, torch_dtype=torch.float16).cuda()
        layer.load_from_unquantized(weights)
        # Before `transform`, which reorders the tensors for the kernels.
        tensors = {name: tensor.data for name, tensor in layer.named_parameters()}
        meaning = layer.weight_schema.dequant_tensors(tensors)
        layer.transform()
        return _Product(layer, _ranges(layer, rows), meaning)


def _ranges(layer: Any, rows: Sequence[int]) -> str:
    """humming's own choices for these rows: JSON, a list of [above, up to, schedule]."""
    from humming.tune import get_heuristics_config

    chosen = get_heuristics_config(layer.humming_config, gemm_type="dense", device=layer.weight.device)
    return json.dumps([one for one in chosen if any(one[0] < m <= one[1] for m in rows)])


def _type_name(dtype: str) -> str:
    """'float6e3m2' for 'f6e3m2'; integers are called the same."""
    return f"float{dtype[1:]}" if dtype.startswith("f") else dtype


PEER = _Humming()
