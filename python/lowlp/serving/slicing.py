"""Which rows and columns of a layer's matrices this rank has: the engine is asked.

An engine's parameters and the loaders of its layers slice tensors as a checkpoint has them: by ranks, heads that are
there several times, merged projections. Formats store codes in ways that cannot be sliced like that. So the loaders get
numbers of rows and of columns, in the engine's own parameters, in place of weights: what comes back are the numbers
that this rank has, and codes are cut by them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple

import torch

from lowlp.checkpoints.layers import Layer
from lowlp.errors import CheckpointError

from .engine import Engine

_MATRIX: Final = 32
"""A number is that of a row and, from this bit on, one more than that of its matrix: 0 is padding."""


class Run(NamedTuple):
    """Rows of this rank that follow each other in one matrix; key None and `rows` from 0 on: rows of padding."""

    key: Hashable
    rows: slice
    is_padding: bool = False


def rows_and_columns(
    engine: Engine,
    layer: torch.nn.Module,
    loader: Callable[..., Any],
    layers: Mapping[Hashable, Layer],
    rows: int,
    columns: int,
    name: str,
) -> tuple[list[Run], slice]:
    """The runs of rows that this rank has, in its order, and its columns, which are the same of all matrices.

    layer    of the engine, whose ranks count
    loader   its weight loader, as it gives it for the engine's parameters
    layers   the matrices by the ids of the engine's shards
    rows, columns  how many this rank has

    Raises `CheckpointError`, which begins with `name`, where matrices are not as large as the layer.
    """
    with torch.device("cpu"):
        of_rows = engine.of_rows(layer, torch.full((rows,), -1, dtype=torch.int64), loader)
        of_columns = engine.of_columns(layer, torch.full((columns,), -1, dtype=torch.int64), loader)
        for number, (key, matrix) in enumerate(layers.items(), 1):
            n, k = matrix.shape
            shard = () if key is None else (key,)
            try:
                loader(of_rows, (number << _MATRIX) + torch.arange(n), *shard)
                # Loaders of embeddings know rows alone.
                if columns != k:
                    loader(of_columns, torch.arange(k), *shard)
                else:
                    of_columns.data.copy_(torch.arange(k))
            except (AssertionError, RuntimeError, ValueError) as error:
                rank, ranks = engine.rank(layer)
                raise CheckpointError(
                    f"{name}: {matrix.name} is {list(matrix.shape)}, which {engine.name} cannot divide into the "
                    f"[{rows}, {columns}] that rank {rank} of {ranks} has of this layer: {error}"
                ) from None
    runs = _runs(of_rows.data, list(layers), name)
    if engine.rank(layer)[1] == 1:
        # Loaders take the beginning of a matrix that is too long.
        for key, matrix in layers.items():
            held = sum(run.rows.stop - run.rows.start for run in runs if run.key == key and not run.is_padding)
            if held != matrix.shape[0]:
                raise CheckpointError(
                    f"{name}: {matrix.name} is {list(matrix.shape)}, of which the layer has {held} rows"
                )
    return runs, _columns(of_columns.data, name)


def _columns(numbers: torch.Tensor, name: str) -> slice:
    start = int(numbers[0])
    if start < 0 or not torch.equal(numbers, torch.arange(start, start + len(numbers))):
        raise CheckpointError(f"{name}: the columns of this rank are not next to each other")
    return slice(start, start + len(numbers))


def _runs(numbers: torch.Tensor, keys: list[Hashable], name: str) -> list[Run]:
    missing = (numbers < 0).nonzero()
    if len(missing):
        raise CheckpointError(
            f"{name}: {len(missing)} of its {len(numbers)} rows were not loaded, from row {int(missing[0])} on; a "
            "matrix that is merged into it is missing"
        )
    padding = numbers == 0
    ends = (numbers[1:] != numbers[:-1] + 1) & ~(padding[1:] & padding[:-1])
    starts = [0, *(int(place) + 1 for place in ends.nonzero()), len(numbers)]
    runs = []
    for start, stop in itertools.pairwise(starts):
        if padding[start]:
            runs.append(Run(None, slice(0, stop - start), is_padding=True))
            continue
        first = int(numbers[start])
        row = first & ((1 << _MATRIX) - 1)
        runs.append(Run(keys[(first >> _MATRIX) - 1], slice(row, row + stop - start)))
    return runs
