"""humming-kernels: `HummingLayer` as its README uses it, with its own quantisation and its own choice of kernels.

At its first call a layer compiles the kernels of all ranges of M, some thirty. Here it is given the ranges that hold
the rows to be measured, from its own list, so that it launches the kernels it would have chosen and compiles no others.
`compile_ahead` has many of them compiled at the same time, into humming's own cache on disk.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

from lowlp.benchmarks.cases import Shape, WeightKind
from lowlp_runtime.operand_tensors import torch_type

_SCALES: Final = {"e8m0": "float8e8m0", "e4m3": "float8e4m3"}
_SMALL: Final = Shape(256, 1024)


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
        if kind is None or kind.table or kind.dtype.startswith("bipolar"):
            return False
        # Its unsigned integers have zero points, and its scales of 16 bits are of the type of the activations.
        return bool(kind.zeros) == kind.dtype.startswith("uint") and kind.scale in (kind.activation, *_SCALES)

    def make(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> _Product:
        assert kind is not None
        layer, meaning = _layer(kind, weights)
        return _Product(layer, ranges_of(layer.humming_config, rows), meaning)

    def compile_ahead(
        self,
        problems: Sequence[tuple[WeightKind, Shape, int]],
        weights_of: Callable[[Shape, str], Any],
        workers: int,
    ) -> Iterator[tuple[int, int]]:
        """Compiles what products of weights (kind, shape, M) launch, and what makes their weights.

        weights_of  weights of a shape and type, on the GPU

        Yields (done, of how many). What fails here fails again when it is measured, and is told there. A kernel depends
        on the shape, and on the layer's configuration, which a small one of the kind has too; where a large one
        differs, its kernel is compiled when it is called.
        """
        from humming.kernel.humming import HummingKernel

        kinds = list(dict.fromkeys(kind for kind, _, _ in problems))
        total = len(kinds) + len(problems)
        # Made here: CUDA begins in one thread.
        weights = {activation: weights_of(_SMALL, activation) for activation in {kind.activation for kind in kinds}}
        with ThreadPoolExecutor(workers) as pool:
            layers = {pool.submit(_layer, kind, weights[kind.activation]): kind for kind in kinds}
            configs = {}
            for done, future in enumerate(as_completed(layers), 1):
                if future.exception() is None:
                    configs[layers[future]] = future.result()[0].humming_config
                yield done, total

            def compile_one(kind: WeightKind, shape: Shape, m: int) -> None:
                config = dataclasses.replace(configs[kind], shape_n=shape.n, shape_k=shape.k)
                HummingKernel.prepare_kernels(config.to_str(), None, ranges_of(config, [m]))

            kernels = [pool.submit(compile_one, *problem) for problem in problems if problem[0] in configs]
            for done, kernel in enumerate(as_completed(kernels), total - len(kernels) + 1):
                kernel.exception()
                yield done, total


def _layer(kind: WeightKind, weights: Any) -> tuple[Any, Any]:
    """A layer of these weights, ready to be called, and what its weights mean."""
    from humming.layer import HummingLayer

    n, k = weights.shape
    config: dict[str, Any] = {"dtype": _type_name(kind.dtype), "group_size": kind.group}
    if kind.zeros:
        config |= {"has_zero_point": True, "is_fp_zero_point": kind.zeros != "uint8"}
    if kind.scale in _SCALES:
        config["scale_dtype"] = _SCALES[kind.scale]
    if kind.second_scale:
        config["scale_2_type"] = "tensor"
    made = HummingLayer(shape_n=n, shape_k=k, weight_config=config, torch_dtype=torch_type(kind.activation)).cuda()
    made.load_from_unquantized(weights)
    # Before `transform`, which reorders the tensors for the kernels.
    tensors = {name: tensor.data for name, tensor in made.named_parameters()}
    meaning = made.weight_schema.dequant_tensors(tensors)
    made.transform()
    return made, meaning


def ranges_of(config: Any, rows: Sequence[int]) -> str:
    """humming's own choices for these rows: JSON, a list of [above, up to, schedule].

    config  of a layer
    """
    from humming.tune import get_heuristics_config

    chosen = get_heuristics_config(config, gemm_type="dense")
    # It also asks for a single row, whatever the rows are.
    return json.dumps([one for one in chosen if any(one[0] < m <= one[1] for m in (1, *rows))])


def _type_name(dtype: str) -> str:
    """'float6e3m2' for 'f6e3m2'; integers are called the same."""
    return f"float{dtype[1:]}" if dtype.startswith("f") else dtype


PEER = _Humming()
