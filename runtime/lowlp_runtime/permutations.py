"""Orders of the columns of weights. Kernels read columns of x where these say, so what they say is checked first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import LowlpValueError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_permutation(order: NDArray[Any], k: int, name: str) -> None:
    """Raises `LowlpValueError`, which begins with `name`, unless integers [K] are each of 0 to K - 1 once."""
    import numpy as np

    wanted = f"{name}: must name each of 0 to {k - 1} once"
    if order.shape != (k,):
        raise LowlpValueError(f"{wanted}, of shape [K] = [{k}], got shape {list(order.shape)}")
    outside = order[(order < 0) | (order >= k)]
    if outside.size:
        raise LowlpValueError(f"{wanted}, got {int(outside[0])}")
    counts = np.bincount(order.astype(np.int64), minlength=k)
    if counts.max() > 1:
        raise LowlpValueError(f"{wanted}, but column {int(counts.argmax())} is in {int(counts.max())} places")
