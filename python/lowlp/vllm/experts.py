"""Mixtures of experts of vLLM with lowlp's weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from vllm.model_executor.layers.fused_moe import FusedMoEMethodBase
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.utils import set_weight_attrs

from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.serving.names import Source
from lowlp.serving.pieces import Pieces, parts_of
from lowlp.serving.warming import warm
from lowlp.torch import Experts
from lowlp.torch.quantized_module import family_of
from lowlp.weights.concatenation import concat, stack
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpError

from .engine import ENGINE, CheckpointParameter

_GATE, _DOWN, _UP = "w1", "w2", "w3"
_GROUPS: Final = {"w13": (_GATE, _UP), "w2": (_DOWN,)}
_GPT_OSS: Final = (1.702, 1.0, 7.0)
"""Slope, what is added to up, and limit, of the activation that `lowlp.torch.Experts` calls 'gpt_oss'."""


class LowlpMoEMethod(FusedMoEMethodBase):  # type: ignore[misc]
    """vLLM's routed experts by `lowlp.torch.Experts`: the checkpoint has the matrices of each expert by themselves.

    Ranks have some rows of gate and up and as many columns of down, or some experts, as vLLM divides them. Raises
    `CheckpointError`, which names the layer, for activations and ways of dividing that are not served.
    """

    requires_device_loading = False

    def __init__(
        self, name: str, sources: Sequence[Source], method: str, settings: Settings, layer: torch.nn.Module
    ) -> None:
        super().__init__(layer.moe_config)
        self.name, self.method, self.settings = name, method, settings
        roles = {_GATE: layer.ckpt_gate_proj_name, _UP: layer.ckpt_up_proj_name, _DOWN: layer.ckpt_down_proj_name}
        self.names = roles
        self.parts = {
            group: parts_of([source for source in sources if source.name.split(".")[-1] in map(roles.get, shards)])
            for group, shards in _GROUPS.items()
        }
        self.has_bias = any(source.bias for source in sources)
        listed = ", ".join(f"{source.name}.{part}" for source in sources[:1] for part in source.parts)
        if not all(self.parts.values()):
            raise CheckpointError(
                f"{name}: expected matrices of each expert, {name}.0.{roles[_GATE]} and the others, got {listed}"
            )
        self.activation = _activation_of(layer, name)
        if self.moe.moe_parallel_config.use_all2all_kernels:
            raise CheckpointError(f"{name}: experts on ranks that exchange tokens (all2all) are not served")
        # By the number of the expert among all, and the role of the matrix.
        self.sources = {tuple(source.name.split(".")[-2:]): source for source in sources}
        self.pieces = Pieces(name, sources, ENGINE.name)
        self._matrices: dict[tuple[int, str], QuantizedTensor] = {}
        self._cuts: dict[tuple[str, int, int], tuple[slice, slice]] = {}

    def maybe_roundup_sizes(
        self, hidden_size: int, intermediate_size_per_partition: int, act_dtype: torch.dtype, moe_parallel_config: Any
    ) -> tuple[int, int]:
        """Of vLLM: as they are."""
        return hidden_size, intermediate_size_per_partition

    def get_fused_moe_quant_config(self, layer: torch.nn.Module) -> None:
        """Of vLLM: for its own kernels, which are not used."""
        return

    def create_weights(
        self,
        layer: torch.nn.Module,
        num_experts: int,
        hidden_size: int,
        intermediate_size_per_partition: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Of vLLM: parameters for the checkpoint's tensors, and for biases."""
        if params_dtype not in (torch.float16, torch.bfloat16):
            raise CheckpointError(f"{self.name}: activations must be float16 or bfloat16, got {params_dtype}")
        self.experts, self.hidden, self.inner = num_experts, hidden_size, intermediate_size_per_partition
        self.dtype, self.loader, self.layer = params_dtype, extra_weight_attrs["weight_loader"], layer
        self.tokens = ENGINE.rows_of_calls()

        def record(
            param: CheckpointParameter,
            loaded_weight: torch.Tensor,
            weight_name: str,
            shard_id: str,
            expert_id: int,
            return_success: bool = False,
        ) -> bool | None:
            local = layer._map_global_expert_id_to_local_expert_id(expert_id)
            if local >= 0:
                self.pieces.keep((local, shard_id), param.part, loaded_weight)
                source = self._source(expert_id, shard_id)
                if len(self.pieces.tensors[local, shard_id]) == len(source.parts):
                    self._matrices[local, shard_id] = self._packed(local, shard_id, source)
            return local >= 0 if return_success else None

        for group, parts in self.parts.items():
            for part, kind in parts.items():
                layer.register_parameter(f"{group}_{part}", CheckpointParameter(part, kind, record))
        if self.has_bias:
            for name, columns in (("w13_bias", 2 * self.inner), ("w2_bias", self.hidden)):
                zeros = torch.zeros(num_experts, columns, dtype=params_dtype)
                layer.register_parameter(name, torch.nn.Parameter(zeros, requires_grad=False))
                set_weight_attrs(getattr(layer, name), extra_weight_attrs)

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of vLLM: packs what was loaded, and makes the kernels."""
        device = next(held.device for held in layer.parameters() if type(held) is CheckpointParameter)
        gate_ups, downs = zip(*map(self._matrices_of, range(self.experts)), strict=True)
        biases = {name: getattr(layer, name).detach() for name in ("w13_bias", "w2_bias") if self.has_bias}
        try:
            gate_up, down = stack(gate_ups), stack(downs)
        except LowlpError as error:
            raise CheckpointError(f"{self.name}: its experts make no product of all: {error}") from None
        made = Experts(
            gate_up,
            down,
            activation=self.activation,
            gate_up_bias=biases.get("w13_bias"),
            down_bias=biases.get("w2_bias") if self.moe.tp_rank == 0 else None,
            device=device,
            dtype=self.dtype,
        )
        self.pieces.tensors.clear()
        for name, _ in list(layer.named_parameters(recurse=False)):
            delattr(layer, name)
        layer.lowlp = made
        warm(made, self.tokens, self.dtype, layer.top_k)

    def _matrices_of(self, expert: int) -> tuple[QuantizedTensor, QuantizedTensor]:
        """Gate and up, one below the other, and down, of one of this rank's experts; they are given away."""
        found = []
        for shard in (_GATE, _UP, _DOWN):
            matrix = self._matrices.pop((expert, shard), None)
            if matrix is None:
                came = ", ".join(sorted(self.pieces.tensors.get((expert, shard), ()))) or "nothing"
                raise CheckpointError(
                    f"{self.name}: {self.names[shard]} of expert {expert} of {self.experts} on this rank was not "
                    f"loaded; of its tensors came {came}"
                )
            found.append(matrix)
        gate, up, down = found
        try:
            return concat([gate, up]), down
        except LowlpError as error:
            raise CheckpointError(f"{self.name}: gate and up of expert {expert} are no one product: {error}") from None

    def _source(self, expert: int, shard: str) -> Source:
        """The checkpoint's module of a matrix of an expert, by its number among all."""
        found = self.sources.get((str(expert), self.names[shard]))
        if found is None:
            raise CheckpointError(
                f"{self.name}.{expert}.{self.names[shard]}: the checkpoint's tensors have other names"
            )
        return found

    def _packed(self, local: int, shard: str, source: Source) -> QuantizedTensor:
        """What this rank has of a matrix of one of its experts, whose tensors have come; they are let go."""
        matrix = self.pieces.layer((local, shard), source, self.method, self.settings)
        n, k = matrix.shape
        case = (shard, n, k)
        if case not in self._cuts:
            self._cuts[case] = self._part(matrix, shard, local)
        rows, columns = self._cuts[case]
        try:
            found = matrix.load_part(rows, columns, family_of(self.dtype))
        except LowlpError as error:
            raise CheckpointError(f"{self.name}: cannot be divided among tensor-parallel ranks: {error}") from None
        del self.pieces.tensors[local, shard]
        return found

    def _part(self, matrix: Layer, shard: str, local: int) -> tuple[slice, slice]:
        """The rows and columns that vLLM's loader gives this rank: it loads their numbers."""
        n, k = matrix.shape
        is_down = shard == _DOWN
        wanted = (self.hidden, None) if is_down else (None, self.hidden)
        if (n if is_down else k) != self.hidden:
            expected = ", ".join("any" if extent is None else str(extent) for extent in wanted)
            raise CheckpointError(f"{matrix.name}: expected shape [{expected}], got [{n}, {k}]")
        with torch.device("cpu"):
            extents = (self.experts, 1, self.inner) if is_down else (self.experts, 2 * self.inner, 1)
            held = torch.nn.Parameter(torch.full(extents, -1, dtype=torch.int64), requires_grad=False)
            numbers = torch.arange(k)[None] if is_down else torch.arange(n)[:, None]
            group = "w2" if is_down else "w13"
            expert = next(
                number
                for number in range(self.layer.global_num_experts)
                if self.layer._map_global_expert_id_to_local_expert_id(number) == local
            )
            try:
                self.loader(held, numbers, f"{group}_weight", shard, expert)
            except (AssertionError, RuntimeError, ValueError) as error:
                raise CheckpointError(f"{matrix.name}: is [{n}, {k}], which vLLM cannot divide: {error}") from None
        here = held.data[local].reshape(-1)
        if not is_down:
            here = here[: self.inner] if shard == _GATE else here[self.inner :]
        start = int(here[0])
        if start < 0 or not torch.equal(here, torch.arange(start, start + self.inner)):
            raise CheckpointError(
                f"{matrix.name}: is [{n}, {k}], of which this rank would have no {self.inner} in a row"
            )
        some = slice(start, start + self.inner)
        return (slice(0, n), some) if is_down else (some, slice(0, k))

    def apply(
        self,
        layer: torch.nn.Module,
        x: torch.Tensor,
        topk_weights: torch.Tensor,
        topk_ids: torch.Tensor,
        shared_experts: Any,
        shared_experts_input: torch.Tensor | None,
    ) -> torch.Tensor:
        """Of vLLM: what this rank's experts and rows add to y [tokens, H]; shared experts are the runner's."""
        if layer.expert_map is not None:
            # Of all experts to those of this rank, -1 for others; -1 stays, for tokens of padding.
            here = layer.expert_map[topk_ids.clamp_min(0).long()]
            topk_ids = torch.where(topk_ids < 0, -1, here)
        if layer.apply_router_weight_on_input:
            x, topk_weights = x * topk_weights.to(x.dtype), torch.ones_like(topk_weights)
        found: torch.Tensor = layer.lowlp(x, topk_ids, topk_weights)
        return found


def _activation_of(layer: torch.nn.Module, name: str) -> str:
    """vLLM's activation as `Experts` has it."""
    chosen = layer.activation
    numbers = (layer.swiglu_alpha, layer.swiglu_beta, layer.swiglu_limit)
    if chosen == MoEActivation.SILU and layer.swiglu_limit is None:
        found = "silu_mul"
    elif chosen == MoEActivation.SWIGLUOAI_UNINTERLEAVE and numbers == _GPT_OSS:
        found = "gpt_oss"
    else:
        raise CheckpointError(
            f"{name}: the activation {chosen.value!r} with (alpha, beta, limit) = {numbers} is not served; allowed: "
            f"silu, and {MoEActivation.SWIGLUOAI_UNINTERLEAVE.value} with {_GPT_OSS}"
        )
    if layer.apply_router_weight_on_input and layer.top_k != 1:
        raise CheckpointError(f"{name}: weights of the router on the input need one expert a token, got {layer.top_k}")
    return found
