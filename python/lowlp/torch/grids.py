"""The values that weights of fixed scales can have, on a device: which code is nearest, and what it means."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lowlp.numeric.host_array import AnyArray
from lowlp.weights.quantized_tensor import QuantizedTensor


class Grid:
    """The groups of weights with scalar codes.

    qw      whose scales, zero points, offsets and tables these are
    device  where columns are
    """

    def __init__(self, qw: QuantizedTensor, device: Any) -> None:
        meaning, groups = qw.meaning, qw.shape[1] // qw.group_size
        rows = slice(0, qw.shape[0])
        self._group_size = qw.group_size

        def factors(name: str) -> torch.Tensor | None:
            if getattr(meaning, name) is None:
                return None
            # [groups, N] or [1, 1]
            return torch.from_numpy(np.ascontiguousarray(meaning.factors(name, groups, rows).T)).to(device)

        scales = factors("scales")
        assert scales is not None
        self._scales, self._zeros, self._offsets = scales, factors("zeros"), factors("offsets")
        scale2 = meaning.scale2
        self._scale2 = None if scale2 is None else torch.as_tensor(np.asarray(scale2, np.float32)).to(device)
        self._sorted, self._order = sorted_values(qw, device)
        self._middles = (self._sorted[..., 1:].double() * 0.5 + self._sorted[..., :-1].double() * 0.5).float()

    def nearest(self, column: torch.Tensor, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The codes, uint8 [N], whose values are nearest to weights [N] of a column, and these values, float32."""
        group = number // self._group_size
        scale, zero, offset = (self._of_group(part, group) for part in (self._scales, self._zeros, self._offsets))
        step = scale if self._scale2 is None else scale * self._scale2
        unscaled = column if offset is None else column - offset
        unscaled = torch.where(step == 0, torch.zeros_like(unscaled), unscaled / step)
        if zero is not None:
            unscaled = unscaled + zero
        middles, ordered, order = (self._table(part, group) for part in (self._middles, self._sorted, self._order))
        if middles.ndim == 1:
            place = torch.searchsorted(middles, unscaled.contiguous())
            codes, values = order[place], ordered[place]
        else:
            place = torch.searchsorted(middles.contiguous(), unscaled[:, None].contiguous())
            codes, values = order.gather(1, place)[:, 0], ordered.gather(1, place)[:, 0]
        # In the order of `dequantize`.
        if zero is not None:
            values = values - zero
        values = scale * values
        if self._scale2 is not None:
            values = self._scale2 * values
        return codes.to(torch.uint8), values if offset is None else values + offset

    def _of_group(self, part: torch.Tensor | None, group: int) -> torch.Tensor | None:
        return None if part is None else part[group if part.shape[0] > 1 else 0]

    @staticmethod
    def _table(part: torch.Tensor, group: int) -> torch.Tensor:
        """[2**b] for all rows, or [N, 2**b]."""
        return part[:, group] if part.ndim == 3 else part


def sorted_values(qw: QuantizedTensor, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The unscaled values of a table, or of each, ascending, float32 [2**b], [N, 2**b] or [N, groups, 2**b]; and their
    codes."""
    values, codes = torch.from_numpy(_tables(qw)).to(device).sort(dim=-1)
    return values, codes


def _tables(qw: QuantizedTensor) -> AnyArray:
    """The unscaled values by code, float32 [2**b], [N, 2**b] or [N, groups, 2**b]; infinite for codes that are no
    numbers, so that these are nearest to nothing."""
    if qw.lut is not None:
        return qw.lut.astype(np.float32)
    values = qw.codec.values()
    return np.where(np.isfinite(values), values, np.float32(np.inf)).astype(np.float32)


def with_codes(qw: QuantizedTensor, codes: torch.Tensor) -> QuantizedTensor:
    """Weights with other codes, uint8 [N, K], and all else of `qw`, whose columns are in their own order."""
    host = codes.cpu().numpy()
    words = qw.form.pack_from(lambda rows: host[rows])
    return QuantizedTensor.of_parts(qw.form, qw.meaning, words)
