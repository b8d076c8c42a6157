"""`lowlp.linear` on CUDA tensors.

The first call for a device, types, shapes, row strides, an alignment and measured schedules finds the kernel, uploads
the weights and keeps both as long as the weights live, as a `_BoundCall`. Later calls compare what it was made
for, allocate the result, and launch with the addresses of that call.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

from lowlp.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import ordered_within, schedule_for
from lowlp.kernels.linear.codebooks.choosing import begins_early
from lowlp.kernels.linear.codebooks.entries import is_worth_spreading
from lowlp.kernels.linear.gating import has_room_apart, takes_less_apart
from lowlp.kernels.linear.measured import added_schedules
from lowlp.kernels.linear.operand_list import (
    WIDE_BYTES,
    operands_as_meant,
    operands_of_weights,
    product_of,
    vector_order_of,
)
from lowlp.kernels.linear.operands import (
    for_weights,
    form_of_operands,
    host_operands,
    matrix_shape,
    slabs_of,
    spec_for,
    spec_of_operands,
)
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.slab_estimates import slabs_take_less
from lowlp.kernels.linear.spec import ACTIVATIONS, GATED, LinearSpec
from lowlp.schedules.device import Device, device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import is_allowed, no_dependent_launch
from lowlp_runtime.device import device_name, multiprocessors
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.kept import KeptFor
from lowlp_runtime.operand_tensors import upload
from lowlp_runtime.operands import Operand
from lowlp_runtime.ordered_rows import OrderedRows, row_stride
from lowlp_runtime.stored_header import PERMUTATION_TYPE
from lowlp_runtime.stream import current_torch_stream, other_torch_stream
from lowlp_runtime.vector_order import padded_columns

from .graph_breaks import outside_of_graphs
from .linear_kernels import (
    gpu_gating_kernel,
    gpu_kernel,
    gpu_ordering_kernel,
    has_gpu_gating_kernel,
    has_gpu_kernel,
    has_gpu_ordering_kernel,
)
from .slab_launch import Slabs, bound_slabs, has_slab_kernel, sums_are_wide

_ALIGN_ELEMENTS = 8
# What of a kernel's operands is another one in every call, in the order in which calls hand over the addresses.
_OF_CALL = ("x", "bias", "residual", "y")


class _Gating(NamedTuple):
    """What makes y of gate and up that are multiplied apart (`kernels.linear.gating`).

    launch    the kernel with all that it takes but the addresses of both products and of y
    allocate  makes room for both products
    """

    launch: BoundLaunch
    allocate: Callable[[], Any]


class _BoundCall(NamedTuple):
    """What a call needs beside its arguments.

    launch    the kernel with all that it takes but the addresses of x, bias, residual and result; None without rows,
              and with slabs
    allocate  makes the result
    ordered   makes of x what the kernel takes in its place, for weights with a permutation, and by warpgroups those of
              codebooks whose vectors have more than two weights; None: x itself
    tensors   the operands that are made of the weights, by name, which it keeps alive
    gating    what follows where `launch` makes gate and up apart; None: `launch` makes the result
    slabs     what multiplies by decoded weights in place of `launch`; None: `launch` does
    """

    launch: BoundLaunch | None
    allocate: Callable[[], Any]
    ordered: OrderedRows | None
    tensors: dict[str, Any]
    gating: _Gating | None = None
    slabs: Slabs | None = None

    def run(self, rows: Any, added: tuple[int, ...], y: Any, ordinal: int, stream: int) -> None:
        """Puts it on PyTorch's current stream: y of the rows of x, and of bias and residual at their addresses."""
        if self.ordered is not None:
            rows = self.ordered.make(rows.data_ptr(), ordinal, stream)
        made = y if self.gating is None else self.gating.allocate()
        if self.slabs is not None:
            self.slabs.run(rows, made, ordinal, stream)
        else:
            assert self.launch is not None
            self.launch.run((rows.data_ptr(), *added, made.data_ptr()), ordinal, stream)
        if self.gating is not None:
            self.gating.launch.run((made.data_ptr(), y.data_ptr()), ordinal, stream)


class _KeptForWeights:
    """Of one tensor: the keys of its bound calls, and its operands on devices, by device and form."""

    def __init__(self) -> None:
        self.keys: list[object] = []
        self.operands: dict[str, dict[Operand | str, Any]] = {}
        self.lock = threading.Lock()

    def drop_calls(self) -> None:
        """Forgets the bound calls."""
        while self.keys:
            _calls.pop(self.keys.pop(), None)


# Bound calls by what they were made for, the identity of the weights first: one lookup is all that a later call
# can afford.
_calls: dict[object, _BoundCall] = {}
_kept: KeptFor[_KeptForWeights] = KeptFor(_KeptForWeights, _KeptForWeights.drop_calls)
# Kinds of calls that are kept for a tensor; they differ by M above all.
_MAX_CALLS = 256


@outside_of_graphs
def linear_on_gpu(
    x: Any,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: str | None,
    stream: object,
    batch_invariant: int = False,
) -> Any:
    """`lowlp.linear` for a CUDA tensor x; `out_dtype` is a name or None, `epilogue` a name or ''."""
    ordinal = x.get_device()
    if stream is not None and (other := other_torch_stream(stream, x.device)):
        with other:
            return linear_on_gpu(x, qw, bias, epilogue, residual, out_dtype, None, batch_invariant)
    current = current_torch_stream(ordinal)
    # Rows that are copies live until the launch.
    rows, stride = (x, None) if x.is_contiguous() else _rows_of(x)
    address = places = rows.data_ptr()
    added: tuple[int, ...] = ()
    bias_kind = residual_kind = None
    if bias is not None:
        try:
            bias_kind = (bias.dtype, bias.get_device(), bias.shape)
        except AttributeError:
            # Its type and device are looked at once for each kind.
            raise _wrong_part("bias", bias, x) from None
        bias = bias.contiguous()
        added = (bias.data_ptr(),)
    if residual is not None:
        if not is_torch_tensor(residual):
            raise _wrong_part("residual", residual, x)
        residual_rows, residual_stride = (residual, None) if residual.is_contiguous() else _rows_of(residual)
        residual_kind = (residual.dtype, residual.get_device(), residual.shape, residual_stride)
        residual_address = residual_rows.data_ptr()
        added = (*added, residual_address)
        places |= residual_address
    early = is_allowed()
    aligned = places % WIDE_BYTES == 0
    options = (out_dtype, bias_kind, epilogue, residual_kind, aligned, batch_invariant, early, added_schedules())
    key = (id(qw), ordinal, x.dtype, x.shape, stride, options)
    kept = _calls.get(key)
    if kept is not None:
        y = kept.allocate()
        if kept.launch is None:
            if kept.slabs is not None:
                kept.run(rows, added, y, ordinal, current)
            return y
        if kept.ordered is None and kept.gating is None:
            # Almost all calls; what they cost the host counts.
            kept.launch.run((address, *added, y.data_ptr()), ordinal, current)
        else:
            kept.run(rows, added, y, ordinal, current)
        return y
    strides = (stride,) if residual is None else (stride, residual_stride)
    # What is made at a first call waits for the device, which a capture does not allow.
    captured = is_captured(current)

    def bind(x: Any) -> _BoundCall:
        return _bind(qw, x, bias, epilogue, residual, out_dtype, strides, aligned, batch_invariant, early, captured)

    k, is_first = qw.shape[-1], True
    made: dict[object, _BoundCall] = {}
    if residual is not None or len(x.shape) == 2 or x.shape[-1:] != (k,):
        bound = bind(x)
    else:
        # Calls made ready for some rows serve x of every rank.
        flat = x.reshape(-1, k) if rows is x else rows
        of_rows = (*key[:3], flat.shape, *key[4:])
        bound_rows = _calls.get(of_rows)
        is_first = bound_rows is None
        if bound_rows is None:
            bound_rows = made[of_rows] = bind(flat)
        out = x.dtype if out_dtype is None else _types()[out_dtype]
        shape = (*x.shape[:-1], columns_of_y(qw, epilogue))
        bound = bound_rows._replace(allocate=allocator(shape, out, x.device))
    y = bound.allocate()
    if bound.launch is not None or bound.slabs is not None:
        # What is in front on the stream may have written the packed weights.
        with no_dependent_launch() if is_first else nullcontext():
            bound.run(rows, added, y, ordinal, current)
    made[key] = bound
    _keep(qw, made)
    return y


def _keep(qw: QuantizedTensor, made: dict[object, _BoundCall]) -> None:
    of_weights = _kept.of(qw)
    if len(of_weights.keys) >= _MAX_CALLS:
        of_weights.drop_calls()
    of_weights.keys.extend(made)
    _calls.update(made)


def _rows_of(tensor: Any) -> tuple[Any, int | None]:
    """A tensor that is not contiguous as rows, a copy where no one stride reaches them, and that stride in elements;
    None: the rows lie one after the other."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    stride, step = rows.stride()
    if step != 1 or rows.is_contiguous():
        return rows.contiguous(), None
    return rows, stride


def first_call_in_capture(argument: str, rows: int, dtype: object) -> LowlpRuntimeError:
    """The error of a call that the capture of a CUDA graph does not allow."""
    return LowlpRuntimeError(
        f"{argument}: a first call with {rows} rows of {dtype} compiles or uploads, which the capture of a CUDA graph "
        "does not allow; make one such call before, or use lowlp.torch.warm_up"
    )


def columns_of_y(qw: QuantizedTensor, epilogue: str) -> int:
    """Columns of the result: N, or half of it with gate and up."""
    return qw.shape[-2] // (2 if epilogue in GATED else 1)


def check_shapes(
    x_shape: tuple[int, ...],
    bias_shape: tuple[int, ...] | None,
    residual_shape: tuple[int, ...] | None,
    qw: QuantizedTensor,
    epilogue: str,
) -> None:
    """Raises `LowlpValueError` unless x [..., K], the bias [N] and the residual [..., columns of y] fit the weights,
    and these the epilogue."""
    n, k = matrix_shape(qw)
    if not x_shape or x_shape[-1] != k:
        raise LowlpValueError(f"x: the last dimension must be K = {k}, got shape {tuple(x_shape)}")
    if epilogue in GATED and n % 2:
        raise LowlpValueError(f"epilogue: {epilogue} needs an even N, rows of gate and up, got weights of N = {n}")
    if bias_shape is not None and tuple(bias_shape) != (n,):
        raise LowlpValueError(f"bias: must have shape ({n},), got {tuple(bias_shape)}")
    wanted = (*x_shape[:-1], columns_of_y(qw, epilogue))
    if residual_shape is not None and tuple(residual_shape) != wanted:
        raise LowlpValueError(
            f"residual: must have the shape of the result, {tuple(wanted)}, got {tuple(residual_shape)}"
        )


def device_operands(
    qw: QuantizedTensor, activation: str, device: Any, epilogue: str = "", schedule: Schedule | None = None
) -> dict[str, Any]:
    """As `host_operands`, with tensors of PyTorch on `device` in place of arrays: uploaded at the first use, and kept
    as long as `qw` lives, for all kernels that take them alike."""
    kept = _kept.of(qw)
    spec = spec_of_operands(qw, activation, epilogue)
    operands = operands_of_weights(spec, schedule)
    with kept.lock:
        held = kept.operands.setdefault(f"{device} {form_of_operands(spec)}", {})
        missing = [operand for operand in operands if operand not in held]
        resident = qw.words_on(device, spec.family)
        for operand in missing:
            if operand.role == "packed" and not operand.transform and resident is not None:
                held[operand] = resident
        missing = [operand for operand in missing if operand not in held]
        if missing:
            parts = host_operands(qw, activation, epilogue, schedule, missing)
            for operand in missing:
                part = parts[operand.name]
                held[operand] = upload(part, operand.element, device) if operand.is_array else part
        return {operand.name: held[operand] for operand in operands}


def _wrong_part(argument: str, part: Any, x: Any) -> LowlpTypeError:
    remedy = f"; pass {argument}.float()" if str(getattr(part, "dtype", "")) == "torch.float64" else ""
    return LowlpTypeError(
        f"{argument}: expected a tensor of float16, bfloat16 or float32 on {x.device}, got {part!r:.80}{remedy}"
    )


def _bind(
    qw: QuantizedTensor,
    x: Any,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: str | None,
    given_strides: tuple[int | None, ...],
    aligned: bool,
    batch_invariant: int,
    early: bool,
    captured: bool = False,
) -> _BoundCall:
    """Checks what the key of a kept call holds, and finds what such calls need.

    given_strides  of the rows of x, and of the residual, as `_rows_of` says them
    aligned        whether both begin where wide loads may
    captured       the call takes part in the capture of a CUDA graph: nothing is compiled and uploaded
    """
    torch: Any = sys.modules["torch"]
    ordinal = x.get_device()
    types = _types()
    names = {dtype: name for name, dtype in types.items()}
    activation = names.get(x.dtype)
    if activation not in ACTIVATIONS:
        raise LowlpTypeError(f"x: expected float16 or bfloat16, got {x.dtype}")
    kinds = []
    for argument, part in (("bias", bias), ("residual", residual)):
        if part is not None and (part.dtype not in names or part.device != x.device):
            raise _wrong_part(argument, part, x)
        kinds.append("" if part is None else names[part.dtype])
    check_shapes(x.shape, getattr(bias, "shape", None), getattr(residual, "shape", None), qw, epilogue)
    if is_worth_spreading(qw.codec.vectors, *qw.shape) and qw.words_on(x.device, activation) is None:
        if captured and not qw.is_spread:
            raise first_call_in_capture("x", math.prod(x.shape[:-1]), x.dtype)
        qw = qw.spread()
    columns = (qw.shape[1], columns_of_y(qw, epilogue))
    strides = tuple(width if stride is None else stride for stride, width in zip(given_strides, columns, strict=False))
    aligned = aligned and not any(stride % _ALIGN_ELEMENTS for stride in strides)
    m = math.prod(x.shape[:-1])
    x_stride, x_aligned = strides[0], aligned
    if qw.permutation is not None:
        # The kernel gets rows that are made for it; whether the residual is aligned only the key says, with x.
        x_stride, aligned = row_stride(qw.shape[1]), aligned or residual is None
    out = out_dtype or activation
    allocate = allocator((*x.shape[:-1], columns[1]), types[out], x.device)
    spec = spec_for(qw, activation, out, kinds[0], aligned, epilogue, kinds[1])
    device = device_of(ordinal)
    spec = for_weights(spec, qw)
    schedule = schedule_for(spec, m, device, batch_invariant, device_name(ordinal))
    if epilogue in GATED and not batch_invariant and _is_faster_apart(spec, schedule, m, device, device_name(ordinal)):
        both = _bind(qw, x, bias, "", None, "f32", given_strides[:1], aligned, 0, early, captured)
        gating = _gating(spec, m, x, early, captured)
        return both._replace(allocate=allocate, gating=_Gating(gating, both.allocate))
    if not batch_invariant and slabs_take_less(spec, schedule, m, device):
        by_slabs = _slabs(qw, spec, x, device.arch, captured)
        if by_slabs is not None:
            return _BoundCall(None, allocate, None, {}, None, by_slabs)
    within = None
    order = vector_order_of(spec, schedule)
    if order:
        x_stride = padded_columns(qw.shape[1])
    elif qw.permutation is not None:
        within = ordered_within(replace(spec, aligned=x_aligned), schedule, m, device)
    if within:
        (spec, schedule), x_stride = within, strides[0]
    # `upload` returns when its copies are done, and nothing writes to them again: they are constant for every launch.
    spec = replace(spec, dependent_launch=early and begins_early(spec, schedule, m))
    ordering_kind = (qw.shape[1], order, x_aligned, early, device.arch)
    is_ordered = order is not None or (qw.permutation is not None and not within)
    lacks_ordering = is_ordered and not has_gpu_ordering_kernel(*ordering_kind)
    if captured and (lacks_ordering or not _is_ready(qw, spec, schedule, device.arch, x.device)):
        raise first_call_in_capture("x", m, x.dtype)
    launcher = gpu_kernel(spec, schedule, device.arch).launcher
    with torch.cuda.device(x.device):
        tensors = device_operands(qw, activation, x.device, epilogue, schedule)
        if within:
            tensors = {**tensors, "permutation": permutation_on(qw, x.device)}
    if m == 0:
        return _BoundCall(None, allocate, None, tensors)
    product = product_of(spec, schedule)
    numbers = product.launch_numbers(m, x_stride, strides[1] if spec.residual else None, multiprocessors(ordinal))
    kept: dict[str, Any] = {name: launcher.read(name, tensor) for name, tensor in tensors.items()}
    kept.update(product.by_name(numbers))
    named = [operand.name for operand in map(product.operand, _OF_CALL) if operand]
    ordered = None
    if is_ordered:
        width = padded_columns(qw.shape[1]) if order else qw.shape[1]
        ordering = gpu_ordering_kernel(*ordering_kind).launcher
        with torch.cuda.device(x.device):
            permutation = None if order else permutation_on(qw, x.device)
        rows = allocator((m, x_stride), x.dtype, x.device)
        ordered = OrderedRows(ordering, permutation, width, m, strides[0], multiprocessors(ordinal), rows)
    return _BoundCall(launcher.bind(kept, named, ordinal), allocate, ordered, tensors)


def _slabs(qw: QuantizedTensor, spec: LinearSpec, x: Any, arch: str, captured: bool) -> Slabs | None:
    """What multiplies rows of x by slabs of the weights; None where no slabs have what `spec` asks for."""
    wide_sums = spec.out == "f32"
    found = slabs_of(spec, qw)
    if found is None or (spec.out != spec.activation and not (wide_sums and sums_are_wide())):
        return None
    of_slabs, schedule = found
    device, is_compiled = x.device, has_slab_kernel(of_slabs, schedule, arch)
    if captured and not (is_compiled and _has_operands(qw, of_slabs, schedule, device)):
        raise first_call_in_capture("x", math.prod(x.shape[:-1]), x.dtype)
    with sys.modules["torch"].cuda.device(device):
        held = device_operands(qw, spec.activation, device, schedule=schedule)
    tensors = {operand.name: held[operand.name] for operand in operands_as_meant(of_slabs, schedule)}
    return bound_slabs(of_slabs, schedule, arch, tensors, device, wide_sums)


def _is_faster_apart(spec: LinearSpec, schedule: Schedule, m: int, device: Device, gpu: str) -> bool:
    """Whether gate and up take less time by a product without the epilogue, and a launch for that."""
    if spec.residual or spec.is_packed_apart or not (schedule.warpgroups or spec.vectors):
        return False
    apart = replace(spec, epilogue="", out="f32")
    if spec.vectors:
        return has_room_apart(spec, m) and slabs_take_less(apart, schedule, m, device)
    return takes_less_apart(spec, schedule, apart, schedule_for(apart, m, device, gpu=gpu), m, device)


def _gating(spec: LinearSpec, m: int, x: Any, early: bool, captured: bool) -> BoundLaunch:
    """What makes y of m rows of products, with all that it takes but addresses."""
    ordinal = x.get_device()
    wanted = (spec.columns_of_y, spec.epilogue, spec.out, early, device_of(ordinal).arch)
    if captured and not has_gpu_gating_kernel(*wanted):
        raise first_call_in_capture("x", m, x.dtype)
    return gpu_gating_kernel(*wanted).launcher.bind({"m": m}, ["x", "y"])


def _is_ready(qw: QuantizedTensor, spec: LinearSpec, schedule: Schedule, arch: str, device: Any) -> bool:
    """Whether the kernel is compiled and what it takes of the weights on the device, from calls before."""
    has_order = qw.permutation is None or _order_key(device) in _kept.of(qw).operands
    return has_order and _has_operands(qw, spec, schedule, device) and has_gpu_kernel(spec, schedule, arch)


def _has_operands(qw: QuantizedTensor, spec: LinearSpec, schedule: Schedule, device: Any) -> bool:
    """Whether what a kernel takes of the weights is on the device."""
    held = _kept.of(qw).operands.get(f"{device} {form_of_operands(spec)}", {})
    return all(operand in held for operand in operands_of_weights(spec, schedule))


def _order_key(device: Any) -> str:
    return f"{device} permutation"


def permutation_on(qw: QuantizedTensor, device: Any) -> Any:
    """The permutation as a tensor on `device`, uploaded at its first use, and kept as long as `qw` lives."""
    assert qw.permutation is not None
    kept, key = _kept.of(qw), _order_key(device)
    with kept.lock:
        if key not in kept.operands:
            kept.operands[key] = {"permutation": upload(qw.permutation, PERMUTATION_TYPE, device)}
        return kept.operands[key]["permutation"]


def allocator(shape: tuple[int, ...], dtype: Any, device: Any) -> Callable[[], Any]:
    """What makes an empty tensor."""
    torch: Any = sys.modules["torch"]
    allocate = functools.partial(torch.empty, shape, dtype=dtype, device=device)
    try:
        # Less than half of what `torch.empty` costs; PyTorch's own code generator relies on it too. It takes the
        # current device.
        on_current_device = torch._C._dynamo.guards._empty_strided_cuda
        current_device = torch._C._cuda_getDevice
    except AttributeError:
        return allocate
    strides = tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    ordinal = device.index

    def allocate_fast() -> Any:
        return on_current_device(shape, strides, dtype) if current_device() == ordinal else allocate()

    return allocate_fast


def _types() -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
