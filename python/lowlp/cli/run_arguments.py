"""The arguments of `lowlp run`: what a command line says of a kernel's parameters, as arrays and numbers."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.compiler.cpu_launch import ELEMENTS
from lowlp.numeric.dtypes import named_dtype
from lowlp_runtime.description import KernelDescription, Parameter
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

FILLS = ("random", "zeros", "ones", "arange", "undefined")
_BYTES = ("u8", "i8")
_ALIGN_BYTES = 256
_MAX_BYTES = 1 << 40


@dataclass(frozen=True)
class Argument:
    """The value of one parameter, and in words where it comes from."""

    parameter: Parameter
    value: NDArray[Any] | int | float
    origin: str

    @property
    def is_undefined(self) -> bool:
        """Whether its contents mean nothing before the kernel has written them."""
        return self.origin == "undefined"


def read_arguments(description: KernelDescription, given: Sequence[str], seed: int) -> list[Argument]:
    """One argument for each parameter, in order.

    given  texts `NAME=VALUE`, see `lowlp run --help`
    seed   of random arrays

    Raises `LowlpValueError`, `LowlpTypeError` and `OSError`, which name the parameter or the file.
    """
    texts: dict[str, str] = {}
    names = [parameter.name for parameter in description.parameters]
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in names:
            raise LowlpValueError(f"{text}: expected NAME=VALUE with a NAME among {', '.join(names)}")
        if name in texts:
            raise LowlpValueError(f"{name}: given twice")
        texts[name] = value
    missing = [_wanted(parameter) for parameter in description.parameters if parameter.name not in texts]
    if missing:
        raise LowlpValueError(f"arguments of {description.name} are missing: {'; '.join(missing)}")
    return [
        _array(parameter, texts[parameter.name], np.random.default_rng([seed, number]))
        if parameter.is_pointer
        else _number(parameter, texts[parameter.name])
        for number, parameter in enumerate(description.parameters)
    ]


def _wanted(parameter: Parameter) -> str:
    if parameter.is_pointer:
        return f"{parameter.name} (an array of {parameter.element}, as {parameter.name}=16x64)"
    return f"{parameter.name} (a number, {parameter.kind})"


def _number(parameter: Parameter, text: str) -> Argument:
    try:
        value = int(text, 0) if parameter.is_integer else float(text)
    except ValueError:
        raise LowlpValueError(f"{parameter.name}: expected a number ({parameter.kind}), got {text!r:.40}") from None
    return Argument(parameter, value, "given")


def _array(parameter: Parameter, text: str, rng: np.random.Generator) -> Argument:
    path, _, key = text.partition(":")
    if path.endswith((".npy", ".npz")):
        return Argument(parameter, _from_file(parameter, path, key), text)
    *words, shape_text = text.split(":")
    fill = "zeros" if parameter.writable else "random"
    element = ""
    for word in words:
        if word in FILLS:
            fill = word
        else:
            element = word
    shape = _stored_shape(parameter, element, _shape(parameter, shape_text))
    size = math.prod(shape) * ELEMENTS[parameter.element].itemsize
    if size > _MAX_BYTES:
        raise LowlpValueError(
            f"{parameter.name}: must have at most {_MAX_BYTES} bytes, got {size} for {shape_text!r:.40}"
        )
    array = aligned_empty(shape, ELEMENTS[parameter.element])
    array[...] = _filled(fill, shape, array.dtype, rng)
    return Argument(parameter, array, fill)


def _shape(parameter: Parameter, text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(extent) for extent in text.split("x"))
    except ValueError:
        shape = ()
    if not shape or min(shape) < 1:
        forms = f"a shape as 16x64, after one of {', '.join(FILLS)} and a colon if wanted, or a file .npy or .npz:KEY"
        raise LowlpValueError(f"{parameter.name}: expected {forms}; got {text!r:.40}")
    return shape


def _stored_shape(parameter: Parameter, element: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape, or the number of bytes where `element` is a type that is packed."""
    if not element or element == parameter.element:
        return shape
    found = named_dtype(element, parameter.name)
    if parameter.element not in _BYTES:
        raise LowlpTypeError(f"{parameter.name}: expected elements of type {parameter.element}, got {found.name}")
    return (math.ceil(math.prod(shape) * found.bits / 8),)


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """As numpy.empty, at an address that every kernel takes."""
    size = math.prod(shape) * dtype.itemsize
    buffer = np.empty(size + _ALIGN_BYTES, np.uint8)
    start = -int(buffer.__array_interface__["data"][0]) % _ALIGN_BYTES
    return buffer[start : start + size].view(dtype).reshape(shape)


def _filled(fill: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> NDArray[Any]:
    # Of integers all bits are drawn, since arrays of words hold packed codes.
    is_integer = dtype.kind in "iu"
    if fill == "random" and is_integer:
        return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
    if fill == "random":
        return rng.standard_normal(shape).astype(dtype)
    if fill == "arange":
        count = np.arange(math.prod(shape), dtype=np.int64)
        # Integers wrap around.
        return count.astype(dtype).reshape(shape)
    return np.full(shape, 1 if fill == "ones" else 0, dtype)


def _from_file(parameter: Parameter, path: str, key: str) -> NDArray[Any]:
    with Path(path).open("rb"):
        pass
    try:
        loaded: Any = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise LowlpValueError(f"{parameter.name}: {path}: {error}") from None
    if path.endswith(".npz"):
        with loaded:
            wanted = key or parameter.name
            if wanted not in loaded.files:
                raise LowlpValueError(f"{parameter.name}: {path} holds no {wanted!r}, but {', '.join(loaded.files)}")
            loaded = loaded[wanted]
    element = ELEMENTS[parameter.element]
    if loaded.dtype == np.dtype("V2") and parameter.element == "bf16":  # how numpy stores bfloat16
        loaded = loaded.view(element)
    both_integers = loaded.dtype.kind in "iu" and element.kind in "iu" and loaded.dtype.isnative
    same = loaded.dtype == element or (both_integers and loaded.dtype.itemsize == element.itemsize)
    if not same:
        raise LowlpTypeError(f"{parameter.name}: expected elements of type {element}, got {loaded.dtype} in {path}")
    array = aligned_empty(loaded.shape, loaded.dtype)
    array[...] = loaded
    return array
