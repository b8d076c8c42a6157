"""The bar that quantising shows where it is asked for."""

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import TypeVar, cast

import numpy as np

from lowlp.errors import LowlpTypeError

T = TypeVar("T")


def shown(
    items: Iterable[T], name: str, total: int, is_wanted: bool, unit: str = "block", doing: str = "quantize"
) -> Iterable[T]:
    """The items, with a bar on standard error where one is wanted and tqdm is installed. Raises `LowlpTypeError`."""
    if not isinstance(is_wanted, int | np.bool_):
        raise LowlpTypeError(f"progress: expected a bool, got {is_wanted!r:.40}")
    if not is_wanted:
        return items
    try:
        tqdm = import_module("tqdm.auto").tqdm
    except ImportError:
        return items
    return cast(Iterable[T], tqdm(items, desc=f"{doing}: {name}", unit=unit, total=total, file=sys.stderr))
