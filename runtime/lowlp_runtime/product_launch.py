"""`y = kernel(x, qw)` for a kernel of `linear`, without the compiler: what a saved kernel is launched by.

Operands are made of the weights and uploaded at their first use on a device, and kept as long as the weights live, for
all kernels that read them alike. What follows from the shapes of a call is kept too, so that later calls allocate the
result and launch.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.launcher import launcher_of
from lowlp_runtime.operand_arrays import host_operands
from lowlp_runtime.operand_tensors import torch_type, upload
from lowlp_runtime.ordered_rows import OrderedRows, row_stride
from lowlp_runtime.permutations import check_permutation
from lowlp_runtime.product import Product
from lowlp_runtime.product_arguments import check_part, check_quantised, check_rows, check_weights, check_x, rows_of
from lowlp_runtime.stored_header import PERMUTATION_TYPE
from lowlp_runtime.stored_weights import StoredWeights
from lowlp_runtime.stream import current_torch_stream, other_torch_stream
from lowlp_runtime.vector_order import padded_columns

# What of a kernel's operands is another one in every call, in the order in which calls hand over the addresses.
_OF_CALL = ("x", "bias", "residual", "x_scales", "x_sums", "y")
# The alignment that kernels may ask for.
_WIDE_BYTES = 16
# Kinds of calls that are kept for a tensor; they differ by M above all.
_MAX_CALLS = 256
# Sets of scales and the like that are kept for the same packed words: one, but where callers make new views of them.
_MAX_PAIRS = 8


class _Launch(NamedTuple):
    """The kernel with all that stays, and what makes its x of that of the call, where it does not take that itself."""

    bound: BoundLaunch
    ordered: OrderedRows | None

    def run(self, addresses: list[int], ordinal: int, stream: int) -> None:
        """Puts one run on a stream; the first address is that of the rows of x."""
        if self.ordered is None:
            self.bound.run(addresses, ordinal, stream)
            return
        rows = self.ordered.make(addresses[0], ordinal, stream)
        self.bound.run((rows.data_ptr(), *addresses[1:]), ordinal, stream)


class _Call(NamedTuple):
    """What a call needs beside its addresses: the launch, and of what shape and type the result is."""

    launch: _Launch
    shape: tuple[int, ...]
    dtype: Any


class _KeptForWeights:
    """Of one tensor: operands by what they are and their device, bound launches by their numbers, and calls that
    copy nothing by their arguments' kinds; and what keeps the identities in keys alive."""

    def __init__(self) -> None:
        self.operands: dict[object, Any] = {}
        self.launches: dict[object, _Launch] = {}
        self.calls: dict[object, _Call] = {}
        self.alive: dict[object, object] = {}
        self.lock = threading.Lock()

    def forget(self) -> None:
        """Drops all of it."""
        with self.lock:
            for held in (self.operands, self.launches, self.calls, self.alive):
                held.clear()


_kept: KeptFor[_KeptForWeights] = KeptFor(_KeptForWeights)


def launch_product(
    kernel: KernelBinary, x: Any, qw: object, *, bias: Any = None, residual: Any = None, stream: object = None
) -> Any:
    """y = epilogue(x @ w^T + bias) + residual, as `lowlp.linear` computes it, by this kernel alone.

    kernel    of `linear`, with code for the GPU of x
    x         [..., K], a CUDA tensor of the kernel's activation type, any row stride. Rows that the kernel cannot read
              where they lie, for their alignment, are copied. Of a kernel for quantised x what has `codes`, `scales`
              and `sums`, as `lowlp.QuantizedActivations`, without zero points
    qw        weights [N, K] that the kernel can read: a `QuantizedTensor`, or the pair (arrays, header) of its
              `to_arrays()`. Uploaded at their first use on a device; do not change them afterwards
    bias      [N], exactly where the kernel takes one, of its type and on the device of x
    residual  of the shape of the result, exactly where the kernel takes one, any row stride
    stream    None: PyTorch's current one

    Returns [..., columns of y] on the device of x. Raises `LowlpTypeError` and `LowlpValueError`, which name the
    argument and what the kernel takes, and `DeviceError`.
    """
    kept, identity = _kept_of(qw)
    codes, scales, sums = check_quantised(kernel, x)
    parts = (codes, bias, residual, scales, sums)
    kind = _kind_of(kernel, parts, identity)
    call = kept.calls.get(kind) if stream is None else None
    torch: Any = sys.modules.get("torch")
    if call is not None:
        y = torch.empty(call.shape, dtype=call.dtype, device=codes.device)
        ordinal = codes.get_device()
        addresses = [part.data_ptr() for part in (*parts, y) if part is not None]
        call.launch.run(addresses, ordinal, current_torch_stream(ordinal))
        return y
    return _checked_launch(kernel, x, parts, qw, kept, identity, kind, stream)


def _checked_launch(
    kernel: KernelBinary,
    given_x: Any,
    parts: tuple[Any, ...],
    qw: object,
    kept: _KeptForWeights,
    identity: object,
    kind: object,
    stream: object,
) -> Any:
    """As `launch_product`, for a call of a kind that is not kept."""
    torch: Any = sys.modules.get("torch")
    x, bias, residual, scales, sums = parts
    product = kernel.description.require_product()
    check_x(kernel, product, x)
    ordinal = x.get_device()
    if other := other_torch_stream(stream, x.device):
        with other:
            return launch_product(kernel, given_x, qw, bias=bias, residual=residual)
    current = current_torch_stream(ordinal)
    m = math.prod(x.shape[:-1])
    check_rows(kernel, product, m)
    result = product.required("y")
    shape = (*x.shape[:-1], result.shape[-1])
    bias = check_part(kernel, product, "bias", bias, x, (product.n,))
    residual = check_part(kernel, product, "residual", residual, x, shape)
    y = torch.empty(shape, dtype=torch_type(result.element), device=x.device)
    if m == 0:
        return y
    rows, stride = rows_of(kernel, product, "x", x)
    added, added_stride = (None, None) if residual is None else rows_of(kernel, product, "residual", residual)
    key = (kernel.content_hash, ordinal, m, stride, added_stride, identity)
    bound = kept.launches.get(key)
    given = {"x": rows, "bias": bias, "residual": added, "x_scales": scales, "x_sums": sums, "y": y}
    addresses = [given[role].data_ptr() for role in _OF_CALL if given[role] is not None]
    if bound is not None:
        bound.run(addresses, ordinal, current)
        if addresses[:-1] == [part.data_ptr() for part in parts if part is not None]:
            if len(kept.calls) >= _MAX_CALLS:
                kept.calls.clear()
            kept.calls[kind] = _Call(bound, shape, y.dtype)
        return y
    with torch.cuda.device(x.device):
        operands = _operands_on(x.device, kernel, product, qw, kept, identity)
        permutation = _permutation_on(x.device, kernel, product, qw, kept, identity)
    ordered = None
    if kernel.before is not None:
        launcher = launcher_of(kernel.before)
        columns = padded_columns(product.k) if product.vector_order else product.k
        row_shape = (m, row_stride(columns))
        allocate = functools.partial(torch.empty, row_shape, dtype=x.dtype, device=x.device)
        ordered = OrderedRows(launcher, permutation, columns, m, stride, multiprocessors(ordinal), allocate)
        stride = row_stride(columns)
    numbers = product.launch_numbers(m, stride, added_stride, multiprocessors(ordinal))
    bound = _Launch(_bound(kernel, product, operands, numbers, ordinal), ordered)
    # What is in front on the stream may have written the weights.
    with no_dependent_launch():
        bound.run(addresses, ordinal, current)
    if len(kept.launches) >= _MAX_CALLS:
        kept.launches.clear()
    kept.launches[key] = bound
    return y


def _kind_of(kernel: KernelBinary, parts: tuple[Any, ...], identity: object) -> object:
    """What decides a call but for addresses; of arguments that are no tensors, nothing that a call is kept for."""
    try:
        kinds = [
            part
            if part is None
            else (part.dtype, part.get_device(), part.shape, part.stride(), part.data_ptr() % _WIDE_BYTES == 0)
            for part in parts
        ]
    except AttributeError:
        return None
    return kernel.content_hash, identity, *kinds


def _kept_of(qw: object) -> tuple[_KeptForWeights, object]:
    """What is kept for weights, and what tells them from others with the same packed words."""
    if callable(getattr(qw, "to_arrays", None)):
        return _kept.of(qw), None
    if not isinstance(qw, tuple | list) or len(qw) != 2 or not isinstance(qw[0], Mapping) or "packed" not in qw[0]:
        StoredWeights.of(qw)  # says what is wrong
    pair: Any = qw
    held, header = pair
    arrays = [array for name, array in held.items() if name != "packed"]
    kept = _kept.of(held["packed"])
    identity = (header, *map(id, arrays))
    if identity not in kept.alive:
        if len(kept.alive) >= _MAX_PAIRS:
            kept.forget()
        # As long as they are there, no other array has their identity.
        kept.alive[identity] = arrays
    return kept, identity


def _operands_on(
    device: Any, kernel: KernelBinary, product: Product, qw: Any, kept: _KeptForWeights, identity: object
) -> dict[str, Any]:
    """What the kernel takes of the weights, by name: tensors on `device`, and numbers. Checked, and uploaded where no
    other kernel did it."""
    weights = StoredWeights.of(qw)
    check_weights(kernel, product, weights)
    operands = product.of_source("weights")
    with kept.lock:
        missing = [operand for operand in operands if (identity, device, operand) not in kept.operands]
        if missing:
            arrays = {name: weights.read(name) for name in weights.arrays}
            if product.required("packed").transform == "apart" and hasattr(qw, "packed_apart"):
                arrays["packed"] = qw.packed_apart(product.family, 2)
            made: dict[str, Any] = dict(host_operands(operands, arrays))
            for operand in missing:
                part = made[operand.name]
                uploaded = upload(part, operand.element, device) if operand.is_array else part
                kept.operands[identity, device, operand] = uploaded
        return {operand.name: kept.operands[identity, device, operand] for operand in operands}


def _permutation_on(
    device: Any, kernel: KernelBinary, product: Product, qw: Any, kept: _KeptForWeights, identity: object
) -> Any:
    """The order of the columns of packed weights, a tensor on `device`, checked at its upload; None where no kernel
    before the product takes it."""
    if kernel.before is None or product.vector_order:
        return None
    key = (identity, device, "permutation")
    with kept.lock:
        if key not in kept.operands:
            weights = StoredWeights.of(qw)
            order: Any = weights.read("permutation")
            check_permutation(order, product.k, "qw: permutation")
            kept.operands[key] = upload(order, PERMUTATION_TYPE, device)
        return kept.operands[key]


def _bound(
    kernel: KernelBinary, product: Product, operands: Mapping[str, Any], numbers: Mapping[str, int], ordinal: int
) -> BoundLaunch:
    launcher = launcher_of(kernel)
    values: dict[str, int | float] = {name: launcher.read(name, part) for name, part in operands.items()}
    order = [operand.name for operand in map(product.operand, _OF_CALL) if operand]
    return launcher.bind({**values, **product.by_name(numbers)}, order, ordinal)
