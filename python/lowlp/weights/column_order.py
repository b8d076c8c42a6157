"""The order in which weights along K are packed: their own, or that of their groups where these are no neighbours.

GPTQ with act-order quantises columns by falling importance, so that the columns of a group lie anywhere: `g_idx[k]` is
the group of column k. Packed are the columns group by group, `permutation[j]` being the column that is packed as the
j-th; kernels multiply them by the columns of x in the same order.
"""

from __future__ import annotations

import numpy as np

from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.permutations import check_permutation


def column_order(k: int, group_size: int, g_idx: object, permutation: object) -> AnyArray | None:
    """The columns in the order in which they are packed, int32 [K], read-only; None for their own order.

    group_size  weights of a row that share a scale
    g_idx       the group of each column, integers [K], of which each group has `group_size`; or None. The columns of a
                group keep their order
    permutation that order itself, integers [K]; or None

    Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    if g_idx is not None and permutation is not None:
        raise LowlpValueError("g_idx, permutation: at most one of them may be given, got both")
    if g_idx is not None:
        order = _by_group(_groups(g_idx, k, k // group_size), group_size)
    elif permutation is not None:
        order = _integers(permutation, "permutation")
        check_permutation(order, k, "permutation")
    else:
        return None
    if np.array_equal(order, np.arange(k)):
        return None
    kept = order.astype(np.int32)
    kept.setflags(write=False)
    return kept


def _by_group(groups: AnyArray, group_size: int) -> AnyArray:
    counts = np.bincount(groups, minlength=groups.size // group_size)
    wrong = np.flatnonzero(counts != group_size)
    if wrong.size:
        raise LowlpValueError(
            f"g_idx: every group must have group_size = {group_size} columns, got {int(counts[wrong[0]])} in group "
            f"{int(wrong[0])}"
        )
    return np.argsort(groups, kind="stable")


def _groups(value: object, k: int, count: int) -> AnyArray:
    array = _integers(value, "g_idx")
    if array.shape != (k,):
        raise LowlpValueError(f"g_idx: expected shape [K] = [{k}], got {list(array.shape)}")
    outside = array[(array < 0) | (array >= count)]
    if outside.size:
        raise LowlpValueError(f"g_idx: must be the numbers of groups, 0 to {count - 1}, got {int(outside[0])}")
    return array.astype(np.int64)


def _integers(value: object, name: str) -> AnyArray:
    array = as_host_array(value, name)
    if array.dtype.kind not in "iu":
        raise LowlpTypeError(f"{name}: expected integers, got elements of {array.dtype}")
    return array
