"""Times of experts on the GPU: random weights that lie there, results compared with float64 first, caches cold."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from lowlp.benchmarks.checking import OUR_TOLERANCE, PEER_TOLERANCE
from lowlp.benchmarks.results import rounded
from lowlp.benchmarks.timing import Effort, time_call
from lowlp.benchmarks.worker import first_line
from lowlp.kernels.linear.experts_choosing import schedule_for_experts
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.ops.grouped_linear import grouped_linear
from lowlp.ops.linear import linear
from lowlp.ops.linear_kernels import gpu_kernel
from lowlp.schedules.device import device_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.resident import ResidentTensor
from lowlp.weights.stored_arrays import header_of

from .cases import Case
from .results import HUMMING, LOOP, OURS, TORCH, ExpertsRow


def compile_ahead(cases: Iterable[Case], jobs: int) -> None:
    """Compiles the kernels of ours in processes of their own, which leave them in the cache of kernels."""
    device = device_of(0)
    forms = {(case.spec, schedule_for_experts(case.spec, case.rows, device)): None for case in cases}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs or None, mp_context=context) as pool:
        list(pool.map(_compile, [(*form, device.arch) for form in forms]))


def _compile(form: tuple[Any, Any, str]) -> None:
    gpu_kernel(*form)


def compile_humming(connection: Any, cases: Sequence[Case]) -> None:
    """For `in_process`: has humming compile what these cases launch."""
    try:
        from lowlp.benchmarks.peers.humming_experts import compile_ahead

        for step in compile_ahead(cases, os.cpu_count() or 1):
            connection.send(step)
    except Exception as error:  # the run goes on without
        connection.send(f"{type(error).__name__}: {first_line(str(error))}")
        return
    connection.send(None)


class Bench:
    """Measures cases; keeps one tensor of weights at a time."""

    def __init__(self, effort: Effort) -> None:
        import torch

        self._torch: Any = torch
        self._effort = effort
        self._stream = int(torch.cuda.current_stream().cuda_stream)
        self._kept: tuple[object, Any] = (None, None)

    def measure(self, who: str, case: Case) -> ExpertsRow:
        """Checks and times one. Raises whatever goes wrong."""
        with self._torch.no_grad():
            make = {OURS: self._ours, TORCH: self._theirs, HUMMING: self._humming, LOOP: self._loop}[who]
            call, error = make(case)
            tolerance = PEER_TOLERANCE if who in (TORCH, HUMMING) else OUR_TOLERANCE
            if not error <= tolerance:
                problem = f"relative error {error} against float64, more than {tolerance}"
                return ExpertsRow(who, case, error=rounded(error, 3), problem=problem)
            timing = time_call(call, self._stream, self._effort)
        return ExpertsRow(
            who,
            case,
            us=rounded(timing.median_us),
            least_us=rounded(timing.min_us),
            repeats=len(timing.samples_us),
            error=rounded(error, 3),
        )

    def _rows(self, case: Case, dtype: Any) -> tuple[Any, Any, slice]:
        """x, its offsets, and the rows of the first expert, which has the most."""
        counts = case.rows_of_experts()
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        x = self._torch.randn(case.rows, case.of.shape(case.product)[1], device="cuda").to(dtype)
        return x, self._torch.from_numpy(starts).cuda(), slice(0, int(starts[1]))

    def _keep(self, key: object, make: Callable[[], Any]) -> Any:
        if self._kept[0] != key:
            self._kept = (None, None)
            self._torch.cuda.empty_cache()
            self._kept = (key, make())
        return self._kept[1]

    def _weights(self, case: Case) -> tuple[QuantizedTensor, Any, Any, str, Any]:
        """Random codes, whose words lie on the GPU alone; these words, the scales, the header of one expert, and what
        the weights of the first mean."""
        torch, spec, codec = self._torch, case.spec, case.codec
        rng = np.random.default_rng(0)
        shape = (spec.experts, spec.n, spec.k)
        words = torch.randint(-(1 << 31), 1 << 31, (spec.experts, spec.packed_rows * spec.k * spec.bits // 32),
                              dtype=torch.int32, device="cuda")  # fmt: skip
        groups = (*shape[:2], spec.groups)
        if codec.scale == "e8m0":
            scales = rng.integers(118, 124, groups, dtype=np.uint8)
        else:
            scales = (rng.random(groups, dtype=np.float32) / 64 + 1 / 128).astype(SCALE_DTYPES[codec.scale])
        headers = [header_of(codec, extents, "f16", str(codec.code), False) for extents in (shape, shape[1:])]
        meaning = torch.from_numpy(self._one(words, scales, headers[1], 0).dequantize()).cuda()
        return ResidentTensor.of_tensor(words, {"scales": scales}, headers[0]), words, scales, headers[1], meaning

    def _one(self, words: Any, scales: Any, header: str, expert: int) -> QuantizedTensor:
        return ResidentTensor.of_tensor(words[expert], {"scales": scales[expert]}, header)

    def _error(self, y: Any, x: Any, weights: Any) -> float:
        """Of the rows of the first expert, whose weights are given in any float type."""
        want = x.double() @ weights.double().T
        return float((y.double() - want).norm() / want.norm())

    def _ours(self, case: Case) -> tuple[Callable[[], object], float]:
        key = (OURS, case.model, case.product, case.kind)
        qw, *_, meaning = self._keep(key, lambda: self._weights(case))
        x, offsets, rows = self._rows(case, self._torch.float16)
        error = self._error(grouped_linear(x, qw, offsets)[rows], x[rows], meaning)
        return lambda: grouped_linear(x, qw, offsets), error

    def _loop(self, case: Case) -> tuple[Callable[[], object], float]:
        key = (OURS, case.model, case.product, case.kind)
        _, words, scales, header, meaning = self._keep(key, lambda: self._weights(case))
        x, _, rows = self._rows(case, self._torch.float16)
        counts, parts, begin = case.rows_of_experts(), [], 0
        for number, count in enumerate(counts.tolist()):
            if count:
                parts.append((x[begin : begin + count], self._one(words, scales, header, number)))
            begin += count

        def call() -> list[Any]:
            return [linear(part, weights) for part, weights in parts]

        return call, self._error(call()[0], x[rows], meaning)

    def _humming(self, case: Case) -> tuple[Callable[[], object], float]:
        from lowlp.benchmarks.peers.humming_experts import HummingExperts

        key = (HUMMING, case.model, case.product, case.kind)
        weights = self._keep(key, lambda: HummingExperts(case).lay_down())
        x, offsets, rows = self._rows(case, self._torch.float16)
        call = weights.call(case, x, offsets)
        return call, self._error(call()[rows], x[rows], weights.meaning[0])

    def _theirs(self, case: Case) -> tuple[Callable[[], object], float]:
        torch, (n, k) = self._torch, case.of.shape(case.product)
        key = (TORCH, case.model, case.product)
        w = self._keep(key, lambda: torch.randn(case.of.experts, n, k, device="cuda", dtype=torch.bfloat16))
        x, offsets, rows = self._rows(case, torch.bfloat16)

        def call() -> Any:
            return torch._grouped_mm(x, w.transpose(-2, -1), offs=offsets[1:])

        return call, self._error(call()[rows], x[rows], w[0])
