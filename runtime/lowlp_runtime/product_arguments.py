"""The arguments of `kernel(x, qw)`: checked against what a kernel of `linear` multiplies. Errors name both sides."""

from __future__ import annotations

import sys
from typing import Any

from lowlp_runtime.array import is_torch_tensor
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.device import unless_device
from lowlp_runtime.errors import DeviceError, LowlpTypeError, LowlpValueError
from lowlp_runtime.operand_arrays import STORED_AS
from lowlp_runtime.operand_tensors import torch_type
from lowlp_runtime.product import Product
from lowlp_runtime.stored_weights import StoredWeights

_BYTES = ("int8", "uint8", "f8e4m3", "f8e5m2")


def check_quantised(kernel: KernelBinary, x: Any) -> tuple[Any, Any, Any]:
    """The codes, scales and sums of x, each None where the kernel takes none; of a kernel for x that is not quantised x
    itself. Raises `LowlpTypeError` and `LowlpValueError` for x that is quantised and should not be, and the reverse."""
    product, name = kernel.description.require_product(), kernel.description.name
    takes = {role: product.operand(role) for role in ("x_scales", "x_sums")}
    is_quantised = hasattr(x, "codes") and hasattr(x, "scales") and hasattr(x, "sums")
    element = product.required("x").element
    if (element in _BYTES) != is_quantised:
        wanted = f"quantised activations of {element}" if element in _BYTES else f"activations of {element}"
        raise LowlpTypeError(f"x: kernel {name!r} takes {wanted}, got {type(x).__name__}")
    if not is_quantised:
        return x, None, None
    if x.zeros is not None or getattr(x, "group_size", None) is not None:
        raise LowlpValueError(
            f"x: kernel {name!r} takes a scale for each row, without zero points and groups; use linear"
        )
    kind = getattr(getattr(x, "dtype", None), "name", "")
    if element == "uint8" and kind.startswith("bipolar"):
        raise LowlpValueError(f"x: kernel {name!r} takes codes of unsigned integers, got {kind}; use linear")
    if not is_torch_tensor(x.codes):
        check_x(kernel, product, x.codes)
    scales = x.scales.contiguous() if takes["x_scales"] else None
    return x.codes, scales, x.sums.contiguous() if takes["x_sums"] else None


def check_x(kernel: KernelBinary, product: Product, x: Any) -> None:
    name, archs = kernel.description.name, ", ".join(dict.fromkeys([*kernel.cubins, *kernel.ptx]))
    if not is_torch_tensor(x) or not x.is_cuda:
        found = "a tensor on the CPU" if is_torch_tensor(x) else type(x).__name__
        why = unless_device()
        message = f"x: kernel {name!r} is code for {archs} and takes PyTorch tensors on a CUDA device, got {found}"
        if why:
            raise DeviceError(message + why)
        raise LowlpTypeError(message)
    element = product.required("x").element
    if x.dtype != torch_type(element):
        raise LowlpTypeError(f"x: kernel {name!r} takes activations of {element}, got {x.dtype}")
    if not x.shape or x.shape[-1] != product.k:
        raise LowlpValueError(
            f"x: the last dimension must be K = {product.k} of kernel {name!r}, got shape {tuple(x.shape)}"
        )


def check_rows(kernel: KernelBinary, product: Product, m: int) -> None:
    if product.rows is not None and m and not product.rows[0] <= m <= product.rows[1]:
        raise LowlpValueError(
            f"x: kernel {kernel.description.name!r} is for {product.rows_in_words} rows, got {m}; compile another, "
            f"compile_linear(m=({m}, {m})), or one for any number"
        )


def check_part(kernel: KernelBinary, product: Product, role: str, part: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """A bias or residual that the kernel takes, or None. Of a bias, the elements lie one after the other."""
    operand, name = product.operand(role), kernel.description.name
    if (operand is None) != (part is None):
        takes = f"a {role} of {operand.element}" if operand else f"no {role}"
        got = "None" if part is None else type(part).__name__
        raise LowlpTypeError(f"{role}: kernel {name!r} takes {takes}, got {got}")
    if operand is None:
        return None
    if not is_torch_tensor(part) or part.dtype != torch_type(operand.element) or part.device != x.device:
        raise LowlpTypeError(
            f"{role}: kernel {name!r} takes a tensor of {operand.element} on {x.device}, got {part!r:.80}"
        )
    if tuple(part.shape) != shape:
        raise LowlpValueError(f"{role}: must have shape {shape}, got {tuple(part.shape)}")
    return part.contiguous() if role == "bias" else part


def rows_of(kernel: KernelBinary, product: Product, role: str, array: Any) -> tuple[Any, int]:
    """The rows of x or the residual where the kernel that reads them can, else a copy; and their stride, in
    elements."""
    names = product.required(role).name, product.required(f"{role}_stride").name
    if role == "x" and kernel.before is not None:
        kernel, names = kernel.before, ("x", "x_stride")
    parameters = {parameter.name: parameter for parameter in kernel.description.parameters}
    pointer, multiple = parameters[names[0]], parameters[names[1]].divisible_by
    columns = array.shape[-1]
    rows = array.reshape(-1, columns)
    if rows.is_contiguous():
        stride, step = columns, 1
    else:
        stride, step = rows.stride()
    if step == 1 and stride % multiple == 0 and not rows.data_ptr() % pointer.alignment_bytes:
        return rows, stride
    return _copied_rows(rows, multiple)


def _copied_rows(rows: Any, multiple: int) -> tuple[Any, int]:
    torch: Any = sys.modules["torch"]
    count, columns = rows.shape
    stride = -(-columns // multiple) * multiple
    copied = torch.empty((count, stride), dtype=rows.dtype, device=rows.device)
    copied[:, :columns] = rows
    return copied, stride


def check_weights(kernel: KernelBinary, product: Product, weights: StoredWeights) -> None:
    """Raises `LowlpValueError` unless the kernel reads weights that are stored so: in shape, codes, groups, family,
    version of the packed format, and the types of what comes with them; and for kernels that are too old."""
    name = kernel.description.name
    before = [] if kernel.before is None else kernel.before.description.parameters
    if product.vector_order and any(parameter.name == "permutation" for parameter in before):
        raise LowlpValueError(
            f"kernel: {name!r} was saved by an older lowlp, whose kernels took the order of vectors as an array; "
            "compile it again"
        )
    for what, found, wanted in (
        ("shape", list(weights.shape), [product.n, product.k]),
        ("codes", weights.code, product.code),
        ("group size", weights.group_size, product.group_size),
        ("super-group size", weights.super_group_size, product.super_group_size),
        ("family", weights.family, product.family),
        ("packed format", weights.packed_format, kernel.description.packed_format),
    ):
        if found != wanted:
            hint = f"; use qw.pack_for({wanted!r})" if what == "family" else ""
            raise LowlpValueError(f"qw: its {what} is {found}, and kernel {name!r} takes {wanted}{hint}")
    takes_order = kernel.before is not None or product.operand("permutation") is not None
    if not product.vector_order and takes_order != ("permutation" in weights.types):
        has, takes = ("none", "weights with one") if takes_order else ("one", "none")
        raise LowlpValueError(
            f"qw: of permutations of K it has {has}, and kernel {name!r} takes {takes}; compile another, "
            f"compile_linear(permutation={not takes_order})"
        )
    operands = [operand for operand in product.of_source("weights") if operand.role in STORED_AS]
    # What undoes a table's power of two is no type of its entries.
    taken = {STORED_AS[operand.role]: operand for operand in operands if not operand.role.endswith("_unscale")}
    parts = [part for part in (*taken, *weights.types) if part != "permutation"]
    for part in dict.fromkeys(parts):
        if (part in taken) != (part in weights.types):
            has, takes = ("none", "them") if part in taken else (weights.types[part], "none")
            raise LowlpValueError(f"qw: of {part} it has {has}, and kernel {name!r} takes {takes}")
        # Tables are rounded to the activation type, whatever theirs is.
        if part != "lut" and weights.types[part] != taken[part].element:
            raise LowlpValueError(
                f"qw: its {part} are {weights.types[part]}, and kernel {name!r} takes {taken[part].element}"
            )
