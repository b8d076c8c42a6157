"""`lowlp.torch.GroupedLinear` and `lowlp.torch.Experts`: the quantised matrices of a mixture of experts, as modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lowlp.errors import LowlpRuntimeError, LowlpTypeError
from lowlp.kernels.linear.spec import GATED
from lowlp.numeric.codec import Codec
from lowlp.weights.interleaved_rows import with_turns_apart
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpValueError

from . import operators
from .products import check_options, grouped_product
from .quantized_module import QuantizedModule, activation_type, family_of, is_plain_call
from .stored_tensors import empty_tensors, tensors_of


class GroupedLinear(QuantizedModule):
    """y[i] = epilogue(x[i] @ w[e]^T + bias[e]) of rows sorted by expert, as `lowlp.grouped_linear`; `from_quantized`
    makes it. On a CPU PyTorch multiplies each expert's rows by slabs of its weights, in float32.

    experts, out_features, in_features  E, N and K; with a gate y has half of N columns

    There are no gradients: a call that PyTorch would record raises `LowlpRuntimeError`. `torch.compile`, `torch.export`
    and CUDA graphs take the module as one operator; capture a graph after one call with as many rows.
    """

    @classmethod
    def from_quantized(
        cls,
        qw: QuantizedTensor,
        bias: torch.Tensor | None = None,
        *,
        epilogue: str | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> GroupedLinear:
        """The module of weights [E, N, K], in their memory where that is on `device`; do not use `qw` afterwards.

        bias    [E, N], of any float type, or None
        device  None: the CPU
        dtype   of the bias; None: its own

        Raises `LowlpTypeError` and `LowlpValueError`.
        """
        tensors, header = tensors_of(qw, device, of_experts=True)
        found = cls.__new__(cls)
        found._hold(tensors, header, bias, epilogue, dtype)
        return found

    @classmethod
    def empty(
        cls,
        experts: int,
        in_features: int,
        out_features: int,
        codec: Codec | str,
        *,
        bias: bool = False,
        epilogue: str | None = None,
        family: str | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> GroupedLinear:
        """The module of weights [experts, out_features, in_features] that wait for a state, on the meta device for
        example; the other arguments as those of `lowlp.torch.Linear`."""
        kind = dtype or torch.get_default_dtype()
        shape = (experts, out_features, in_features)
        tensors, header = empty_tensors(codec, shape, family or family_of(kind), device)
        found = cls.__new__(cls)
        held = torch.zeros(experts, out_features, device=device, dtype=kind) if bias else None
        found._hold(tensors, header, held, epilogue, kind)
        return found

    def _hold(
        self,
        tensors: Mapping[str, torch.Tensor],
        header: str,
        bias: torch.Tensor | None,
        epilogue: str | None,
        dtype: torch.dtype | None,
    ) -> None:
        QuantizedModule.__init__(self, tensors, header)
        check_options(epilogue, None, None)
        self.experts, self.out_features, self.in_features = self._fields["shape"]
        if epilogue in GATED and self.out_features % 2:
            raise LowlpValueError(f"epilogue: {epilogue} needs an even N, got weights of N = {self.out_features}")
        self.epilogue = epilogue
        self.dtype = activation_type(self._fields["family"], dtype)
        self.register_parameter("bias", None)
        if bias is not None:
            wanted = (self.experts, self.out_features)
            if tuple(bias.shape) != wanted:
                raise LowlpValueError(f"bias: must have shape {wanted}, got {tuple(bias.shape)}")
            held = bias.detach().to(device=tensors["packed"].device, dtype=dtype)
            self.bias = torch.nn.Parameter(held, requires_grad=False)

    @property
    def _shape(self) -> tuple[int, int]:
        """The matrices one above the other."""
        experts, n, k = self._fields["shape"]
        return experts * n, k

    def forward(self, x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """y [M, N], or [M, N / 2] with a gate, of x [M, K] and `offsets` int32 [E + 1], both where the weights are.
        Rows of no expert are undefined, and on a CPU zero."""
        if torch.is_grad_enabled() and x.requires_grad:
            raise LowlpRuntimeError(
                "x: requires a gradient, and products of experts have none; call the module under torch.no_grad(), or "
                "pass x.detach()"
            )
        call = grouped_product if is_plain_call(x) else operators.grouped_linear
        return call(x, self._tensors(), offsets, self.bias, self._stored_header, self.epilogue or "")

    def extra_repr(self) -> str:
        extents = f"experts={self.experts}, in_features={self.in_features}, out_features={self.out_features}"
        return f"{extents}, {super().extra_repr()}, bias={self.bias is not None}, epilogue={self.epilogue}"


class Experts(torch.nn.Module):  # type: ignore[misc]
    """The feed-forward layers of a mixture of experts: for each token the sum over its experts e, with weights g, of
    g * down_e(activation(gate_up_e(x))).

    gate_up     weights [E, 2 I, H]: rows of gate, then as many of up
    down        weights [E, H, I]
    activation  'silu_mul': silu(gate) * up; 'gpt_oss': (up + 1) * gate * sigmoid(1.702 gate), with gate at most 7 and
                up in -7 to 7, as `GptOssExperts` of transformers has it. In the launch of the product
    interleaved  rows of gate and up, and their biases, come by turns, as in checkpoints of gpt-oss: they are packed
                anew, on the host
    gate_up_bias, down_bias  [E, 2 I] and [E, H], or None
    device      None: the CPU
    dtype       of the biases; None: their own

    Nothing is read back to the host, so CUDA graphs take a call, whatever experts tokens choose at each replay. The
    same inputs give the same bits. There are no gradients.
    """

    def __init__(
        self,
        gate_up: QuantizedTensor,
        down: QuantizedTensor,
        *,
        activation: str = "silu_mul",
        gate_up_bias: torch.Tensor | None = None,
        down_bias: torch.Tensor | None = None,
        interleaved: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if activation not in GATED:
            raise LowlpValueError(f"activation: must be one of {', '.join(GATED)}, got {activation!r:.40}")
        if interleaved:
            gate_up = with_turns_apart(gate_up, "gate_up")
            if gate_up_bias is not None:
                gate_up_bias = torch.cat([gate_up_bias[..., 0::2], gate_up_bias[..., 1::2]], -1)
        self.activation = activation
        self.gate_up = GroupedLinear.from_quantized(
            gate_up, gate_up_bias, epilogue=activation, device=device, dtype=dtype
        )
        self.down = GroupedLinear.from_quantized(down, down_bias, device=device, dtype=dtype)
        experts, inner = self.gate_up.experts, self.gate_up.out_features
        wanted = [experts, self.gate_up.in_features, inner // 2]
        if list(down.shape) != wanted or inner % 2:
            raise LowlpValueError(
                f"down: must have shape [E, H, I] = {wanted} for gate_up [E, 2 I, H] = {list(gate_up.shape)}, got "
                f"{list(down.shape)}"
            )

    @classmethod
    def empty(
        cls,
        experts: int,
        hidden: int,
        inner: int,
        codec: Codec | str,
        *,
        down_codec: Codec | str | None = None,
        activation: str = "silu_mul",
        bias: bool = False,
        family: str | None = None,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> Experts:
        """The module of weights that wait for a state, on the meta device for example.

        experts, hidden, inner  E, H and I
        codec, down_codec       of gate and up, and of down, or their texts; None: the same
        bias                    with biases
        family, device, dtype   as of `lowlp.torch.Linear`
        """
        if activation not in GATED:
            raise LowlpValueError(f"activation: must be one of {', '.join(GATED)}, got {activation!r:.40}")
        found = cls.__new__(cls)
        torch.nn.Module.__init__(found)
        found.activation = activation
        options: dict[str, Any] = {"bias": bias, "family": family, "device": device, "dtype": dtype}
        found.gate_up = GroupedLinear.empty(experts, hidden, 2 * inner, codec, epilogue=activation, **options)
        found.down = GroupedLinear.empty(experts, inner, hidden, down_codec or codec, **options)
        return found

    def forward(self, x: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """y [..., H] of x [..., H].

        experts  [..., top k], int32 or int64: the experts of each token. What is not in 0..E-1 adds nothing: experts of
                 another rank
        weights  [..., top k], floats: with which their results are added, rounded to the type of x
        """
        if experts.shape != weights.shape or experts.shape[:-1] != x.shape[:-1] or experts.dim() < 1:
            raise LowlpValueError(
                f"experts, weights: must have shape [..., top k] for x {list(x.shape)}, got {list(experts.shape)} and "
                f"{list(weights.shape)}"
            )
        if experts.dtype not in (torch.int32, torch.int64):
            raise LowlpTypeError(f"experts: expected int32 or int64, got {experts.dtype}")
        rows, top = x.reshape(-1, x.shape[-1]), experts.shape[-1]
        chosen, order = torch.sort(experts.reshape(-1), stable=True)
        numbers = torch.arange(self.gate_up.experts + 1, device=x.device, dtype=chosen.dtype)
        offsets = torch.searchsorted(chosen, numbers, out_int32=True)
        hidden = self.gate_up(rows[order // top], offsets)
        sorted_results = self.down(hidden, offsets)
        # Back in the order of tokens, so that each adds its own in one order.
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=x.device)
        is_here = (experts >= 0) & (experts < self.gate_up.experts)
        results = sorted_results[back].view(len(rows), top, -1)
        results = results.masked_fill(~is_here.reshape(-1, top, 1), 0)
        y = torch.bmm(weights.reshape(-1, 1, top).to(x.dtype), results)
        return y.reshape(x.shape)
