"""Random weights and activations of a kind on the GPU, by PyTorch alone, and their products in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from lowlp.benchmarks.cases import Shape
from lowlp.numeric.bit_planes import BIT_OF_CODE, WORD_CODES
from lowlp.numeric.group_codes import packed_codes

from .cases import ActivationKind

_SEED: Final = 20
# About the root mean square of a result: far from the ends of f16.
_OUTPUT: Final = 8.0
_LARGEST_INTEGER_SCALE: Final = {"uint4": 15}
_CHUNK_WORDS: Final = 1 << 22


def numbers_of_x(kind: ActivationKind) -> tuple[int, int]:
    """The least and the largest number that codes of integer or bipolar x mean."""
    if kind.is_bipolar:
        return 1 - (1 << kind.bits), (1 << kind.bits) - 1
    return 1 - (1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1


@dataclass
class Drawn:
    """Numbers on the device.

    codes          of weights, uint8 [N, K]
    scales         as they are stored: f16 [N, groups], or integers, packed
    super_scales   f16 [N, 1] with integers, else None
    scale_numbers  what these mean together, float64 [N, groups]
    values         of the weights' codes, float64
    x_codes        [M, K] as they are stored
    x_scales       float32 [M]
    """

    kind: ActivationKind
    shape: Shape
    codes: Any
    scales: Any
    super_scales: Any
    scale_numbers: Any
    values: Any
    x_codes: Any
    x_scales: Any

    @cached_property
    def x_numbers(self) -> Any:
        """What the codes of x mean, float64 [M, K]."""
        numbers = self.x_codes.double()
        return numbers * 2 - ((1 << self.kind.bits) - 1) if self.kind.is_bipolar else numbers

    @cached_property
    def x_halves(self) -> Any:
        """x for products of halves: its numbers times a constant, rounded to f16."""
        return (self.x_numbers * (1 / root_mean_square_of_x(self.kind))).half()

    @property
    def is_one_sum(self) -> bool:
        """Whether a result is one exact sum of integers, with one scale a row of weights and one a row of x."""
        return not self.kind.weights.group and not self.kind.element.startswith("f8")

    @cached_property
    def sums_of_x(self) -> Any:
        """int32 [M]: of the codes of x as they are stored."""
        import torch

        return self.x_codes.double().sum(1).to(torch.int32)

    def sums_of_weights(self, as_stored: bool) -> Any:
        """int32 [N]: of stored codes, which count up from 0, or of the numbers that codes mean."""
        import torch

        numbers = self.values
        if as_stored:
            step_of_numbers = 2 if self.kind.weights.dtype.startswith("bipolar") else 1
            numbers = (numbers - numbers.min()) / step_of_numbers
        found = torch.empty(self.shape.n, dtype=torch.int32, device=self.codes.device)
        step = max(1, (1 << 26) // self.shape.k)
        for start in range(0, self.shape.n, step):
            part = numbers[self.codes[start : start + step].int()].sum(1)
            found[start : start + step] = part.to(torch.int32)
        return found

    def planes(self, m: int) -> Any:
        """uint32 [M, bits, words]: of the stored codes of the first rows of x, whole chunks of four words."""
        import torch

        stored = self.x_codes[:m].int()
        if not self.kind.is_bipolar:
            stored = stored + (1 << (self.kind.bits - 1))
        words = -(-self.shape.k // (4 * WORD_CODES)) * 4
        padded = torch.nn.functional.pad(stored, (0, words * WORD_CODES - self.shape.k))
        of_words = padded.view(m, 1, words, WORD_CODES)
        places = torch.tensor(BIT_OF_CODE, dtype=torch.int32, device=stored.device)
        planes = torch.empty((m, self.kind.bits, words), dtype=torch.int32, device=stored.device)
        step = max(1, _CHUNK_WORDS // words)
        for start in range(0, m, step):
            for plane in range(self.kind.bits):
                bits = (of_words[start : start + step] >> plane) & 1
                # Distinct bits: their sum is their union, and wraps to the sign.
                planes[start : start + step, plane] = (bits << places).sum(-1, dtype=torch.int32)[:, 0]
        return planes.view(torch.uint32)

    def wanted(self, columns: Any, halves: bool) -> Any:
        """Results [M, columns] in float64: of one sum of integers rounded as kernels do, to f16, else not rounded.

        halves  for x as products of halves take it
        """
        numbers = self.values[self.codes[columns].int()]
        if halves or not self.is_one_sum:
            groups = self.scale_numbers.shape[1]
            scaled = numbers.view(len(columns), groups, -1) * self.scale_numbers[columns][:, :, None]
            weights = scaled.view(len(columns), -1)
            if halves:
                return self.x_halves.double() @ weights.T
            return (self.x_numbers @ weights.T) * self.x_scales.double()[:, None]
        sums = (self.x_numbers @ numbers.T).float()
        scaled = (sums * self.scale_numbers[columns].float().T) * self.x_scales[:, None]
        return scaled.half().double()


def root_mean_square_of_x(kind: ActivationKind) -> float:
    """Of the numbers that are drawn."""
    if kind.element.startswith("f8"):
        return _FLOAT_DEVIATION
    low, high = numbers_of_x(kind)
    if not kind.is_bipolar and (deviation := _deviation(high)):
        return deviation
    numbers = np.arange(low, high + 1, 2 if kind.is_bipolar else 1)
    return float(np.sqrt((numbers**2.0).mean()))


_FLOAT_DEVIATION: Final = 64.0
_OF_LARGEST: Final = 0.25
_LEAST_SPREAD: Final = 3


def _deviation(high: float) -> float:
    """Of Gaussian numbers that are rounded to codes up to `high`, as scales by the largest of a row have it, and as
    `rivals` draws what it gives to PyTorch: of other numbers tensor cores take more power, and slow down. 0 where codes
    are too few; they are uniform.
    """
    return high * _OF_LARGEST if high >= _LEAST_SPREAD else 0.0


def draw(kind: ActivationKind, shape: Shape, most_rows: int, values: tuple[float, ...], device: Any) -> Drawn:
    """Weights [N, K] and x [most_rows, K]: Gaussian, but integers of one and two bits, and of bipolar x, uniform.

    values  of the weights' codes
    """
    import torch

    generator = torch.Generator(device=device).manual_seed(_SEED)
    weights = kind.weights
    extents = (shape.n, shape.k)
    table = torch.tensor(values, dtype=torch.float64, device=device)
    if weights.dtype == "f8e4m3":
        codes = _gaussian(shape.n, shape.k, generator, device).view(torch.uint8)
        rms = _FLOAT_DEVIATION
    elif weights.dtype.startswith("int") and not weights.numbers and _deviation(max(values)):
        rms = _deviation(max(values))
        codes = _codes_of_gaussian(extents, values, generator, device)
    else:
        allowed = [code for code, value in enumerate(values) if not weights.numbers or value in weights.numbers]
        codes = torch.randint(0, len(allowed), extents, dtype=torch.uint8, device=device, generator=generator)
        if len(allowed) < len(values):
            codes = torch.tensor(allowed, dtype=torch.uint8, device=device)[codes.int()]
        rms = float(np.sqrt((np.array([values[code] for code in allowed]) ** 2).mean()))
    groups = shape.k // weights.group if weights.group else 1
    wanted = 0.75 + 0.5 * torch.rand((shape.n, groups), device=device, generator=generator)
    wanted *= _OUTPUT / (rms * math.sqrt(shape.k))
    supers = None
    if weights.has_levels:
        largest = _LARGEST_INTEGER_SCALE[weights.scale]
        supers = (wanted[:, :1] / (largest / 2)).half()
        integers = torch.randint(
            1, largest + 1, (shape.n, groups), dtype=torch.uint8, device=device, generator=generator
        )
        scales = torch.from_numpy(packed_codes(integers.cpu().numpy(), weights.scale)).to(device)
        meaning = integers.double() * supers.double()
    else:
        scales = wanted.half()
        meaning = scales.double()
    x_codes = _draw_x(kind, most_rows, shape.k, generator, device)
    x_scales = 0.75 + 0.5 * torch.rand(most_rows, device=device, generator=generator)
    x_scales = x_scales / root_mean_square_of_x(kind)
    return Drawn(kind, shape, codes, scales, supers, meaning, table, x_codes, x_scales)


def _codes_of_gaussian(extents: tuple[int, int], values: tuple[float, ...], generator: Any, device: Any) -> Any:
    """Codes, uint8, of integers next to Gaussian numbers."""
    import torch

    low, high = min(values), max(values)
    code_of = torch.zeros(int(high - low) + 1, dtype=torch.uint8, device=device)
    for code, value in enumerate(values):
        code_of[int(value - low)] = code
    codes = torch.empty(extents, dtype=torch.uint8, device=device)
    step = max(1, (1 << 26) // extents[1])
    for start in range(0, extents[0], step):
        part = codes[start : start + step]
        numbers = torch.randn(part.shape, device=device, generator=generator, dtype=torch.float32)
        numbers = numbers.mul_(_deviation(high)).round_().clamp_(low, high)
        part.copy_(code_of[(numbers - low).int()])
    return codes


def _draw_x(kind: ActivationKind, m: int, k: int, generator: Any, device: Any) -> Any:
    import torch

    if kind.element.startswith("f8"):
        return _gaussian(m, k, generator, device)
    if kind.is_bipolar:
        return torch.randint(0, 1 << kind.bits, (m, k), dtype=torch.uint8, device=device, generator=generator)
    low, high = numbers_of_x(kind)
    if deviation := _deviation(high):
        numbers = torch.randn((m, k), device=device, generator=generator, dtype=torch.float16)
        return numbers.mul_(deviation).round_().clamp_(low, high).to(torch.int8)
    return torch.randint(low, high + 1, (m, k), dtype=torch.int8, device=device, generator=generator)


def _gaussian(rows: int, k: int, generator: Any, device: Any) -> Any:
    import torch

    numbers = torch.randn((rows, k), device=device, generator=generator, dtype=torch.float16)
    return (numbers * _FLOAT_DEVIATION).to(torch.float8_e4m3fn)
