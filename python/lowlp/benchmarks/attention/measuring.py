"""Times of attention on the GPU: random caches, results compared with float64 first, caches cold."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lowlp.benchmarks.checking import OUR_TOLERANCE, PEER_TOLERANCE, relative_error
from lowlp.benchmarks.results import rounded
from lowlp.benchmarks.timing import Effort, time_call
from lowlp.kernels.attention.spec import AttentionSchedule, AttentionSpec, default_schedule, version_schedule

from .cases import APPEND, HEAD_DIM, HEADS, PAGE, Case
from .results import KEYS_ONLY, OURS, AttentionRow
from .session import Item


class Bench:
    """Measures items; keeps one cache at a time."""

    def __init__(self, effort: Effort) -> None:
        import torch

        self._torch: Any = torch
        self._effort = effort
        self._device = torch.device("cuda", torch.cuda.current_device())
        self._stream = int(torch.cuda.current_stream(self._device).cuda_stream)
        self._kept: tuple[tuple[str, Case], Any] | None = None

    def empty_us(self) -> float | None:
        """Microseconds of a kernel that does nothing."""
        from lowlp import language as ll
        from lowlp.compiler.compilation import compile

        def trace(n: Any) -> None:
            """Does nothing with its number."""

        empty = ll.make_kernel(trace, name="empty", parameters={"n": ll.i32}, grid=(1,), num_threads=32)
        launcher = compile(empty).launcher
        timing = time_call(lambda: launcher((0,), self._stream), self._stream, Effort(least=50))
        return rounded(timing.median_us)

    def measure(self, item: Item) -> AttentionRow:
        """Checks and times one. Raises whatever goes wrong."""
        with self._torch.no_grad():
            if item.kind.startswith(APPEND):
                return self._timed(item, self._append(item), None, None)
            if item.who == OURS:
                call, error = self._ours(item)
                return self._timed(item, call, error, None if item.variant == KEYS_ONLY else OUR_TOLERANCE)
            call, error = self._theirs(item)
            return self._timed(item, call, error, PEER_TOLERANCE)

    def _timed(
        self, item: Item, call: Callable[[], object], error: float | None, tolerance: float | None
    ) -> AttentionRow:
        case = item.case
        problem = ""
        if tolerance is not None and (error is None or not error <= tolerance):
            problem = f"relative error {error} against float64, more than {tolerance}"
        row = AttentionRow(
            item.who, item.kind, case.kv_heads, case.batch, case.tokens, None, variant=item.variant,
            error=None if tolerance is None else rounded(error, 3), problem=problem,
        )  # fmt: skip
        if problem:
            return row
        timing = time_call(call, self._stream, self._effort)
        times = {"us": rounded(timing.median_us), "least_us": rounded(timing.min_us)}
        return AttentionRow(**{**row.__dict__, **times, "repeats": len(timing.samples_us)})

    # --- ours ---------------------------------------------------------------------------------------------------------

    def _cache(self, kind: str, case: Case) -> tuple[Any, Any]:
        """A cache full of tokens, and its block table."""
        if self._kept is not None and self._kept[0] == (kind, case):
            found: tuple[Any, Any] = self._kept[1]
            return found
        self._kept = None
        self._torch.cuda.empty_cache()
        from lowlp.ops.kv_append import kv_append
        from lowlp.ops.kv_cache import KVCache
        from lowlp.weights.quantize.kv_codebooks import KVCodebooks

        torch, width = self._torch, -(-case.tokens // PAGE)
        books = None
        generator = torch.Generator(device=self._device).manual_seed(case.tokens + case.kv_heads)
        if vector := {"cq-4": 2, "cq-2": 4}.get(kind):
            shape = (2, case.kv_heads, HEAD_DIM // vector, 256, vector)
            books = KVCodebooks(torch.randn(shape, generator=generator, device=self._device).half().cpu().numpy())
        cache = KVCache(
            pages=case.batch * width, page=PAGE, kv_heads=case.kv_heads, head_dim=HEAD_DIM, dtype=kind,
            codebooks=books, device=self._device,
        )  # fmt: skip
        table = torch.randperm(case.batch * width, generator=generator, device=self._device)
        table = table.reshape(case.batch, width).int()
        # By parts, so that keys in f16 take little memory beside the cache.
        for first in range(0, case.batch * width * PAGE, 1 << 15):
            slots = torch.arange(first, min(first + (1 << 15), case.batch * width * PAGE), device=self._device)
            rows = (2, len(slots), case.kv_heads, HEAD_DIM)
            k, v = torch.randn(rows, generator=generator, device=self._device, dtype=torch.float16)
            kv_append(cache, k, v, slots)
        self._kept = ((kind, case), (cache, table))
        return cache, table

    def _queries(self, case: Case, kind: str = "f16") -> Any:
        torch = self._torch
        generator = torch.Generator(device=self._device).manual_seed(1)
        shape, element = (case.batch, HEADS, HEAD_DIM), torch.bfloat16 if kind == "bf16" else torch.float16
        return torch.randn(shape, generator=generator, device=self._device, dtype=element)

    def _ours(self, item: Item) -> tuple[Callable[[], object], float]:
        from lowlp.ops.attention import attention_by, attention_decode

        case = item.case
        cache, table = self._cache(item.kind, case)
        q = self._queries(case, item.kind)
        lengths = self._torch.full((case.batch,), case.tokens, dtype=self._torch.int32, device=self._device)
        if item.variant == KEYS_ONLY:
            return attention_by(_without_values, q, cache, table, lengths), math.nan
        call: Callable[[], Any] = functools.partial(attention_decode, q, cache, table, lengths)
        if item.variant:
            call = attention_by(functools.partial(version_schedule, version=item.variant), q, cache, table, lengths)
        o = call()
        # One sequence is compared: all would be gigabytes in float64.
        keys, values = _of_sequence(cache, table[0].cpu().numpy(), case.tokens)
        wanted = _reference(self._torch, q[:1], keys.to(self._device), values.to(self._device))
        error = relative_error(o[:1].reshape(1, -1), wanted.reshape(1, -1))
        return call, error

    def _append(self, item: Item) -> Callable[[], object]:
        from lowlp.ops.kv_append import kv_append

        case = item.case
        cache, table = self._cache(item.kind.removeprefix(APPEND).strip(), Case(case.kv_heads, case.batch, PAGE))
        rows = (2, case.batch, case.kv_heads, HEAD_DIM)
        k, v = self._torch.randn(rows, device=self._device, dtype=self._torch.float16)
        slots = table[:, 0] * PAGE
        return lambda: kv_append(cache, k, v, slots)

    # --- peers --------------------------------------------------------------------------------------------------------

    def _theirs(self, item: Item) -> tuple[Callable[[], object], float]:
        torch, case = self._torch, item.case
        self._kept = None
        torch.cuda.empty_cache()
        q = self._queries(case)
        shape = (case.batch, case.kv_heads, case.tokens, HEAD_DIM)
        if item.who == "torch":
            k, v = (torch.randn(shape, device=self._device, dtype=torch.float16) for _ in range(2))
            attend = torch.nn.functional.scaled_dot_product_attention

            def call() -> Any:
                return attend(q[:, :, None], k, v, enable_gqa=case.kv_heads != HEADS)

            wanted = _reference(torch, q[:1], k[0].transpose(0, 1), v[0].transpose(0, 1))
            return call, relative_error(call()[:1].reshape(1, -1), wanted.reshape(1, -1))
        return self._flashinfer(case, q)

    def _flashinfer(self, case: Case, q: Any) -> tuple[Callable[[], object], float]:
        torch, width = self._torch, -(-case.tokens // PAGE)
        flashinfer = importlib.import_module("flashinfer")
        pages = case.batch * width
        cache = torch.randn((pages, 2, PAGE, case.kv_heads, HEAD_DIM), device=self._device, dtype=torch.float16)
        workspace = torch.empty(256 << 20, dtype=torch.uint8, device=self._device)
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
        starts = torch.arange(case.batch + 1, dtype=torch.int32, device=self._device) * width
        indices = torch.randperm(pages, device=self._device).int()
        last = torch.full((case.batch,), case.tokens - (width - 1) * PAGE, dtype=torch.int32, device=self._device)
        wrapper.plan(
            starts, indices, last, HEADS, case.kv_heads, HEAD_DIM, PAGE, q_data_type=q.dtype, kv_data_type=q.dtype
        )
        of_first = cache[indices[:width].long()]
        keys, values = (of_first[:, part].reshape(-1, case.kv_heads, HEAD_DIM)[: case.tokens] for part in range(2))
        wanted = _reference(torch, q[:1], keys, values)
        return lambda: wrapper.run(q, cache), relative_error(
            wrapper.run(q, cache)[:1].reshape(1, -1), wanted.reshape(1, -1)
        )


def _without_values(spec: AttentionSpec) -> AttentionSchedule:
    return replace(default_schedule(spec), has_values=False)


def _of_sequence(cache: Any, pages: Any, tokens: int) -> tuple[Any, Any]:
    """Keys and values of a sequence as attention takes them, [tokens, kv_heads, head_dim] of float32."""
    import torch

    found = []
    for array in cache.dequantize(pages):
        rows = torch.from_numpy(array).transpose(1, 2)
        found.append(rows.reshape(-1, cache.kv_heads, cache.head_dim)[:tokens])
    return found[0], found[1]


def _reference(torch: Any, q: Any, keys: Any, values: Any) -> Any:
    """[1, heads, head_dim] in float64, of keys and values [tokens, kv_heads, head_dim]."""
    group = q.shape[1] // keys.shape[1]
    of_heads = [part.double().repeat_interleave(group, dim=1) for part in (keys, values)]
    scores = torch.einsum("hd,nhd->hn", q[0].double(), of_heads[0]) / math.sqrt(HEAD_DIM)
    return torch.einsum("hn,nhd->hd", scores.softmax(dim=-1), of_heads[1])[None]
