"""Products on a GPU that were made ready once: what later calls of the same kind need, for as long as the weights live.

A kind is all that decides a kernel, its numbers and its result: types, shapes and the device of tensors, and options.
The first call of a kind finds the kernel, uploads what it takes of the weights and binds what stays; later ones
allocate the result and launch with their own addresses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from lowlp.activations.quantized import QuantizedActivations
from lowlp.kernels.linear.measured import added_schedules
from lowlp.kernels.linear.operand_list import WIDE_BYTES
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import is_allowed, no_dependent_launch
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.stream import current_torch_stream

from .kept_calls import kind_of
from .linear_launch import first_call_in_capture

_MOST_CALLS: Final = 256


class BoundProduct(NamedTuple):
    """A kind of call.

    launch    the kernel with all that stays; None where there is nothing to compute
    allocate  makes the result
    roles     of the tensors of a call whose addresses the launch takes, in order; among them 'y'
    kept      tensors whose addresses stay
    """

    launch: BoundLaunch | None
    allocate: Callable[[], Any]
    roles: tuple[str, ...] = ()
    kept: tuple[Any, ...] = ()


def call_of(x: QuantizedActivations, bias: Any, residual: Any, *options: Any) -> Hashable | None:
    """What decides a call with x on a GPU, arguments that were not checked yet among it: calls that are alike need no
    further check. None for x elsewhere, and for arguments that no call has."""
    codes = x.codes
    if not getattr(codes, "is_cuda", False):
        return None
    try:
        places = codes.data_ptr() | (0 if residual is None else residual.data_ptr())
        kinds = (kind_of(codes), kind_of(bias), kind_of(residual))
        key = (x.dtype.name, x.is_ternary, x.group_size, x.zeros is None, kinds, places % WIDE_BYTES, options)
        hash(key)
    except (AttributeError, TypeError):
        return None
    return (key, is_allowed(), added_schedules())


def tensors_of(roles: Iterable[str], x: QuantizedActivations, codes: Any, bias: Any, residual: Any) -> dict[str, Any]:
    """The tensors of a call by role, contiguous; `codes` are those of x in the order of the weights."""
    taken: dict[str, Any] = {"x": codes, "x_scales": x.scales, "x_zeros": x.zeros, "bias": bias, "residual": residual}
    if "planes" in roles:
        taken["planes"] = _whole_chunks(x)
    if "x_sums" in roles:
        taken["x_sums"] = x.sums
    return {role: taken[role].contiguous() for role in roles if role != "y"}


def _whole_chunks(x: QuantizedActivations) -> Any:
    """The planes, words of a row in whole chunks of 16 bytes, of which the last may hold zeros."""
    planes = x.planes
    words = planes.shape[-1]
    whole = -(-words * 4 // WIDE_BYTES) * WIDE_BYTES // 4
    if words == whole and planes.data_ptr() % WIDE_BYTES == 0:
        return planes
    torch: Any = sys.modules["torch"]
    signed = torch.zeros((*planes.shape[:-1], whole), dtype=torch.int32, device=planes.device)
    signed[..., :words] = planes.view(torch.int32)
    return signed.view(torch.uint32)


class KeptProducts:
    """Of one tensor of weights: products by kind, and what kernels take of it, on devices."""

    def __init__(self) -> None:
        self._products: dict[Hashable, BoundProduct] = {}
        self._by_call: dict[Hashable, BoundProduct] = {}
        self._tensors: dict[Hashable, Any] = {}

    def repeated(self, call: Hashable | None, x: QuantizedActivations, bias: Any, residual: Any) -> Any:
        """The result of a call like one before, of which `run` was told; None where there was none."""
        found = self._by_call.get(call)
        if found is None:
            return None
        ordinal = x.codes.get_device()
        tensors = tensors_of(found.roles, x, x.codes, bias, residual) if found.launch else {}
        return _launched(found, tensors, ordinal, current_torch_stream(ordinal))

    def tensor(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A tensor on a device, made at the first use."""
        if key not in self._tensors:
            self._tensors[key] = make()
        return self._tensors[key]

    def run(
        self, key: Hashable, codes: Any, given: Callable[[BoundProduct], Mapping[str, Any]],
        bind: Callable[[KeptProducts], BoundProduct], call: Hashable | None,
    ) -> Any:  # fmt: skip
        """The result of a call on PyTorch's current stream.

        key    of its kind
        codes  of x, a CUDA tensor, which is 'x' to users
        given  the tensors of the call by role, contiguous: as `tensors_of` finds them, where there is a `call`
        bind   makes a product ready that is called for the first time
        call   as `call_of` has it, by which the next one is known; None: the next one is checked again
        """
        ordinal = codes.get_device()
        current = current_torch_stream(ordinal)
        found, is_new = self._products.get(key), False
        if found is None:
            if is_captured(current):
                raise first_call_in_capture("x", math.prod(codes.shape[:-1]), codes.dtype)
            torch: Any = sys.modules["torch"]
            with torch.cuda.device(codes.device):
                found, is_new = bind(self), True
            _keep(self._products, key, found)
        if call is not None:
            _keep(self._by_call, call, found)
        tensors = given(found) if found.launch else {}
        if not is_new:
            return _launched(found, tensors, ordinal, current)
        # What is in front on the stream may have written the packed weights.
        with no_dependent_launch():
            return _launched(found, tensors, ordinal, current)


def _keep(products: dict[Hashable, BoundProduct], key: Hashable, product: BoundProduct) -> None:
    if len(products) >= _MOST_CALLS:
        products.clear()
    products[key] = product


kept_products: Final[KeptFor[KeptProducts]] = KeptFor(KeptProducts)


def _launched(product: BoundProduct, tensors: Mapping[str, Any], ordinal: int, stream: int) -> Any:
    y = product.allocate()
    if product.launch is not None:
        # They live until the launch is on the stream, after which PyTorch gives their memory to later work alone.
        addresses = [(y if role == "y" else tensors[role]).data_ptr() for role in product.roles]
        product.launch.run(addresses, ordinal, stream)
    return y
