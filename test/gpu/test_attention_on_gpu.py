"""`lowlp.attention_decode` and `lowlp.kv_append` on a GPU: right, repeated to the bit, and in CUDA graphs whose lengths
change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from attention_reference import reference  # noqa: E402

BF16 = np.dtype(ml_dtypes.bfloat16)
LENGTHS = [1500, 0, 1, 333, 64]
# head_dim, page, kv_heads, group, tokens that ask, options.
SHAPES: list[tuple[int, int, int, int, int, dict[str, Any]]] = [
    (128, 16, 2, 4, 1, {}),
    (96, 48, 1, 1, 4, {"window": 300}),
    (256, 64, 1, 8, 4, {"sinks": True}),
    (64, 32, 2, 8, 1, {"softcap": 1.5, "sinks": True}),
    (192, 128, 1, 4, 2, {}),
]
KINDS = ("f16", "bf16", "f8e4m3", "int8", "int4", "cq-4", "cq-2")
VECTORS = {"cq-4": 2, "cq-2": 4}


def books_for(kind: str, kv_heads: int, dim: int, entries: Any = np.float16, ordered: bool = False) -> Any:
    """Codebooks, where a cache has such."""
    if kind not in VECTORS:
        return None
    shape, rng = (2, kv_heads, dim // VECTORS[kind], 256, VECTORS[kind]), np.random.default_rng(dim)
    return lowlp.KVCodebooks(rng.standard_normal(shape).astype(entries), rng.permutation(dim) if ordered else None)


def filled(
    kind: str, lengths: list[int], dim: int, page: int, kv_heads: int, recent: int = 0, **of_books: Any
) -> tuple[lowlp.KVCache, Any]:
    """A cache on the GPU with sequences of these lengths, and their block table."""
    torch.manual_seed(dim)
    width = -(-max(lengths) // page)
    cache = lowlp.KVCache(
        pages=len(lengths) * width + 1,
        page=page,
        kv_heads=kv_heads,
        head_dim=dim,
        dtype=kind,
        codebooks=books_for(kind, kv_heads, dim, **of_books),
        recent=recent,
        device="cuda",
    )
    table = torch.randperm(len(lengths) * width, device="cuda").reshape(len(lengths), width).int()
    for pages, length in zip(table, lengths, strict=True):
        tokens = torch.arange(length, device="cuda")
        k, v = torch.randn((2, length, kv_heads, dim), device="cuda", dtype=torch.float16)
        lowlp.kv_append(cache, k, v, pages[tokens // page] * page + tokens % page)
    return cache, table


def as_numpy(tensor: Any) -> np.ndarray:
    found: np.ndarray = tensor.float().cpu().numpy()
    return found


# All kinds in the usual shape, and three of them in all shapes: each takes a compilation.
IN_ALL_SHAPES = ("f16", "int4", "cq-4")
CASES = [*((kind, SHAPES[0]) for kind in KINDS), *((kind, shape) for kind in IN_ALL_SHAPES for shape in SHAPES[1:])]


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=[f"{kind}-d{shape[0]}" for kind, shape in CASES])
def test_equals_float64_and_itself(kind: str, shape: Any) -> None:
    dim, page, kv_heads, group, queries, options = shape
    cache, table = filled(kind, LENGTHS, dim, page, kv_heads)
    element = torch.bfloat16 if kind == "bf16" else torch.float16
    q = torch.randn(len(LENGTHS), queries, kv_heads * group, dim, device="cuda", dtype=element)
    given, of_host = dict(options), dict(options)
    if "sinks" in options:
        given["sinks"] = torch.randn(kv_heads * group, device="cuda")
        of_host["sinks"] = as_numpy(given["sinks"])
    lengths = torch.tensor(LENGTHS, dtype=torch.int32, device="cuda")
    o, lse = lowlp.attention_decode(q, cache, table, lengths, return_lse=True, **given)
    wanted, wanted_lse = reference(as_numpy(q), cache, table.cpu().numpy(), LENGTHS, **of_host)
    assert np.linalg.norm(as_numpy(o) - wanted) <= 2e-3 * np.linalg.norm(wanted)
    known = np.isfinite(wanted_lse)
    assert np.abs(as_numpy(lse)[known] - wanted_lse[known]).max() < 1e-4
    for _ in range(20):
        assert torch.equal(lowlp.attention_decode(q, cache, table, lengths, return_lse=True, **given)[0], o)


@pytest.mark.parametrize("kind", KINDS[2:])
def test_codes_are_those_of_the_cpu_target(kind: str) -> None:
    k, v = np.random.default_rng(0).standard_normal((2, 48, 2, 96)).astype(np.float32)
    options: dict[str, Any] = {"head_dim": 96, "dtype": kind, "codebooks": books_for(kind, 2, 96)}
    host, there = (lowlp.KVCache(pages=3, page=16, kv_heads=2, **options) for _ in range(2))
    lowlp.kv_append(host, k, v, np.arange(48))
    lowlp.kv_append(there, torch.from_numpy(k).cuda(), torch.from_numpy(v).cuda(), torch.arange(48, device="cuda"))
    for name, array in host.arrays().items():
        assert (there.arrays()[name].cpu().numpy().view(np.uint8) == array.view(np.uint8)).all()


# Each block of 2500 tokens takes batches in turn.
@pytest.mark.parametrize("tokens", [5, 2500])
@pytest.mark.parametrize("dim", [96, 192])
@pytest.mark.parametrize("kind", ["cq-4", "cq-2"])
def test_codes_found_by_tensor_cores_are_nearest(kind: str, dim: int, tokens: int) -> None:
    """Of two entries whose distances agree to 2^-18, and a few 2^-22 of the squares, either may be taken."""
    books = books_for(kind, 2, dim)
    cache = lowlp.KVCache(pages=157, page=16, kv_heads=2, head_dim=dim, dtype=kind, codebooks=books, device="cuda")
    k, v = np.random.default_rng(1).standard_normal((2, tokens, 2, dim)).astype(np.float16)
    lowlp.kv_append(cache, torch.from_numpy(k).cuda(), torch.from_numpy(v).cuda(), torch.arange(tokens, device="cuda"))
    for codes, x, side, entries in zip(cache.codes(), (k, v), ("keys", "values"), books.books, strict=True):
        found = np.concatenate(list(codes.swapaxes(1, 2)))[:tokens]  # [tokens, heads, groups]
        wanted = books.encode(x, side)
        vectors = x.reshape(*found.shape, -1).astype(np.float64)
        squares = []
        for chosen in (found, wanted):
            entry = np.take_along_axis(
                entries[None].astype(np.float64), chosen[..., None, None].astype(np.int64), axis=3
            )
            squares.append(((vectors - entry[..., 0, :]) ** 2).sum(-1))
        assert (squares[0] <= squares[1] * (1 + 2**-18) + 2**-20 * (vectors**2).sum(-1)).all()
        assert (found != wanted).mean() < 1e-3


def test_a_graph_appends_and_attends_with_lengths_that_change() -> None:
    cache, table = filled("int4", [900, 700], 128, 64, 2)
    lengths = torch.tensor([900, 700], dtype=torch.int32, device="cuda")
    slots = torch.full((2,), -1, dtype=torch.int32, device="cuda")
    q = torch.randn(2, 8, 128, device="cuda", dtype=torch.float16)
    k, v = torch.randn((2, 2, 2, 128), device="cuda", dtype=torch.float16)

    def step() -> Any:
        lowlp.kv_append(cache, k, v, slots)
        return lowlp.attention_decode(q, cache, table, lengths)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            o = step()
    for now in ([900, 700], [1, 0], [64, 65], [899, 3], [512, 511]):
        at = torch.tensor([max(0, length - 1) for length in now], device="cuda")
        slots.copy_(table[torch.arange(2, device="cuda"), at // 64] * 64 + at % 64)
        lengths.copy_(torch.tensor(now))
        graph.replay()
        torch.cuda.synchronize()
        wanted, _ = reference(as_numpy(q[:, None]), cache, table.cpu().numpy(), now)
        assert np.linalg.norm(as_numpy(o) - wanted[:, 0]) <= 2e-3 * np.linalg.norm(wanted)
        assert torch.equal(lowlp.attention_decode(q, cache, table, lengths), o)


@pytest.mark.parametrize(
    ("kind", "dim", "books"),
    [
        ("cq-4", 128, {"entries": BF16}),
        ("cq-4", 128, {"ordered": True}),
        ("cq-2", 64, {"ordered": True}),
        ("cq-2", 256, {"ordered": True}),
    ],
)
def test_books_of_bf16_and_channels_in_another_order(kind: str, dim: int, books: dict[str, Any]) -> None:
    lengths = [300, 7, 0]
    cache, table = filled(kind, lengths, dim, 32, 2, recent=100, **books)
    element = torch.bfloat16 if "entries" in books else torch.float16
    q = 3 * torch.randn(3, 2, 8, dim, device="cuda", dtype=element)
    o = lowlp.attention_decode(q, cache, table, torch.tensor(lengths, dtype=torch.int32, device="cuda"))
    wanted, _ = reference(as_numpy(q), cache, table.cpu().numpy(), lengths)
    assert np.linalg.norm(as_numpy(o) - wanted) <= 4e-3 * np.linalg.norm(wanted)


def test_sinks_of_infinity_leave_nothing() -> None:
    cache, table = filled("int4", [300], 128, 32, 2)
    q = torch.randn(1, 8, 128, device="cuda", dtype=torch.float16)
    lengths = torch.tensor([300], dtype=torch.int32, device="cuda")
    sinks = torch.full((8,), torch.inf, device="cuda")
    o, lse = lowlp.attention_decode(q, cache, table, lengths, sinks=sinks, return_lse=True)
    assert (o == 0).all() and torch.isposinf(lse).all()


@pytest.mark.parametrize(("kind", "kv_heads", "group"), [("cq-4", 32, 1), ("cq-2", 32, 1), ("cq-2", 8, 4)])
def test_blocks_keep_their_books_for_more_sequences_than_run_at_once(kind: str, kv_heads: int, group: int) -> None:
    """Also with splits, where blocks wait for those in front of them."""
    lengths = [*(97 * number % 700 for number in range(40)), 2000]
    cache, table = filled(kind, lengths, 128, 64, kv_heads)
    q = torch.randn(len(lengths), 1, kv_heads * group, 128, device="cuda", dtype=torch.float16)
    on_gpu = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    wanted, _ = reference(as_numpy(q), cache, table.cpu().numpy(), lengths)
    for splits in (None, 5):
        o = lowlp.attention_decode(q, cache, table, on_gpu, splits=splits)
        assert np.linalg.norm(as_numpy(o) - wanted) <= 2e-3 * np.linalg.norm(wanted)
        for _ in range(20):
            assert torch.equal(lowlp.attention_decode(q, cache, table, on_gpu, splits=splits), o)


@pytest.mark.parametrize("kind", ["cq-4", "cq-2"])
def test_token_by_token_gives_the_codes_of_a_prompt(kind: str) -> None:
    k, v = torch.randn((2, 3000, 8, 128), device="cuda", dtype=torch.float16)
    slots = torch.randperm(3008, device="cuda")[:3000]
    books = books_for(kind, 8, 128)
    options: dict[str, Any] = {"page": 64, "kv_heads": 8, "head_dim": 128, "dtype": kind, "codebooks": books}
    prompt, tokens = (lowlp.KVCache(pages=47, device="cuda", **options) for _ in range(2))
    lowlp.kv_append(prompt, k, v, slots)
    for token in range(0, 3000, 7):
        lowlp.kv_append(tokens, k[token : token + 7], v[token : token + 7], slots[token : token + 7])
    for name, array in prompt.arrays().items():
        assert torch.equal(array, tokens.arrays()[name])


@pytest.mark.parametrize("kind", ["f8e4m3", "int4", "cq-2"])
def test_the_newest_tokens_are_taken_in_f16(kind: str) -> None:
    lengths = [300, 7, 0]
    cache, table = filled(kind, lengths, 128, 32, 2, recent=100)
    q = 3 * torch.randn(3, 2, 8, 128, device="cuda", dtype=torch.float16)
    o = lowlp.attention_decode(q, cache, table, torch.tensor(lengths, dtype=torch.int32, device="cuda"))
    wanted, _ = reference(as_numpy(q), cache, table.cpu().numpy(), lengths)
    assert np.linalg.norm(as_numpy(o) - wanted) <= 2e-3 * np.linalg.norm(wanted)
