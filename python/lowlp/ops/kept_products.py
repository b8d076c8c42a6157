"""Products on a GPU that were made ready once: what later calls of the same kind need, for as long as the weights live.

A kind is all that decides a kernel, its numbers and its result: types, shapes and the device of tensors, and options.
The first call of a kind finds the kernel, uploads what it takes of the weights and binds what stays; later ones
allocate the result and launch with their own addresses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple

from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.stream import current_torch_stream

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


class KeptProducts:
    """Of one tensor of weights: products by kind, and what kernels take of it, on devices."""

    def __init__(self) -> None:
        self._products: dict[Hashable, BoundProduct] = {}
        self._tensors: dict[Hashable, Any] = {}

    def tensor(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """A tensor on a device, made at the first use."""
        if key not in self._tensors:
            self._tensors[key] = make()
        return self._tensors[key]

    def run(
        self, key: Hashable, codes: Any, given: Callable[[BoundProduct], Mapping[str, Any]],
        bind: Callable[[KeptProducts], BoundProduct],
    ) -> Any:  # fmt: skip
        """The result of a call on PyTorch's current stream.

        key    of its kind
        codes  of x, a CUDA tensor, which is 'x' to users
        given  the tensors of the call by role, contiguous
        bind   makes a product ready that is called for the first time
        """
        ordinal = codes.get_device()
        current = current_torch_stream(ordinal)
        found = self._products.get(key)
        if found is not None:
            return _launched(found, given, ordinal, current)
        if is_captured(current):
            raise first_call_in_capture("x", math.prod(codes.shape[:-1]), codes.dtype)
        torch: Any = sys.modules["torch"]
        with torch.cuda.device(codes.device):
            found = bind(self)
        if len(self._products) >= _MOST_CALLS:
            self._products.clear()
        self._products[key] = found
        # What is in front on the stream may have written the packed weights.
        with no_dependent_launch():
            return _launched(found, given, ordinal, current)


kept_products: Final[KeptFor[KeptProducts]] = KeptFor(KeptProducts)


def _launched(
    product: BoundProduct, given: Callable[[BoundProduct], Mapping[str, Any]], ordinal: int, stream: int
) -> Any:
    y = product.allocate()
    if product.launch is not None:
        # They live until the launch is on the stream, after which PyTorch gives their memory to later work alone.
        tensors = {**given(product), "y": y}
        product.launch.run([tensors[role].data_ptr() for role in product.roles], ordinal, stream)
    return y
