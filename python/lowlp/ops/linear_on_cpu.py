"""`lowlp.linear` of arrays of numpy: on the CPU target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from lowlp.errors import LowlpTypeError
from lowlp.kernels.linear.activations import FLOATS
from lowlp.kernels.linear.choosing import ordered_within, schedule_for
from lowlp.kernels.linear.operand_list import WIDE_BYTES, product_of, vector_order_of
from lowlp.kernels.linear.operands import NUMPY_TYPES, for_weights, form_of_operands, host_operands, spec_for
from lowlp.kernels.linear.scaled_weights import fit_of
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import ACTIVATIONS, OUTPUTS, LinearSpec
from lowlp.numeric.host_array import AnyArray, memory_of_rows
from lowlp.schedules.device import H200
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.ordered_rows import launch_numbers as ordering_numbers
from lowlp_runtime.ordered_rows import row_stride
from lowlp_runtime.vector_order import VectorOrder, padded_columns

from .linear_kernels import cpu_kernel, cpu_ordering_kernel
from .linear_launch import check_shapes, columns_of_y
from .quantized_x import QuantizedX

CPU_MULTIPROCESSORS: Final = 5
"""Of the GPU that the CPU target stands for: more than one, so that blocks share tiles there too."""


def linear_numpy(
    x: AnyArray,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: str | None,
    batch_invariant: int,
    quantized: QuantizedX | None = None,
) -> AnyArray:
    """`lowlp.linear` of arrays of numpy; with `quantized`, whose codes x are."""
    x, product = product_on_cpu(x, qw, bias, epilogue, residual, out_dtype, quantized)
    check_shapes(x.shape, getattr(bias, "shape", None), getattr(residual, "shape", None), qw, epilogue)
    k = qw.shape[1]
    n = columns_of_y(qw, epilogue)
    y = np.empty((*x.shape[:-1], n), NUMPY_TYPES[product.out])
    rows, stride, x_aligned = rows_of_array(x, k)
    if rows.shape[0] == 0:
        return y
    spec, given, residual_stride = product.spec_and_parts(x_aligned or qw.permutation is not None)
    aligned = spec.aligned
    given["y"] = y.reshape(-1, n)
    schedule = schedule_for(spec, rows.shape[0], batch_invariant=batch_invariant)
    if order := vector_order_of(spec, schedule):
        rows, stride = ordered_on_cpu(rows, stride, x_aligned, order=order)
    elif qw.permutation is not None and quantized:
        rows = np.ascontiguousarray(rows[:, qw.permutation])
        stride = k
        spec = replace(spec, aligned=_is_aligned(rows, k) and aligned)
    elif qw.permutation is not None:
        within = ordered_within(replace(spec, aligned=x_aligned and aligned), schedule, rows.shape[0], H200)
        if within:
            spec, schedule = within
            given["permutation"] = qw.permutation
        else:
            rows, stride = ordered_on_cpu(rows, stride, x_aligned, permutation=qw.permutation)
    given["x"] = memory_of_rows(rows)
    given.update(product_of(spec, schedule).launch_numbers(rows.shape[0], stride, residual_stride, CPU_MULTIPROCESSORS))
    product.run(spec, schedule, given)
    return y


class ProductOnCpu(NamedTuple):
    """A product of weights, whatever rows it has: what its spec and its operands beside x and y follow from.

    activation, out             types of x and of the result
    bias_type, residual_type    '' without one
    quantized                   whose codes x are; None of x as it is
    """

    qw: QuantizedTensor
    activation: str
    out: str
    bias: AnyArray | None
    bias_type: str
    epilogue: str
    residual: AnyArray | None
    residual_type: str
    quantized: QuantizedX | None

    def spec_and_parts(self, aligned: bool) -> tuple[LinearSpec, dict[str, Any], int | None]:
        """The spec, where x is `aligned` or not; by role bias, residual and what comes with quantised x; and the
        residual's stride."""
        given: dict[str, Any] = {}
        residual_stride = None
        if self.bias is not None:
            given["bias"] = np.require(self.bias, requirements=["C", "A"])
        if self.residual is not None:
            rows, residual_stride, is_aligned = rows_of_array(self.residual, self.residual.shape[-1])
            given["residual"] = memory_of_rows(rows)
            aligned = aligned and is_aligned
        endings = (self.out, self.bias_type, aligned, self.epilogue, self.residual_type)
        if self.quantized is None:
            return for_weights(spec_for(self.qw, self.activation, *endings), self.qw), given, residual_stride
        spec = self.quantized.spec(self.qw, *endings)
        parts = self.quantized.operands(spec, self.qw)
        given.update({role: np.ascontiguousarray(part) for role, part in parts.items()})
        return spec, given, residual_stride

    def run(self, spec: LinearSpec, schedule: Schedule, given: dict[str, Any]) -> None:
        """Runs the kernel on `given`, by role, and the weights."""
        key = f"cpu {form_of_operands(spec)} {fit_of(spec, schedule)}"
        weights = self.qw.derived(key, lambda: host_operands(self.qw, self.activation, self.epilogue, schedule))
        cpu_kernel(spec, schedule)(**weights, **product_of(spec, schedule).by_name(given))


def product_on_cpu(
    x: AnyArray,
    qw: QuantizedTensor,
    bias: Any,
    epilogue: str,
    residual: Any,
    out_dtype: str | None,
    quantized: QuantizedX | None,
) -> tuple[AnyArray, ProductOnCpu]:
    """x as kernels take its elements, and the product. Raises `LowlpTypeError` for types that kernels do not take."""
    activation = quantized.activation if quantized else activation_of(x)
    bias_type, residual_type = check_part(bias, "bias"), check_part(residual, "residual")
    if activation in FLOATS:
        # As bytes.
        x = x.view(np.uint8)
    out = out_dtype or activation
    found = ProductOnCpu(qw, activation, out, bias, bias_type, epilogue, residual, residual_type, quantized)
    return x, found


def ordered_on_cpu(
    rows: AnyArray, stride: int, aligned: bool, *, order: VectorOrder | None = None, permutation: AnyArray | None = None
) -> tuple[AnyArray, int]:
    """Rows of x with their columns in the order of vectors, padded, or of a permutation; aligned, and their stride."""
    m, k = rows.shape
    columns = padded_columns(k) if order else k
    made = np.empty((m, row_stride(columns)), np.uint16)
    given: dict[str, Any] = {"x": memory_of_rows(rows).view(np.uint16), "y": made}
    if permutation is not None:
        given["permutation"] = permutation
    given.update(ordering_numbers(columns, m, stride, CPU_MULTIPROCESSORS, permutation is not None))
    cpu_ordering_kernel(k, order, aligned)(**given)
    return made.view(rows.dtype)[:, :columns], row_stride(columns)


def check_part(part: object, argument: str) -> str:
    """The type of a bias or residual, '' without one."""
    if part is None:
        return ""
    if not isinstance(part, np.ndarray) or part.dtype not in [NUMPY_TYPES[name] for name in OUTPUTS]:
        got = part.dtype if isinstance(part, np.ndarray) else type(part).__name__
        remedy = f"; pass {argument}.astype(np.float32)" if got == np.float64 else ""
        raise LowlpTypeError(f"{argument}: expected a numpy array of float16, bfloat16 or float32, got {got}{remedy}")
    return _type_name(part.dtype)


def rows_of_array(array: AnyArray, columns: int) -> tuple[AnyArray, int, bool]:
    """An array [..., columns] as [rows, columns], a copy where no row stride reaches its rows; that stride, in
    elements; and whether address and stride are aligned for wide loads."""
    rows = array.reshape(-1, columns)
    if rows.shape[0] and (rows.strides[1] != rows.itemsize or rows.strides[0] < 0 or not rows.flags.aligned):
        rows = rows.copy()
    stride = rows.strides[0] // rows.itemsize if rows.shape[0] > 1 else columns
    return rows, stride, _is_aligned(rows, stride)


def _is_aligned(rows: AnyArray, stride: int) -> bool:
    """Whether rows begin where wide loads may; of halves and wider elements, as those of f16 would."""
    multiple = WIDE_BYTES if rows.itemsize == 1 else 8
    return stride % multiple == 0 and int(rows.__array_interface__["data"][0]) % WIDE_BYTES == 0


def activation_of(x: AnyArray) -> str:
    found = next((name for name in ACTIVATIONS if x.dtype == NUMPY_TYPES[name]), None)
    if found is None:
        raise LowlpTypeError(f"x: expected float16 or bfloat16, got {x.dtype}")
    return found


def _type_name(wanted: object) -> str:
    return next(name for name in OUTPUTS if NUMPY_TYPES[name] == wanted)
