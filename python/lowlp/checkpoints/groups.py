"""Groups of files whose last one is shorter, or whose columns lie anywhere, as groups of one size."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray


class Grouping(NamedTuple):
    """Groups of equal size.

    size         columns of a group
    parts        int [groups], of which group of the file each is a part; None: they are the file's
    permutation  the columns in the order of the groups, int [K]; None: their own
    """

    size: int
    parts: AnyArray | None = None
    permutation: AnyArray | None = None

    def spread(self, array: AnyArray) -> AnyArray:
        """What groups of the file have, [..., groups of the file], for these groups."""
        return array if self.parts is None else array[..., self.parts]


def consecutive_groups(k: int, size: int) -> Grouping:
    """Groups of `size` columns, of which the last may be shorter."""
    if k % size == 0:
        return Grouping(size)
    common = math.gcd(k, size)
    return Grouping(common, np.arange(k // common) * common // size)


def listed_groups(g_idx: AnyArray, k: int, groups: int, name: str) -> Grouping:
    """Groups of the columns for which `g_idx` [K] has the same number. Raises `CheckpointError`, which begins with
    `name`, for numbers of no group."""
    if g_idx.shape != (k,):
        raise CheckpointError(f"{name}: expected shape [{k}], got {list(g_idx.shape)}")
    numbers = g_idx.astype(np.int64)
    outside = numbers[(numbers < 0) | (numbers >= groups)]
    if outside.size:
        raise CheckpointError(f"{name}: must be the numbers of groups, 0 to {groups - 1}, got {int(outside[0])}")
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers, minlength=groups)
    size = math.gcd(*(int(count) for count in counts))
    parts = numbers[order][::size]
    same = np.array_equal(parts, np.arange(groups))
    in_order = np.array_equal(order, np.arange(k))
    return Grouping(size, None if same else parts, None if in_order else order)
