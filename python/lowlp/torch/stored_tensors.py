"""The arrays that quantised weights are stored as, as tensors of PyTorch: what modules hold as buffers, and operators
take as arguments.

They are those of `QuantizedTensor.to_arrays`, byte for byte and by the same names, 'packed' first. Words are int32,
since PyTorch can do little with uint32, and bf16 is bfloat16; int32 and uint32, and bfloat16 and uint16, are taken for
each other when tensors are loaded.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import torch

from lowlp.numeric.codec import Codec
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.array_shapes import array_shapes
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.resident import ResidentTensor
from lowlp.weights.stored_arrays import stored_types
from lowlp_runtime.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError
from lowlp_runtime.kept import KeptFor

_TORCH_TYPES: Final = {
    "uint32": torch.int32,
    "uint16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
}
_SAME_BITS: Final = {torch.uint32: torch.int32, torch.uint16: torch.bfloat16}


@functools.lru_cache(maxsize=4096)
def tensor_types(header: str) -> Mapping[str, torch.dtype]:
    """The tensors that go with a header, in the order in which operators take them, and their types."""
    return {name: _TORCH_TYPES[str(kind)] for name, kind in stored_types(header).items()}


def tensors_of(
    qw: QuantizedTensor, device: Any = None, *, of_experts: bool = False
) -> tuple[dict[str, torch.Tensor], str]:
    """The tensors of weights [N, K], or of experts [E, N, K], in the same memory where that is on `device`, None for
    the CPU; and the header.

    Raises `LowlpTypeError` and `LowlpValueError`.
    """
    if not isinstance(qw, QuantizedTensor):
        raise LowlpTypeError(f"qw: expected a QuantizedTensor, got {type(qw).__name__}; lowlp.quantize makes one")
    if of_experts and len(qw.shape) != 3:
        raise LowlpValueError(f"qw: expected weights of experts [E, N, K], got {list(qw.shape)}")
    if not of_experts and len(qw.shape) != 2:
        raise LowlpValueError(f"qw: expected weights [N, K], got {list(qw.shape)} of experts; take one with qw[e]")
    arrays, header = qw.to_arrays()
    tensors = {name: _as_tensor(arrays[name], kind) for name, kind in tensor_types(header).items()}
    if device is not None:
        tensors = {name: tensor.to(device) for name, tensor in tensors.items()}
    return tensors, header


def empty_tensors(
    codec: Codec | str, shape: tuple[int, ...], activation: object, device: Any, **options: bool
) -> tuple[dict[str, torch.Tensor], str]:
    """Tensors of zeros for weights of a codec, or its text, and shape, on any device, 'meta' too, and the header.

    The other arguments are those of `lowlp.weights.array_shapes.array_shapes`. Raises `LowlpTypeError` for another
    `codec`.
    """
    codec = Codec.parse(codec) if isinstance(codec, str) else codec
    if not isinstance(codec, Codec):
        raise LowlpTypeError(f"codec: expected a Codec or its text, got {type(codec).__name__}")
    shapes, header = array_shapes(codec, shape, activation, **options)
    types = tensor_types(header)
    return {name: torch.zeros(shapes[name].shape, dtype=kind, device=device) for name, kind in types.items()}, header


def in_stored_type(tensor: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """The tensor in the type of a buffer where it has the same bits in another type, else as it is."""
    return tensor.view(kind) if _SAME_BITS.get(tensor.dtype) == kind else tensor


def _as_tensor(array: AnyArray, kind: torch.dtype) -> torch.Tensor:
    # PyTorch warns of memory that may not be written. Modules write only where a state is loaded, and QuantizedTensors
    # that were given away are not used any more. The namespace keeps the array alive.
    data = array.reshape(-1).view(np.uint8)
    interface = {**data.__array_interface__, "data": (data.ctypes.data, False)}
    memory = np.asarray(SimpleNamespace(__array_interface__=interface, owner=data))
    return torch.from_numpy(memory).view(kind).reshape(array.shape)


def host_array(tensor: torch.Tensor, name: str) -> AnyArray:
    """A stored tensor as the array that it is, in the same memory where that is the host's."""
    # An alias: the array must not keep the tensor itself alive, for which it is kept.
    host = tensor.detach().cpu()
    if host.dtype == torch.bfloat16:
        bits: AnyArray = host.view(torch.int16).numpy()
        return bits.view(np.uint16)
    array: AnyArray = host.numpy()
    return array.view(np.uint32) if name == "packed" else array


class _Kept:
    """The weights that tensors hold, with what tells them from others with the same words, as one for all threads."""

    def __init__(self) -> None:
        self.held: tuple[object, QuantizedTensor] | None = None
        self.others: list[torch.Tensor] = []
        self.lock = threading.Lock()

    def drop(self) -> None:
        """Says to every `HeldWeights` that found them that they are gone."""
        self.held, self.others = None, []


_kept: KeptFor[_Kept] = KeptFor(_Kept, _Kept.drop)


def weights_of(tensors: Sequence[torch.Tensor], header: str) -> QuantizedTensor:
    """The weights that these tensors hold, in their order in `tensor_types`; made at the first use, and kept as long as
    the tensor of words lives. On a GPU the words stay there. Raises as `QuantizedTensor.from_arrays`,
    and `LowlpRuntimeError` in the capture of a CUDA graph."""
    kept = _kept.of(tensors[0])
    # With addresses: a tensor may get other memory, shared memory when its module goes to another process or what
    # `data` is set to. An array that is kept would read memory that was given back.
    identity = (header, *map(id, tensors[1:]), *[tensor.data_ptr() for tensor in tensors])
    held = kept.held
    if held is not None and held[0] == identity:
        return held[1]
    with kept.lock:
        # Launches that were made ready belong to one object, so threads must not make two.
        held = kept.held
        if held is None or held[0] != identity:
            if tensors[0].is_cuda and torch.cuda.is_current_stream_capturing():
                raise LowlpRuntimeError(
                    "weights: their first use reads scales on the host, which the capture of a CUDA graph does not "
                    "allow; call the module once before, or use lowlp.torch.warm_up"
                )
            held = kept.held = (identity, _weights(tensors, header))
            # As long as they are there, no other tensors have their identity. Without the words: these are the key.
            kept.others = list(tensors[1:])
        return held[1]


def forget(words: torch.Tensor) -> None:
    """Drops what is kept for a tensor of words: it, or another of its tensors, has other contents now."""
    kept = _kept.of(words)
    with kept.lock:
        kept.drop()


class HeldWeights:
    """The weights that a module's buffers hold, as `weights_of` finds them, for a fraction of its time where the
    buffers are those of the call before.

    names   the buffers, in the order of `tensor_types`
    header  of the weights

    It keeps neither tensors nor weights alive: a module's old buffers go when others take their place. Copies and
    pickles of it know of no buffers yet.
    """

    def __init__(self, names: tuple[str, ...], header: str) -> None:
        self._names, self._header = names, header
        # What is kept for the tensor of words, its identity there, the device, and of each tensor name, identity and
        # address.
        self._found: tuple[_Kept, object, int, list[tuple[str, int, int]]] | None = None

    def __reduce__(self) -> Any:
        return type(self), (self._names, self._header)

    def of(self, buffers: Mapping[str, torch.Tensor], ordinal: int) -> QuantizedTensor | None:
        """The weights, if they are on the device with this number; otherwise None. Raises as `weights_of`."""
        if self._found is not None:
            kept, identity, device, places = self._found
            held = kept.held
            # Tensors with other numbers are others only as long as what is kept keeps those.
            if held is not None and held[0] is identity and device == ordinal:
                for name, number, address in places:
                    tensor = buffers[name]
                    if id(tensor) != number or tensor.data_ptr() != address:
                        break
                else:
                    return held[1]
        return self._look_up([buffers[name] for name in self._names], ordinal)

    def _look_up(self, tensors: list[torch.Tensor], ordinal: int) -> QuantizedTensor | None:
        device = tensors[0].get_device()
        if device != ordinal:
            return None
        weights = weights_of(tensors, self._header)
        kept = _kept.of(tensors[0])
        held = kept.held
        if held is not None and held[1] is weights:
            places = [(name, id(tensor), tensor.data_ptr()) for name, tensor in zip(self._names, tensors, strict=True)]
            self._found = kept, held[0], device, places
        return weights


def _weights(tensors: Sequence[torch.Tensor], header: str) -> QuantizedTensor:
    words = tensors[0]
    names = list(tensor_types(header))
    if words.is_meta:
        raise LowlpValueError(
            "weights: are on the meta device, which holds no numbers; load a state first, "
            "load_state_dict(state, assign=True) for example"
        )
    if words.device.type == "cpu":
        arrays = {name: host_array(tensor, name) for name, tensor in zip(names, tensors, strict=True)}
        return QuantizedTensor.from_arrays(arrays, header)
    others = {name: host_array(tensor, name) for name, tensor in zip(names[1:], tensors[1:], strict=True)}
    return ResidentTensor.of_tensor(words.detach(), others, header)
