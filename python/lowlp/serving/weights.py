"""The weights of a layer of an engine, from its first call to its last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import torch

from lowlp.checkpoints.layers import InputQuantization, Layer
from lowlp.checkpoints.own import METHOD
from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.torch import Linear, operators
from lowlp.torch.inputs import RoundedLinear, linear_of, linear_with, rounded
from lowlp.torch.products import product
from lowlp.torch.quantized_module import family_of, is_plain_call
from lowlp.weights.concatenation import concat
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpError, LowlpValueError

from .engine import Engine
from .names import Source
from .pieces import CheckpointTensor, Pieces, parts_of
from .slicing import rows_and_columns

Rounding: TypeAlias = InputQuantization | dict[str, Any] | None
"""How x is rounded; a dict: as lowlp's checkpoints say it, with what else is said of a module."""


class PackedWeights:
    """The weights of a layer from the engine's first call to its last: parameters for the checkpoint's tensors, what
    was loaded into them, and the modules that are made of it.

    engine     whose layer it is
    name       of the engine's layer
    sources    the checkpoint's modules that it is made of
    method, settings  of the checkpoint
    """

    def __init__(self, engine: Engine, name: str, sources: Sequence[Source], method: str, settings: Settings) -> None:
        self.engine, self.name = engine, name
        self.method, self.settings = method, settings
        self.pieces = Pieces(name, sources, engine.name)
        self._parts: list[tuple[QuantizedTensor, Rounding]] = []
        self._padding = 0

    def create(
        self, layer: torch.nn.Module, rows: int, columns: int, dtype: torch.dtype, loader: Callable[..., Any]
    ) -> None:
        """Registers a parameter for each tensor; `loader` is the engine's own, which slices numbers of rows."""
        if dtype not in (torch.float16, torch.bfloat16):
            raise CheckpointError(
                f"{self.name}: activations must be float16 or bfloat16, got {dtype}; give {self.engine.name} --dtype"
            )
        self.rows, self.columns, self.dtype, self.loader = rows, columns, dtype, loader
        self.tokens = self.engine.rows_of_calls()

        def record(param: CheckpointTensor, loaded_weight: torch.Tensor, shard_id: Hashable = None) -> None:
            self.pieces.keep(shard_id, param.part, loaded_weight)
            if self.pieces.seem_complete:
                # At once, so that the tensors of a whole model need not be held. What is wrong is said at the end.
                with contextlib.suppress(CheckpointError):
                    self._pack(layer)

        parts = parts_of(self.pieces.sources)
        for part, kind in parts.items():
            for name in (part, *(other for other in self.engine.other_names(part) if other not in parts)):
                layer.register_parameter(name, self.engine.parameter(part, kind, record))

    def make(self, layer: torch.nn.Module) -> tuple[list[Linear], int]:
        """The modules of this rank's rows, one below the other, where the parameters were, and the number of rows of
        padding after them. The parameters go. Raises `CheckpointError`, which names the layer."""
        if not self._parts:
            self._pack(layer)
        names = [name for name, held in layer.named_parameters(recurse=False) if isinstance(held, CheckpointTensor)]
        device = getattr(layer, names[0]).device
        made = [_module(qw, rounding, device, self.dtype) for qw, rounding in self._parts]
        self._parts = []
        for name in names:
            delattr(layer, name)
        return made, self._padding

    def _pack(self, layer: torch.nn.Module) -> None:
        """Packs what this rank has of the tensors, and lets go of them."""
        layers = self.pieces.layers(self.method, self.settings)
        runs, columns = rows_and_columns(self.engine, layer, self.loader, layers, self.rows, self.columns, self.name)
        padding = sum(run.rows.stop for run in runs if run.is_padding)
        if any(run.is_padding for run in runs[:-1]) or padding == self.rows:
            raise CheckpointError(f"{self.name}: this rank has no rows of it, or some after padding")
        held = [run for run in runs if not run.is_padding]
        rounding = {key: self._rounding(matrix) for key, matrix in layers.items()}
        self._parts = _merged([(self._packed(layers[run.key], run.rows, columns), rounding[run.key]) for run in held])
        self._padding = padding
        self.pieces.tensors.clear()

    def _rounding(self, matrix: Layer) -> Rounding:
        """What happens to x: a checkpoint of lowlp says it of modules, others of the layers themselves."""
        said = self.settings.part("modules").part(matrix.name.removesuffix(".weight")).fields
        return dict(said) if self.method == METHOD and said else matrix.inputs

    def _packed(self, matrix: Layer, rows: slice, columns: slice) -> QuantizedTensor:
        family = family_of(self.dtype)
        if (rows, columns) == tuple(slice(0, extent) for extent in matrix.shape):
            return matrix.load(family)
        try:
            return matrix.load_part(rows, columns, family)
        except LowlpError as error:
            raise CheckpointError(f"{self.name}: cannot be divided among tensor-parallel ranks: {error}") from None


def _merged(parts: list[tuple[QuantizedTensor, Rounding]]) -> list[tuple[QuantizedTensor, Rounding]]:
    """Neighbours as one, where they are of one codec and end between units of the packed format."""
    found = parts[:1]
    for qw, rounding in parts[1:]:
        last, its_rounding = found[-1]
        try:
            if rounding == its_rounding:
                found[-1] = (concat([last, qw]), rounding)
                continue
        except LowlpValueError:
            pass  # They stay two products.
        found.append((qw, rounding))
    return found


def _module(qw: QuantizedTensor, rounding: Rounding, device: torch.device, dtype: torch.dtype) -> Linear:
    if isinstance(rounding, dict):
        return linear_with(rounding, qw, None, device, dtype)
    return linear_of(qw, None, rounding, device, dtype)


def product_of(module: Linear, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """x @ w^T + bias, with the bias in the launch of the product."""
    if bias is None:
        found: torch.Tensor = module(x)
        return found
    if isinstance(module, RoundedLinear):
        x = rounded(x, module.inputs)
    call: Callable[..., torch.Tensor] = product if is_plain_call(x) else operators.linear
    return call(x, module._tensors(), bias, module._stored_header, "", "", *module._options)
