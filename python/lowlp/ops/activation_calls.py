"""Calls on a GPU that came before: what such a call needs beside the addresses of its arguments, so that a later one of
the same kind is one lookup, a few allocations and a launch."""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

from lowlp.activations.kinds import ActivationKind
from lowlp.activations.quantized import QuantizedActivations
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import is_allowed
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.stream import current_torch_stream

from .activation_launch import Launch, bound_launch, planes_of_codes

_PARTS: Final = ("codes", "scales", "zeros", "sums", "planes")
_MAX_CALLS: Final = 1024
_WIDE_BYTES: Final = 16


class BoundCall(NamedTuple):
    """A kind of call.

    kind, group_size  of the activations that it returns
    launch   the kernel with its numbers; it takes the addresses of the tensors given, of those kept, of the results
    kept     tensors that stay, after those given
    results  name, shape and type of each tensor that it makes, in the order of the kernel
    """

    kind: ActivationKind
    group_size: int | None
    launch: BoundLaunch
    kept: tuple[Any, ...]
    results: tuple[tuple[str, tuple[int, ...], Any], ...]


_calls: dict[Any, BoundCall] = {}


def call_key(given: tuple[Any, ...], *options: Any) -> tuple[Any, ...] | None:
    """What a call with these CUDA tensors and options is known by: all that decides its kernel, and its results but for
    what the tensors hold. None where an option is an array, or where something else than names and numbers."""
    if not all(option is None or isinstance(option, str | int | float) for option in options):
        return None
    places = 0
    kinds = []
    for tensor in given:
        places |= tensor.data_ptr()
        kinds.append((tensor.dtype, tensor.shape, tensor.stride(), tensor.get_device()))
    return (*kinds, places % _WIDE_BYTES, is_allowed(), *options)


def repeated(key: tuple[Any, ...] | None, given: tuple[Any, ...]) -> tuple[QuantizedActivations, Any] | None:
    """What a call of a kind that came before returns: the activations, and the sums with a residual or None. None where
    there was none."""
    call = _calls.get(key)
    if call is None:
        return None
    torch: Any = sys.modules["torch"]
    device = given[0].device
    made = {name: torch.empty(shape, dtype=dtype, device=device) for name, shape, dtype in call.results}
    addresses = [tensor.data_ptr() for tensor in (*given, *call.kept, *made.values())]
    call.launch.run(addresses, device.index, current_torch_stream(device.index))
    parts = [made.get(name) for name in _PARTS]
    codes, scales, zeros, sums, planes = parts
    activations = QuantizedActivations._of(
        call.kind, codes, scales, zeros, sums, call.group_size, planes, planes_of_codes
    )
    return activations, made.get("residual_out")


def remember(
    key: tuple[Any, ...] | None,
    given: tuple[Any, ...],
    launches: list[Launch],
    made: QuantizedActivations,
    residual_out: Any = None,
) -> None:
    """Keeps a kind of call, if one launch with the tensors where they are has done all of it."""
    if key is None or len(launches) != 1:
        return
    (launch,) = launches
    shapes = {"codes": made.codes, "scales": made.scales, "zeros": made.zeros, "residual_out": residual_out}
    # Asking the activations would compute what was not made.
    shapes |= {"sums": made._sums, "planes": made._planes}
    arrays = list(launch.arrays.values())
    if [tensor.data_ptr() for tensor in given] != [array.data_ptr() for array in arrays[: len(given)]]:
        return
    others = list(launch.arrays.items())[len(given) :]
    kept = [array for name, array in others if name not in shapes]
    if kept and is_captured(current_torch_stream(given[0].get_device())):
        return  # what they hold is written when the graph runs
    results = [(name, tuple(shapes[name].shape), array.dtype) for name, array in others if name in shapes]
    if len(_calls) >= _MAX_CALLS:
        _calls.clear()
    _calls[key] = BoundCall(made._kind, made.group_size, bound_launch(launch), tuple(kept), tuple(results))
