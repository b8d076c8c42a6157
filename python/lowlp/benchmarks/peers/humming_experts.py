"""humming-kernels: its grouped product, for which rows lie sorted by expert too and offsets are on the device, with its
own choice of kernels.

What matrices hold does not matter to the time, so that two are made by its own functions, and laid down by turns for as
many experts as there are. `compile_ahead` compiles the kernels of many products at a time, which it keeps on disk.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

from lowlp.benchmarks.experts.cases import Case

_COMPUTE: Final = json.dumps({"gemm_type": "grouped_contiguous"})
_MATRICES: Final = 2
_PADDED_ROWS: Final = 128
"""It takes multiples of so many rows of weights."""
_TYPES: Final = {"mxfp4": {"dtype": "float4e2m1", "scale_dtype": "float8e8m0"}, "int4": {"dtype": "int4"}}


class HummingExperts:
    """Weights of a case, ready to be multiplied.

    meaning  of the two matrices that there are, of which expert e has matrix e % 2
    """

    def __init__(self, case: Case) -> None:
        self._layer, self.meaning = _layer(case)
        self._config = _config(self._layer, case)
        self._copies = case.of.experts // _MATRICES
        self._tensors: dict[str, Any] = {}

    def lay_down(self) -> HummingExperts:
        """Makes the matrices of all experts."""
        import torch

        for name in ("weight", "weight_scale", "weight_scale_2"):
            tensor = getattr(self._layer, name, None)
            if tensor is not None:
                kind = tensor.dtype
                stored = tensor.data.view(torch.uint8) if tensor.element_size() == 1 else tensor.data
                self._tensors[name] = stored.repeat(self._copies, *(1,) * (stored.dim() - 1)).view(kind)
        return self

    def call(self, case: Case, x: Any, offsets: Any) -> Callable[[], Any]:
        """The product of rows x [M, K] of a case, into memory of its own."""
        from humming.forward import humming_forward

        y = x.new_empty((x.shape[0], case.of.shape(case.product)[0]))
        tuning = _tuning(self._config, case)

        def product() -> Any:
            return humming_forward(
                self._config,
                inputs=x,
                outputs=y,
                expert_layout=offsets,
                locks=self._layer.locks,
                compute_config=_COMPUTE,
                tuning_config=tuning,
                **self._tensors,
            )

        return product


def compile_ahead(cases: Sequence[Case], workers: int) -> Iterator[tuple[int, int]]:
    """Compiles what products of these cases launch. Yields (done, of how many). What fails here fails again when it is
    measured, and is told there."""
    from humming.kernel.humming import HummingKernel

    layers: dict[tuple[str, str, str], Any] = {}
    with ThreadPoolExecutor(workers) as pool:
        kernels = {}
        for case in cases:
            key = (case.model, case.product, case.kind)
            try:
                if key not in layers:
                    layers[key] = _config(_layer(case)[0], case)
                tuning = _tuning(layers[key], case)
            except Exception:
                continue
            if (key, tuning) not in kernels:
                arguments = (layers[key].to_str(), _COMPUTE, tuning)
                kernels[key, tuning] = pool.submit(HummingKernel.prepare_kernels, *arguments)
        for done, kernel in enumerate(as_completed(kernels.values()), 1):
            kernel.exception()
            yield done, len(kernels)


def _layer(case: Case) -> tuple[Any, Any]:
    """A layer of two experts with random codes, and what its weights mean."""
    import torch
    from humming.layer import HummingLayer

    n, k = case.of.shape(case.product)
    config = {**_TYPES[case.kind], "group_size": case.codec.group}
    made = HummingLayer(
        shape_n=n,
        shape_k=k,
        weight_config=config,
        num_experts=_MATRICES,
        torch_dtype=torch.float16,
        pad_n_to_multiple=_PADDED_ROWS,
    ).cuda()
    for tensor in made.parameters():
        if tensor.dtype == torch.int32:
            tensor.data = torch.randint(-(1 << 31), 1 << 31, tensor.shape, dtype=torch.int32, device="cuda")
        elif tensor.element_size() == 1:
            tensor.data = torch.randint(118, 124, tensor.shape, dtype=torch.uint8, device="cuda").view(tensor.dtype)
        else:
            tensor.data = (torch.rand(tensor.shape, device="cuda") / 64 + 1 / 128).to(tensor.dtype)
    # Before `transform`, which reorders the tensors for the kernels.
    meaning = made.weight_schema.dequant_tensors({name: tensor.data for name, tensor in made.named_parameters()})
    made.transform()
    return made, meaning


def _config(layer: Any, case: Case) -> Any:
    return dataclasses.replace(layer.humming_config, num_experts=case.of.experts)


def _tuning(config: Any, case: Case) -> str:
    """humming's own choice for so many rows: JSON."""
    from humming.tune import get_heuristics_config

    return json.dumps(get_heuristics_config(config, shape_m=case.rows, gemm_type="grouped_contiguous"))
