"""humming-kernels: `HummingLayer` as its README uses it, with its own quantisation and its own choice of kernels.

It compiles the kernels of a layer, for all ranges of M, at the layer's first call.
"""

from __future__ import annotations

from typing import Any

from ..cases import GROUP_SIZE, WeightKind


class _Product:
    detail = ""

    def __init__(self, layer: Any, meaning: Any) -> None:
        self._layer, self._meaning = layer, meaning

    def __call__(self, x: Any) -> Any:
        return self._layer(x)

    def dequantized(self) -> Any:
        meaning, self._meaning = self._meaning, None
        return meaning


class _Humming:
    name = "humming"
    package = "humming-kernels"
    module = "humming"

    def supports(self, kind: WeightKind | None) -> bool:
        return kind is not None and not kind.table

    def prepare(self, kind: WeightKind | None, weights: Any) -> _Product:
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
        return _Product(layer, meaning)


def _type_name(dtype: str) -> str:
    """'float6e3m2' for 'f6e3m2'; integers are called the same."""
    return f"float{dtype[1:]}" if dtype.startswith("f") else dtype


PEER = _Humming()
