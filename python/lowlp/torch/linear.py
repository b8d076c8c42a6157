"""`lowlp.torch.Linear`: `torch.nn.Linear` with quantised weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lowlp.kernels.linear.spec import GATED
from lowlp.numeric.codec import Codec
from lowlp.ops.graph_breaks import skip_frames
from lowlp.ops.invariance import argument_of, invariance_of
from lowlp.ops.linear_launch import linear_on_gpu
from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpValueError

from . import operators
from .host_products import EPILOGUES
from .products import check_options, placed_for, product
from .quantized_module import QuantizedModule, activation_type, family_of, is_plain_call, options_of, refuse_tangent
from .stored_tensors import empty_tensors, tensors_of

# `lowlp.linear`, which does so at each call, is not always asked.
skip_frames()


class Linear(QuantizedModule):
    """y = epilogue(x @ w^T + bias) with quantised weights [out_features, in_features], as buffers.

    in_features, out_features  K and N; with 'silu_mul' y has half of N columns
    codec       a `Codec` or its text, 'int4 g128 f16' for example
    bias        with a bias, a parameter without a gradient at first
    family      for activations of which type the words are placed, 'f16' or 'bf16'; None: that of `dtype`
    epilogue    as for `lowlp.linear`, or None
    activation, path  as for `lowlp.linear`, where that takes them, or None
    batch_invariant  as for `lowlp.linear`, on a GPU
    device      None: PyTorch's default; 'meta' works
    dtype       of the bias, and of the x that `warm_up` takes; None: PyTorch's default

    The weights are zeros until a state is loaded; `from_quantized` and `from_linear` make modules of weights there are.
    x [..., K] is float16 or bfloat16, on a CPU also float32; y is of its type. There is a gradient of x, the exact
    product with the dequantised weights, and of the bias; with `activation`, x counts as not rounded for it. Under
    `torch.autocast` x is cast first, as by `torch.nn.Linear`. `torch.compile`, `torch.export` and CUDA graphs take the
    module as one operator; capture a graph after `lowlp.torch.warm_up`.
    """

    sums: str = "x"
    """The type of y, for sums that ranks add up (`lowlp.torch.parallel`): 'x', that of x, 'f32', or 'auto', float32 for
    x of bfloat16."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        codec: Codec | str,
        *,
        bias: bool = True,
        family: str | None = None,
        epilogue: str | None = None,
        activation: str | None = None,
        path: str | None = None,
        batch_invariant: bool | int = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        kind = dtype or torch.get_default_dtype()
        tensors, header = empty_tensors(codec, (out_features, in_features), family or family_of(kind), device)
        held = torch.zeros(out_features, device=device, dtype=kind) if bias else None
        self._hold(tensors, header, held, kind, epilogue, activation, path, batch_invariant)

    def _hold(
        self,
        tensors: Mapping[str, torch.Tensor],
        header: str,
        bias: torch.Tensor | None,
        dtype: torch.dtype,
        epilogue: str | None,
        activation: str | None,
        path: str | None,
        batch_invariant: bool | int = False,
    ) -> None:
        QuantizedModule.__init__(self, tensors, header)
        self.out_features, self.in_features = self._shape
        options = check_options(epilogue, activation, path)
        if epilogue in GATED and self.out_features % 2:
            raise LowlpValueError(f"epilogue: {epilogue} needs an even N, got weights of N = {self.out_features}")
        self.epilogue, self.activation, self.path = epilogue, activation, path
        invariance = invariance_of(batch_invariant, self.out_features, epilogue in GATED)
        self._options = (options["activation"], options["path"], invariance)
        self.dtype = activation_type(self._fields["family"], dtype)
        if bias is None:
            self.register_parameter("bias", None)
        else:
            if tuple(bias.shape) != (self.out_features,):
                raise LowlpValueError(f"bias: must have shape ({self.out_features},), got {tuple(bias.shape)}")
            self.bias = torch.nn.Parameter(bias.detach(), requires_grad=False)

    @classmethod
    def from_quantized(
        cls,
        qw: QuantizedTensor,
        bias: torch.Tensor | None = None,
        *,
        epilogue: str | None = None,
        activation: str | None = None,
        path: str | None = None,
        batch_invariant: bool | int = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> Linear:
        """The module of weights [N, K], in their memory where that is on `device`; do not use `qw` afterwards.

        bias    [N], of any float type, or None
        device  None: the CPU
        dtype   of the bias and of x for `warm_up`; None: of the bias its own, of x the family's

        Raises `LowlpTypeError` and `LowlpValueError`.
        """
        tensors, header = tensors_of(qw, device)
        held = None if bias is None else bias.detach().to(device=tensors["packed"].device, dtype=dtype)
        found = cls.__new__(cls)
        found._hold(tensors, header, held, dtype or torch.float32, epilogue, activation, path, batch_invariant)
        return found

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, torch.Tensor], header: str, dtype: torch.dtype) -> Linear:
        """The module of the buffers of another one, which it shares: a head and an embedding of the same weights."""
        found = cls.__new__(cls)
        found._hold(tensors, header, None, dtype, None, None, None)
        return found

    @classmethod
    def from_linear(
        cls,
        module: torch.nn.Linear,
        codec: Any = "int4",
        *,
        epilogue: str | None = None,
        activation: str | None = None,
        path: str | None = None,
        batch_invariant: bool | int = False,
        **options: Any,
    ) -> Linear:
        """The module quantised, on its device and with its bias.

        codec       as `lowlp.quantize` takes it as `dtype`: 'int4', 'nf4', 'mxfp4', a `Codec`; None with `vq` or `lut`
        options     of `lowlp.quantize`: group_size, zero_point, scale_dtype, search, vq, ...; of a module in bfloat16,
                    scales are of bfloat16 too where `scale_dtype` and `activation` are not given
        activation  the type that x is quantised to, as for `lowlp.linear`, or None; the family follows from it, and
                    from the type of the module's weights

        Raises as `lowlp.quantize`.
        """
        check_options(epilogue, activation, path)
        weight = module.weight.detach()
        qw = quantize(weight, codec, **options_of(weight.dtype, options, activation))
        qw = placed_for(qw, activation, path, weight.device)
        return cls.from_quantized(
            qw,
            module.bias,
            epilogue=epilogue,
            activation=activation,
            path=path,
            batch_invariant=batch_invariant,
            device=weight.device,
            dtype=weight.dtype,
        )

    @property
    def batch_invariant(self) -> bool | int:
        """As it was given: a bool, or the rows of the weights of which these are some."""
        return argument_of(self._options[2])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y [..., N], or [..., N / 2] with 'silu_mul', of x [..., K]."""
        if not is_plain_call(x):
            return self._by_operator(x)
        bias = self._parameters["bias"]
        if torch.is_grad_enabled() and (x.requires_grad or (bias is not None and bias.requires_grad)):
            return self._by_operator(x)
        out = "" if self.sums == "x" else self._type_of_sums(x)
        epilogue = self.epilogue or ""
        activation, path, invariance = self._options
        if x.is_cuda and not activation and not path:
            # What `lowlp.linear` would check is right since the module was made.
            held = self._held.of(self._buffers, x.get_device())
            if held is not None:
                return linear_on_gpu(x, held, bias, epilogue, None, out or None, None, invariance)
        return product(x, self._tensors(), bias, self._stored_header, epilogue, out, activation, path, invariance)

    def _type_of_sums(self, x: torch.Tensor) -> str:
        return "f32" if self.sums == "f32" or (self.sums == "auto" and x.dtype == torch.bfloat16) else ""

    def _by_operator(self, x: torch.Tensor) -> torch.Tensor:
        refuse_tangent(x=x, bias=self.bias)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        bias, header, epilogue = self.bias, self._stored_header, self.epilogue or ""
        sums = self._type_of_sums(x)
        if not (torch.is_grad_enabled() and (x.requires_grad or (bias is not None and bias.requires_grad))):
            return operators.linear(x, self._tensors(), bias, header, epilogue, sums, *self._options)
        # With a gradient the epilogue is PyTorch's.
        out = "f32" if epilogue else sums
        y = operators.linear(x, self._tensors(), bias, header, "", out, *self._options)
        return EPILOGUES[epilogue](y).to(x.dtype) if epilogue else y

    def extra_repr(self) -> str:
        options = {
            "epilogue": self.epilogue,
            "activation": self.activation,
            "path": self.path,
            "batch_invariant": self.batch_invariant,
        }
        given = "".join(f", {name}={value}" for name, value in options.items() if value)
        extents = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{extents}, {super().extra_repr()}, bias={self.bias is not None}{given}"
