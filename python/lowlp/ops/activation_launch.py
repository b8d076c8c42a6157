"""Kernels on rows of activations, where these are: numpy arrays on the CPU target, CUDA tensors on their GPU.

A kernel takes x as [outer, rows, numbers]: rows of x as one outer index, or groups of a row, or blocks of it, as the
rows of an outer index each.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from lowlp.activations.kinds import FLOATS, ActivationKind
from lowlp.activations.quantize import Rule
from lowlp.activations.quantized import QuantizedActivations
from lowlp.compiler.compilation import CpuKernel, compile, compile_cpu
from lowlp.compiler.kernel_cache import Once
from lowlp.kernels.activations.kernel import extremes_kernel, rows_kernel
from lowlp.kernels.activations.planes import planes_kernel
from lowlp.kernels.activations.spec import WIDE_BYTES, Norm, RowsSpec, division_of
from lowlp.language import Kernel
from lowlp.numeric.bit_planes import WORD_CODES
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, memory_of_rows
from lowlp.schedules.device import device_of
from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.bound_launch import BoundLaunch
from lowlp_runtime.dependent_launch import is_allowed
from lowlp_runtime.device_workspace import is_captured
from lowlp_runtime.errors import LowlpRuntimeError
from lowlp_runtime.stream import current_torch_stream

_TORCH_TYPES: Final = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
_MAX_LAUNCHES: Final = 1024
_kernels = Once()
_launches: dict[Any, BoundLaunch] = {}


@dataclass(frozen=True)
class Matrix:
    """Rows of activations, numbers of a row side by side.

    array   [M, columns], of numpy or on a GPU
    stride  elements from one row to the next
    """

    array: Any
    stride: int

    @property
    def source(self) -> str:
        """The short name of its type."""
        name = str(self.array.dtype).removeprefix("torch.")
        return next(short for short, long in _TORCH_TYPES.items() if long == name)

    def is_aligned(self, *steps: int) -> bool:
        """Whether 16 bytes can be loaded at once where parts begin so many elements apart."""
        whole = WIDE_BYTES // FLOAT_DTYPES[self.source].itemsize
        return not (_address(self.array) % WIDE_BYTES or any(step % whole for step in (self.stride, *steps)))


def matrix_of(x: Any) -> Matrix:
    """[..., columns] as rows; a copy where no one stride reaches them."""
    rows = x.reshape(-1, x.shape[-1]) if x.shape[-1] else x
    count, columns = rows.shape
    if is_torch_tensor(rows):
        stride, step = rows.stride()
        if step != 1 or stride < 0:
            rows, stride = rows.contiguous(), columns
    else:
        if rows.strides[1] != rows.itemsize or rows.strides[0] < 0 or rows.strides[0] % rows.itemsize:
            rows = np.ascontiguousarray(rows)
        stride = rows.strides[0] // rows.itemsize
    return Matrix(rows, int(stride) if count > 1 else columns)


@dataclass(frozen=True)
class Work:
    """What is to be done with rows of numbers.

    k           numbers of a row; x has twice as many with `silu`
    rule        how they become codes; None: they are stored as the type of x
    inverse     float32 [k] that they are multiplied by first, where x is; or None
    silu        silu(gate) * up takes the place of x
    norm        an RMS norm takes the place of x, with its weight [k] and residual rows; or None
    hadamard    numbers of a block of the transform, or 0
    group_size  numbers that share a scale; None: all of a row
    given       scales [M, groups], or None
    planes      planes are made too
    """

    k: int
    rule: Rule | None
    inverse: Any = None
    silu: bool = False
    norm: Norm | None = None
    weight: Any = None
    residual: Matrix | None = None
    hadamard: int = 0
    group_size: int | None = None
    given: Any = None
    planes: bool = False


@dataclass(frozen=True)
class Launch:
    """A kernel and its arguments by name, of which it writes some.

    key      tells the kernel that `make` makes from others
    """

    key: Any
    make: Callable[[], Kernel]
    arrays: dict[str, Any]
    numbers: dict[str, int]


def results_of(x: Matrix, work: Work) -> dict[str, Any]:
    """What the kernels make, by name: codes or y [M, k], scales, zeros and sums [M, groups], planes [M, bits, words],
    residual_out [M, k]."""
    results, launches = launches_of(x, work)
    run(launches)
    return results


def launches_of(x: Matrix, work: Work) -> tuple[dict[str, Any], list[Launch]]:
    """The memory of the results, and what is to be launched, in this order, to make them; nothing without rows."""
    before: list[Launch] = []
    if work.hadamard and not _is_in_one_launch(x, work):
        # Blocks as groups of a row: each is a row of the kernel.
        alone = Work(work.k, None, work.inverse, silu=work.silu, hadamard=work.hadamard, group_size=work.hadamard)
        made, before = launches_of(x, alone)
        x, work = Matrix(made["y"], work.k), replace(work, inverse=None, silu=False, hadamard=0)
    m, unit = x.array.shape[0], work.group_size or work.k
    in_rows = unit == work.k
    outer, rows = (1, m) if in_rows else (m, work.k // unit)
    spec = _spec(x, work, unit)
    inputs: dict[str, Any] = {"x": x.array}
    numbers = {"x_stride": x.stride, "x_outer_stride": 0} if in_rows else {"x_stride": unit, "x_outer_stride": x.stride}
    results = _empty_results(x.array, work, m)
    if work.inverse is not None:
        inputs["smooth"] = work.inverse
        numbers["smooth_stride"] = 0 if in_rows else unit
    if work.silu:
        numbers["ups"] = work.k
    if work.norm:
        inputs["weight"] = work.weight
    if work.residual is not None:
        inputs["residual"] = work.residual.array
        numbers["residual_stride"] = work.residual.stride
        results["residual_out"] = _empty(x.array, (m, work.k), x.source)
    if not m:
        return results, []
    numbers |= {"rows": rows, "outer": outer}
    if work.rule is not None and work.rule.scale == "tensor":
        extremes, finding = _zeros(x.array, 2), replace(spec, planes=False)
        make = functools.partial(extremes_kernel, finding)
        before.append(Launch(("extremes", finding), make, inputs | {"extremes": extremes}, dict(numbers)))
        inputs["extremes"] = extremes
    if work.given is not None:
        inputs["given"] = work.given
    if spec.planes:
        numbers |= _plane_strides(work, unit)
    return results, [*before, Launch(("rows", spec), functools.partial(rows_kernel, spec), inputs | results, numbers)]


def _spec(x: Matrix, work: Work, unit: int) -> RowsSpec:
    aligned = x.is_aligned(unit, work.k) and (work.residual is None or work.residual.is_aligned())
    aligned = aligned and (work.weight is None or _address(work.weight) % WIDE_BYTES == 0)
    return RowsSpec(
        x.source,
        unit,
        work.rule,
        smooth=work.inverse is not None,
        silu=work.silu,
        norm=work.norm,
        hadamard=work.hadamard,
        aligned=aligned,
        planes=work.planes,
        grouped=unit != work.k,
        early=is_torch_tensor(x.array) and is_allowed(),
    )


def _is_in_one_launch(x: Matrix, work: Work) -> bool:
    """Whether a kernel transforms rows, or groups, and quantises them too."""
    unit = work.group_size or work.k
    return unit % work.hadamard == 0 and division_of(_spec(x, work, unit)) is not None


def planes_of_codes(activations: QuantizedActivations) -> Any:
    """uint32 [..., bits, words] of codes on a GPU, or of numpy's."""
    kind, codes = activations._kind, activations.codes
    k = codes.shape[-1]
    codes = codes.reshape(-1, k)
    codes = codes.contiguous() if is_torch_tensor(codes) else np.ascontiguousarray(codes)
    aligned = k % WIDE_BYTES == 0 and _address(codes) % WIDE_BYTES == 0
    words, bits = -(-k // WORD_CODES), kind.dtype.bits
    planes = _empty(codes, (codes.shape[0], bits, words), "uint32")
    strides = {"plane_stride": words, "plane_row_stride": bits * words, "plane_outer_stride": 0}
    if codes.shape[0]:
        counts = {"rows": codes.shape[0], "outer": 1}
        make = functools.partial(planes_kernel, kind, k, aligned)
        run([Launch(("planes", kind, k, aligned), make, {"codes": codes, "planes": planes}, strides | counts)])
    return planes.reshape(*activations.shape[:-1], bits, words)


# --- memory -----------------------------------------------------------------------------------------------------------


def _empty_results(like: Any, work: Work, m: int) -> dict[str, Any]:
    rule = work.rule
    if rule is None:
        name = str(like.dtype).removeprefix("torch.")
        return {"y": _empty(like, (m, work.k), next(s for s, long in _TORCH_TYPES.items() if long == name))}
    kind, groups = rule.kind, work.k // (work.group_size or work.k)
    results = {"codes": _empty(like, (m, work.k), kind), "scales": _empty(like, (m, groups), "f32")}
    if not kind.is_float:
        results["sums"] = _empty(like, (m, groups), "int32")
    if rule.has_zeros:
        results["zeros"] = _empty(like, (m, groups), "int32")
    if work.planes:
        results["planes"] = _empty(like, (m, kind.dtype.bits, -(-work.k // WORD_CODES)), "uint32")
    return results


def _plane_strides(work: Work, unit: int) -> dict[str, int]:
    assert work.rule is not None
    words, bits = -(-work.k // WORD_CODES), work.rule.kind.dtype.bits
    row, outer = (bits * words, 0) if unit == work.k else (unit // WORD_CODES, bits * words)
    return {"plane_stride": words, "plane_row_stride": row, "plane_outer_stride": outer}


def _empty(like: Any, shape: tuple[int, ...], element: str | ActivationKind) -> Any:
    """Memory where `like` is."""
    if is_torch_tensor(like):
        torch: Any = sys.modules["torch"]
        name = str(element.stored) if isinstance(element, ActivationKind) else _TORCH_TYPES.get(element, element)
        return torch.empty(shape, dtype=getattr(torch, name), device=like.device)
    if isinstance(element, ActivationKind):
        return np.empty(shape, element.stored)
    return np.empty(shape, FLOAT_DTYPES.get(element) or np.dtype(element))


def _zeros(like: Any, count: int) -> Any:
    """int32, which one kernel writes as the bits of floats, and the next reads as floats."""
    if is_torch_tensor(like):
        torch: Any = sys.modules["torch"]
        return torch.zeros(count, dtype=torch.int32, device=like.device)
    return np.zeros(count, np.int32)


def _address(array: Any) -> int:
    return int(array.data_ptr() if is_torch_tensor(array) else array.__array_interface__["data"][0])


# --- launches ---------------------------------------------------------------------------------------------------------


def run(launches: Sequence[Launch]) -> None:
    """Launches kernels, one after the other."""
    for launch in launches:
        arrays = launch.arrays.values()
        if is_torch_tensor(next(iter(arrays))):
            ordinal = next(iter(arrays)).get_device()
            addresses = [array.data_ptr() for array in arrays]
            bound_launch(launch).run(addresses, ordinal, current_torch_stream(ordinal))
            continue
        kernel = _kernels.get((launch.key, "cpu"), functools.partial(_compile_cpu, launch))
        kernel(**{name: memory_of(array) for name, array in launch.arrays.items()}, **launch.numbers)


def _compile_cpu(launch: Launch) -> CpuKernel:
    return compile_cpu(launch.make())


def memory_of(array: AnyArray) -> AnyArray:
    """The memory of an array, as the CPU target takes it."""
    memory = array.reshape(-1) if array.flags.c_contiguous else memory_of_rows(array)
    return memory.view(np.uint8) if memory.dtype in FLOATS.values() else memory


def bound_launch(launch: Launch) -> BoundLaunch:
    """The launch on a GPU with its numbers, which takes the addresses of its arrays in their order."""
    ordinal = next(iter(launch.arrays.values())).get_device()
    key = (launch.key, ordinal, tuple(launch.numbers.values()))
    bound = _launches.get(key)
    if bound is None:
        arch = device_of(ordinal).arch
        if is_captured(current_torch_stream(ordinal)) and not _kernels.has((launch.key, arch)):
            raise LowlpRuntimeError(
                "x: a first call of a kind compiles, which the capture of a CUDA graph does not allow; call it once, "
                "with an x of this shape and type, before the capture"
            )
        kernel = _kernels.get((launch.key, arch), lambda: compile(launch.make(), arch))
        if len(_launches) >= _MAX_LAUNCHES:
            _launches.clear()
        bound = _launches[key] = kernel.launcher.bind(launch.numbers, list(launch.arrays))
    return bound
