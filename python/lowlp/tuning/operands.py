"""Operands of kernels that are timed: random ones on the GPU, made of what a kernel's description says, without the
compiler."""

from __future__ import annotations

from typing import Any, Final

from lowlp.schedules.measured_file import PLANES
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.operand_tensors import torch_type
from lowlp_runtime.operands import ROWS, Operand
from lowlp_runtime.product import Product

_MOST_FINITE: Final = 0x77
"""Bytes up to here are finite positive numbers of f8e4m3 and of f8e5m2."""
_POISON: Final = 0x7E
"""Of results: a byte of which two are a NaN of f16, and four are no likely sum."""
_WORD_BITS: Final = 32
_FLOATS: Final = ("f16", "bf16", "f32")
"""Elements of parameters of planes' kernels; all others are integers of 32 bits."""


class RandomOperands:
    """Operands of one problem. What belongs to weights, and x of as many rows, is made once: the kernels of a problem
    read the same, so that their results can be compared."""

    def __init__(self, multiprocessors: int) -> None:
        import torch

        self._multiprocessors = multiprocessors
        self._generator = torch.Generator("cuda").manual_seed(1)
        self._made: dict[object, Any] = {}

    def arguments(self, description: KernelDescription, m: int) -> dict[str, Any]:
        """All of a kernel's arguments by name, for m rows of x; y is poisoned."""
        planes = description.notes.get(PLANES)
        if isinstance(planes, dict):
            return self._of_planes(description, planes, m)
        return self._of_product(description.require_product(), m)

    def is_exact(self, description: KernelDescription) -> bool:
        """Whether all kernels of the problem must have the same result to the bit: sums of integers do."""
        if PLANES in description.notes:
            return True
        product = description.require_product()
        return product.group_size == product.k and product.required("x").element in ("int8", "uint8")

    def _of_product(self, product: Product, m: int) -> dict[str, Any]:
        numbers = product.launch_numbers(m, product.k, None, self._multiprocessors)
        found: dict[str, Any] = {**product.by_name(numbers)}
        for operand in product.operands:
            if operand.source != "launch":
                found[operand.name] = self._tensor(operand, m)
        return found

    def _tensor(self, operand: Operand, m: int) -> Any:
        if not operand.is_array:
            return 1.0
        shape = tuple(m if extent == ROWS else int(extent) for extent in operand.shape)
        if operand.role == "y":
            return self._poisoned(shape, operand.element)
        key = operand.name, operand.element, shape
        if key not in self._made:
            self._made[key] = self._random(operand, shape)
        return self._made[key]

    def _random(self, operand: Operand, shape: tuple[int, ...]) -> Any:
        """Words and codes of random bits; scales and the like of small numbers; zero points of zero."""
        import torch

        if operand.role == "packed":
            return self._words(shape)
        if operand.element.startswith("f8"):
            return self._integers(shape, 0, _MOST_FINITE, torch.uint8)
        element = torch_type(operand.element)
        if operand.role == "x" and not element.is_floating_point:
            limits = torch.iinfo(element)
            return self._integers(shape, limits.min, limits.max, element)
        if operand.role == "x":
            return torch.randn(shape, device="cuda", generator=self._generator).to(element)
        if not element.is_floating_point:
            # A scale of 2^-127 for e8m0, and zero points of 0.
            return torch.zeros(shape, dtype=element, device="cuda")
        return (torch.rand(shape, device="cuda", generator=self._generator) / 64).to(element)

    def _of_planes(self, description: KernelDescription, planes: dict[str, Any], m: int) -> dict[str, Any]:
        """Of a product of planes, whose words fill 16 bytes of a row of x and 256 codes of a row of weights."""
        import torch

        n, k, p, q = (int(planes[name]) for name in ("n", "k", "weight bits", "activation bits"))
        extents = {
            "planes": m * q * (-(-k // (4 * _WORD_BITS)) * 4),
            "weights": -(-n // 16) * 16 * -(-k // 256) * 8 * p,
            "y": m * n,
            **dict.fromkeys(("x_scales", "x_zeros", "x_sums"), m),
            **dict.fromkeys(("scales", "zeros", "w_sums", "bias"), n),
            "residual": m * n,
        }
        found: dict[str, Any] = {}
        for parameter in description.parameters:
            name, element = parameter.name, parameter.element
            if not parameter.is_pointer:
                found[name] = m
                continue
            key = name, extents[name]
            if name == "y":
                found[name] = self._poisoned((m, n), element if element in _FLOATS else "int32")
                continue
            if key not in self._made:
                if name in ("planes", "weights"):
                    self._made[key] = self._words((extents[name],))
                elif element in _FLOATS:
                    numbers = torch.rand(extents[name], device="cuda", generator=self._generator) / 64
                    self._made[key] = numbers.to(torch_type(element))
                else:
                    self._made[key] = self._integers((extents[name],), -100, 100, torch.int32)
            found[name] = self._made[key]
        return found

    def _words(self, shape: tuple[int, ...]) -> Any:
        import torch

        return self._integers(shape, -(2**31), 2**31 - 1, torch.int32)

    def _integers(self, shape: tuple[int, ...], least: int, most: int, dtype: Any) -> Any:
        import torch

        return torch.randint(least, most + 1, shape, dtype=dtype, device="cuda", generator=self._generator)

    def _poisoned(self, shape: tuple[int, ...], element: str) -> Any:
        """Made once; poisoned each time, so that a kernel that stores nothing shows."""
        import torch

        key = "y", element, shape
        if key not in self._made:
            self._made[key] = torch.empty(shape, dtype=torch_type(element), device="cuda")
        self._made[key].view(torch.uint8).fill_(_POISON)
        return self._made[key]
