"""Products of other libraries with activations of 8 bits: PyTorch's and humming's, from codes to results of 16 bits.

All get x quantised, as ours do: what quantises it is timed by `benchmarks/quantize_activations.py`. `_int_mm` returns
int32 and takes no scales, so its users launch another kernel, which is not in its times.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final

from lowlp.benchmarks import checking
from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.random_weights import random_activations
from lowlp.benchmarks.results import Row, rounded, with_times
from lowlp.benchmarks.theirs import random_matrix
from lowlp.benchmarks.timing import Effort, time_call
from lowlp.benchmarks.worker import first_line

from .cases import INT_MM, SCALED_MM, TORCH

_SMALL: Final = Shape(256, 1024)
_LEAST_INT_ROWS: Final = 32
"""`_int_mm` refuses 16 rows and fewer: these are padded to so many, as its users do."""


class RivalProduct:
    """A peer with weights of one kind and shape on the GPU.

    who   'torch', 'torch int_mm', 'torch scaled_mm', or 'humming' and the type of its activations
    kind  its weights: 'f16', 'int8', 'f8e4m3'; of humming 'int4' or 'int2 g128'
    """

    def __init__(self, who: str, kind: str, shape: Shape, rows: Sequence[int], device: Any, columns: int) -> None:
        import torch

        self._who, self._kind, self._shape = who, kind, shape
        weights = random_matrix(shape, device=device)
        x = random_activations(max(rows), shape.k, device)
        makers = {TORCH: _of_halves, INT_MM: _of_integers, SCALED_MM: _of_floats}
        # What is multiplied, and the meanings of x and of weights.
        if who in makers:
            self._call, self._x, meaning = makers[who](x, weights)
        else:
            self._call, self._x, meaning = _of_humming(who.split()[1], kind, x, weights, rows)
        del weights, x
        picked = checking.sampled_columns(shape.n, columns, device)
        self._columns = torch.arange(shape.n, device=device) if picked is None else picked
        self._wanted = checking.reference(self._x, meaning[self._columns])
        self._tolerance = 0.0 if who == INT_MM else checking.PEER_TOLERANCE
        torch.cuda.empty_cache()

    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Checks and times M rows. Raises what the peer raises."""
        import torch

        run = self._call(m)
        run()
        torch.cuda.synchronize()
        checking.poison_next(torch, (m, self._shape.n), self._columns.device)
        y = run()
        torch.cuda.synchronize()
        error = checking.relative_error(y[:, self._columns], self._wanted[:m])
        found = Row(
            self._who, self._kind, self._shape.n, self._shape.k, m, None, error=rounded(error, 3),
            tolerance=self._tolerance, problem=checking.problem_of(error, self._tolerance),
        )  # fmt: skip
        if found.problem:
            return found
        return with_times(found, time_call(run, stream, effort))


_Made = tuple[Callable[[int], Callable[[], Any]], Any, Any]


def _of_halves(x: Any, weights: Any) -> _Made:
    import torch

    def call(m: int) -> Callable[[], Any]:
        rows = x[:m]
        return lambda: torch.nn.functional.linear(rows, weights)

    return call, x.double(), weights


def _of_integers(x: Any, weights: Any) -> _Made:
    import torch

    x_codes = (x.float() * 32).round().clamp(-127, 127).to(torch.int8)
    codes = (weights.float() * (32 * math.sqrt(weights.shape[1]))).round().clamp(-127, 127).to(torch.int8)

    def call(m: int) -> Callable[[], Any]:
        rows = torch.nn.functional.pad(x_codes[:m], (0, 0, 0, max(0, _LEAST_INT_ROWS - m)))
        return lambda: torch._int_mm(rows, codes.t())[:m]

    return call, x_codes.double(), codes


def _of_floats(x: Any, weights: Any) -> _Made:
    import torch

    x_codes, codes = x.to(torch.float8_e4m3fn), (weights.float() * math.sqrt(weights.shape[1])).to(torch.float8_e4m3fn)
    x_scales = 0.5 + torch.rand((len(x), 1), device=x.device)
    scales = (0.5 + torch.rand((1, len(weights)), device=x.device)) / math.sqrt(weights.shape[1])

    def call(m: int) -> Callable[[], Any]:
        rows, of_rows = x_codes[:m], x_scales[:m].contiguous()
        return lambda: torch._scaled_mm(
            rows, codes.t(), scale_a=of_rows, scale_b=scales, out_dtype=torch.bfloat16, use_fast_accum=False
        )

    return call, x_codes.double() * x_scales.double(), codes.double() * scales.double().T


def _of_humming(activation: str, kind: str, x: Any, weights: Any, rows: Sequence[int]) -> _Made:
    layer, meaning = humming_layer(activation, kind, weights)
    x_codes, x_scales = _quantised_rows(activation, x)
    ranges = humming_ranges(layer.humming_config, rows)

    def call(m: int) -> Callable[[], Any]:
        part, of_part = x_codes[:m], x_scales[:m].contiguous()
        return lambda: layer(part, input_scale=of_part, tuning_config=ranges)

    return call, x_codes.double() * x_scales.double(), meaning


def _quantised_rows(activation: str, x: Any) -> tuple[Any, Any]:
    """Codes of x and their scales, f32 [M, 1], as humming quantises rows; by PyTorch, since humming compiles several
    kernels to do so for each number of rows, and none of them is timed."""
    import torch

    kind = torch.int8 if activation == "int8" else torch.float8_e4m3fn
    largest = 127.0 if activation == "int8" else torch.finfo(kind).max
    scales = x.float().abs().amax(1, keepdim=True) / largest
    numbers = x.float() / scales
    return (numbers.round() if activation == "int8" else numbers).to(kind), scales


def humming_layer(activation: str, kind: str, weights: Any) -> tuple[Any, Any]:
    """A layer of weights of a kind for activations that it quantises, ready to be called, and what its weights mean."""
    import torch
    from humming.layer import HummingLayer

    n, k = weights.shape
    name, _, group = kind.partition(" g")
    dtype = f"float{name[1:]}" if name.startswith("f") else name
    config = {"dtype": dtype, "group_size": int(group or 0)}
    of_x = {"dtype": f"float{activation[1:]}" if activation.startswith("f") else activation}
    made = HummingLayer(shape_n=n, shape_k=k, weight_config=config, input_config=of_x, torch_dtype=torch.float16).cuda()
    made.load_from_unquantized(weights)
    # Before `transform`, which reorders the tensors for the kernels.
    meaning = made.weight_schema.dequant_tensors({name: tensor.data for name, tensor in made.named_parameters()})
    made.transform()
    return made, meaning


def humming_ranges(config: Any, rows: Sequence[int]) -> str:
    """humming's own choices for these rows, as it reads them: of all ranges of M those that have one of them."""
    from lowlp.benchmarks.peers.humming_layer import ranges_of

    return ranges_of(config, rows)


def compile_humming(connection: Any, problems: Sequence[tuple[str, str, Shape]], rows: Sequence[int]) -> None:
    """Compiles what products (activations, weights, shape) of humming launch, into its cache, in a process of its own
    (`models.ahead.in_process`): sends (done, of how many), and None at the end."""
    try:
        for step in _compiled(problems, rows, os.cpu_count() or 1):
            connection.send(step)
    except Exception as error:  # the run goes on without
        connection.send(f"{type(error).__name__}: {first_line(str(error))}")
        return
    connection.send(None)


def _compiled(
    problems: Sequence[tuple[str, str, Shape]], rows: Sequence[int], workers: int
) -> Iterator[tuple[int, int]]:
    from humming.kernel.humming import HummingKernel

    weights = random_matrix(_SMALL)
    configs = {}
    for activation, kind in dict.fromkeys((activation, kind) for activation, kind, _ in problems):
        with contextlib.suppress(Exception):  # told again where it is measured
            configs[activation, kind] = humming_layer(activation, kind, weights)[0].humming_config

    def compile_one(activation: str, kind: str, shape: Shape, m: int) -> None:
        config = dataclasses.replace(configs[activation, kind], shape_n=shape.n, shape_k=shape.k)
        HummingKernel.prepare_kernels(config.to_str(), None, humming_ranges(config, [m]))

    with ThreadPoolExecutor(workers) as pool:
        jobs = [
            pool.submit(compile_one, activation, kind, shape, m)
            for activation, kind, shape in problems
            if (activation, kind) in configs
            for m in rows
        ]
        for done, job in enumerate(as_completed(jobs), 1):
            job.exception()
            yield done, len(jobs)
