"""Attention over caches of codebooks, in VQ-LLM's versions too, and appending to them; beside these `int4`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

import lowlp
from cases.case import Case
from lowlp.compiler.compilation import compile_cpu
from lowlp.compiler.kernel_cache import Once
from lowlp.kernels.attention.spec import CACHE_TYPES, version_schedule
from lowlp.ops import attention, kv_append

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from attention_reference import filled_cache, reference

LENGTHS = [0, 1, 77, 150]
PAGE = 64
# Type of the cache, query heads that share a head, how many newest tokens are in f16, order of channels, options.
DECODED: list[tuple[str, int, int, bool, dict[str, Any]]] = [
    ("cq-4", 1, 0, False, {}),
    ("cq-4", 4, 32, False, {"window": 100}),
    ("cq-2", 4, 0, True, {"softcap": 1.5}),
    ("cq-2", 1, 0, False, {"splits": 3}),
    ("int4", 4, 0, False, {"splits": 3}),
    ("int4", 16, 0, False, {"splits": 2}),
]
SHOWN = ("gc", "o2", "o3", "o4")
"""Versions of VQ-LLM's table IV: sc and o1 are o2 where no frequencies are known."""
APPENDED = (("cq-4", 1, "keys"), ("cq-4", 4, "values"), ("cq-2", 4, "keys"), ("int4", 4, "values"))
"""Type of the cache, pages of 16 new tokens, what is compared."""


@contextmanager
def recorded(module: ModuleType) -> Iterator[list[tuple[Any, dict[str, Any]]]]:
    """The kernels that calls run on the CPU target, each with its arguments as they were before."""
    found: list[tuple[Any, dict[str, Any]]] = []

    def compile_and_record(definition: Any) -> Any:
        run = compile_cpu(definition)

        def call(**given: Any) -> None:
            copies = {name: part.copy() if isinstance(part, np.ndarray) else part for name, part in given.items()}
            found.append((definition, copies))
            run(**given)

        return call

    with patch.object(module, "compile_cpu", compile_and_record), patch.object(module, "_kernels", Once()):
        yield found


def made_cache(rng: np.random.Generator, kind: str, recent: int = 0, ordered: bool = False) -> dict[str, Any]:
    """Arguments of a `KVCache` with two heads of 128 channels."""
    options: dict[str, Any] = {"dtype": kind, "head_dim": 128, "kv_heads": 2}
    if vector := CACHE_TYPES[kind].vector:
        # Of few numbers, so that files are small.
        books = np.round(2 * rng.standard_normal((2, 2, 128 // vector, 256, vector))).astype(np.float16) / 2
        options["codebooks"] = lowlp.KVCodebooks(books, rng.permutation(128) if ordered else None)
    return options | ({"recent": recent} if recent else {})


def decoded(arch: str) -> Iterator[Case]:
    for number, (kind, group, recent, ordered, options) in enumerate(DECODED):
        rng = np.random.default_rng(number)
        cache, table = filled_cache(rng, LENGTHS, page=PAGE, **made_cache(rng, kind, recent, ordered))
        q = rng.standard_normal((len(LENGTHS), 1, 2 * group, 128)).astype(np.float16)
        lengths = np.array(LENGTHS, np.int32)
        of_scores = {name: value for name, value in options.items() if name != "splits"}
        wanted = reference(q, cache, table, LENGTHS, **of_scores)[0]
        with recorded(attention) as calls:
            lowlp.attention_decode(q, cache, table, lengths, **options)
            if not options and not recent:
                for version in SHOWN:
                    schedule_of = functools.partial(version_schedule, version=version)
                    attention.attention_by(schedule_of, q, cache, table, lengths)()
        for version, (definition, arguments) in zip(["", *SHOWN], calls, strict=False):
            name = "_".join(["decode", kind, str(group), *options, *([version] if version else [])])
            yield Case(name, lowlp.compile(definition, arch), arguments, "out", wanted, 2e-3)


def appended(arch: str) -> Iterator[Case]:
    """New tokens fill their pages, so that all codes are written."""
    for kind, pages, output in APPENDED:
        rng = np.random.default_rng(pages)
        cache = lowlp.KVCache(pages=pages, page=16, device="cpu", **made_cache(rng, kind))
        k, v = rng.standard_normal((2, 16 * pages, 2, 128)).astype(np.float16)
        with recorded(kv_append) as calls:
            lowlp.kv_append(cache, k, v, rng.permutation(16 * pages).astype(np.int32))
        [(definition, arguments)] = calls
        wanted = cache.arrays()[output].view(arguments[output].dtype)
        yield Case(f"append_{kind}_{16 * pages}", lowlp.compile(definition, arch), arguments, output, wanted, 0.0)


def cases(arch: str) -> Iterator[Case]:
    yield from decoded(arch)
    yield from appended(arch)
