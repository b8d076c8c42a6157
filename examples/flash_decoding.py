"""Decode attention over a cache of keys and values, split along the sequence (Flash-Decoding).

One new token a sequence: for each sequence b and each head h of the queries, with g(h) the head of keys that its group
shares and n[b] the length of the sequence,

    o[b, h] = sum over j < n[b] of p[j] * v[b, g(h), j],   p = softmax over j of (q[b, h] . k[b, g(h), j]) / sqrt(D)

A block takes the heads of one group, as rows of one product, and one part of one sequence. It walks along its part with
the largest score so far, the sum of the powers and the sum of the weighted values, and mends both sums whenever the
largest score grows. A second kernel adds up the parts of each row, scaled to their common largest score; the four warps
of a block share the parts, so its sums go across warps.

Rows of the cache come from memory 16 bytes a thread, and `ll.convert_layout` brings them into the layouts of the matrix
instruction. Beyond the length of a sequence the cache must hold finite numbers, which count for nothing. How many keys
are taken at once, and how many loads are in flight, `lowlp.autotune` finds on a GPU by measurement.

    python examples/flash_decoding.py [--batch B] [--heads H] [--group G] [--length S] [-d D] [--splits P]
    python examples/flash_decoding.py --mlir                          print the two programs in the block dialect
"""

import argparse
import math

import numpy as np

import lowlp
from lowlp import language as ll

LOWEST = -1e30  # below every score, and finite: a part may lie wholly past the end of its sequence
GROUP_ROWS = 16  # the rows of a matrix instruction, of which a group takes some
LIMIT = 2e-3

FRAGMENT_A = lowlp.column_local(2, 2).spatial(8, 4).local(1, 2)
FRAGMENT_B = lowlp.local(2, 1).column_spatial(4, 8).local(2, 1)
FRAGMENT_C = lowlp.local(2, 1).spatial(8, 4).local(1, 2)


@lowlp.autotune({"keys": [32, 16, 64], "stages": [0, 2, 3]})
def make_attention(
    batch: int, heads: int, group: int, capacity: int, d: int, splits: int, *, keys: int, stages: int
) -> ll.Kernel:
    """The kernel for a cache of `heads` heads and room for `capacity` keys, each head shared by `group` of queries.
    It takes `keys` of them at once."""
    part = math.ceil(capacity / splits / keys) * keys
    scale = math.log2(math.e) / math.sqrt(d)  # so that powers of 2 do for those of e
    queries = lowlp.local(1, d // 16) * FRAGMENT_A
    keys_b = (lowlp.local(d // 16, keys // 8) * FRAGMENT_B).permute(1, 0)
    values_b = lowlp.local(keys // 16, d // 8) * FRAGMENT_B
    scores = lowlp.local(1, keys // 8) * FRAGMENT_C
    weights = lowlp.local(1, keys // 16) * FRAGMENT_A
    outputs = lowlp.local(1, d // 8) * FRAGMENT_C
    rows = lowlp.local(keys * d // 256, 1).spatial(256 // d, d // 8).local(1, 8)

    @lowlp.kernel(grid=(batch * heads, splits), num_threads=32)
    def attention(
        q: ll.pointer("f16", align=16),
        k: ll.pointer("f16", align=16),
        v: ll.pointer("f16", align=16),
        lengths: ll.pointer("int32"),
        partial: ll.pointer("f32", align=16),
        partial_largest: ll.pointer("f32"),
        partial_total: ll.pointer("f32"),
    ) -> None:
        head, split = ll.block_indices()
        q_view = ll.view_global(q, shape=[batch * heads, group, d])
        k_view = ll.view_global(k, shape=[batch * heads, capacity, d])
        v_view = ll.view_global(v, shape=[batch * heads, capacity, d])
        length_view = ll.view_global(lengths, shape=[batch, 1])

        query = ll.load_global(q_view, offsets=[head, 0, 0], layout=queries)
        length = ll.load_global(length_view, offsets=[head // heads, 0], layout=scores.reduce([0, 1], keep_dims=True))
        largest = ll.full(LOWEST, "f32", layout=scores.reduce([1], keep_dims=True))
        total = ll.full(0.0, "f32", layout=scores.reduce([1], keep_dims=True))
        output = ll.full(0.0, "f32", layout=outputs)
        index = ll.iota(1, layout=scores, dtype="int32")
        for step in ll.range(part // keys, stages=stages):
            first = split * part + step * keys
            key = ll.convert_layout(ll.load_global(k_view, offsets=[head, first, 0], layout=rows), keys_b)
            score = ll.dot(query, ll.transpose(key), ll.full(0.0, "f32", layout=scores)) * scale
            inside = index + ll.full(first, "int32", layout=scores) < length
            score = ll.where(inside, score, ll.full(-math.inf, "f32", layout=scores))
            grown = ll.maximum(largest, ll.max(score, 1, keep_dims=True))
            power = ll.exp2(score - grown)
            mend = ll.exp2(largest - grown)
            total = total * mend + ll.sum(power, 1, keep_dims=True)
            value = ll.convert_layout(ll.load_global(v_view, offsets=[head, first, 0], layout=rows), values_b)
            weight = ll.convert_layout(ll.cast(power, "f16"), weights)
            output = ll.dot(weight, value, output * mend)
            largest = grown

        part_view = ll.view_global(partial, shape=[batch * heads, splits, group, d])
        ll.store_global(output, part_view, offsets=[head, split, 0, 0])
        for tile, pointer in ((largest, partial_largest), (total, partial_total)):
            view = ll.view_global(pointer, shape=[batch * heads, splits, group, 1])
            ll.store_global(tile, view, offsets=[head, split, 0, 0])

    return attention


def make_combine(batch: int, heads: int, group: int, d: int, splits: int) -> ll.Kernel:
    """The kernel that adds up the parts: a block for each row of the result, a warp for every fourth part."""
    layout = lowlp.local(math.ceil(splits / 4), 1).spatial(4, 32).local(1, d // 32)
    column = layout.reduce([1], keep_dims=True)

    @lowlp.kernel(grid=(batch * heads, group), num_threads=128)
    def combine(
        partial: ll.pointer("f32", align=16),
        partial_largest: ll.pointer("f32"),
        partial_total: ll.pointer("f32"),
        o: ll.pointer("f16", align=16),
    ) -> None:
        head, row = ll.block_indices()

        def load(pointer, width, tile_layout):
            """The parts of this row, one below the other."""
            strides = [splits * group * width, width, group * width, 1]
            view = ll.view_global(pointer, shape=[batch * heads, group, splits, width], strides=strides)
            return ll.load_global(view, offsets=[head, row, 0, 0], layout=tile_layout)

        is_part = ll.iota(0, layout=column) < float(splits)
        largest = ll.where(is_part, load(partial_largest, 1, column), ll.full(LOWEST, "f32", layout=column))
        weight = ll.exp2(largest - ll.max(largest, 0, keep_dims=True))
        total = ll.sum(load(partial_total, 1, column) * weight, 0, keep_dims=True)
        result = ll.sum(load(partial, d, layout) * weight, 0, keep_dims=True) / total
        o_view = ll.view_global(o, shape=[batch * heads, group, d])
        ll.store_global(ll.cast(result, "f16"), o_view, offsets=[head, row, 0])

    return combine


def make_inputs(
    batch: int, heads: int, group: int, capacity: int, d: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Queries [batch, heads, group, d], keys and values [batch, heads, capacity, d], lengths [batch]."""
    rng = np.random.default_rng(1)
    q = rng.standard_normal((batch, heads, group, d)).astype(np.float16)
    k, v = (rng.standard_normal((batch, heads, capacity, d)).astype(np.float16) for _ in range(2))
    lengths = rng.integers(1, capacity + 1, batch).astype(np.int32)
    lengths[0] = capacity
    return q, k, v, lengths


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The result in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = np.where(np.arange(k.shape[2]) < lengths[:, None, None, None], scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True) @ v


def make_partials(batch: int, heads: int, group: int, d: int, splits: int) -> list[np.ndarray]:
    """Room for what the blocks of the first kernel leave for the second."""
    return [np.full((batch, heads, splits, group, width), np.nan, np.float32) for width in (d, 1, 1)]


def run(batch: int, heads: int, group: int, capacity: int, d: int, splits: int) -> float:
    """Runs both kernels on the CPU target; returns the relative Frobenius error against float64."""
    q, k, v, lengths = make_inputs(batch, heads, group, capacity, d)
    partials = make_partials(batch, heads, group, d, splits)
    o = np.full(q.shape, np.nan, np.float16)
    counters = make_attention(batch, heads, group, capacity, d, splits)(q, k, v, lengths, *partials)
    make_combine(batch, heads, group, d, splits)(*partials, o)
    wanted = reference(q, k, v, lengths)
    error = float(np.linalg.norm(o - wanted) / np.linalg.norm(wanted))
    print(
        f"attention of {batch} x {heads * group} queries over {batch} x {heads} x {capacity} keys of {d} f16, "
        f"{splits} parts: relative error against float64 {error:.2e}"
    )
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def program_text(kernel):
    """The kernel in the block dialect, with types in full: aliases of two programs in one file would clash."""
    module = kernel.module()
    return module.body.operations[0].get_asm(use_local_scope=True) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Decode attention on the CPU target.")
    parser.add_argument("--batch", type=int, default=2, help="sequences (default: 2)")
    parser.add_argument("--heads", type=int, default=2, help="heads of keys and values (default: 2)")
    parser.add_argument("--group", type=int, default=4, help="query heads that share one, 1 to 16 (default: 4)")
    parser.add_argument("--length", type=int, default=200, help="of the longest sequence (default: 200)")
    parser.add_argument("-d", type=int, choices=(32, 64, 128, 256), default=64, help="width of a head (default: 64)")
    parser.add_argument("--splits", type=int, default=3, help="parts of a sequence (default: 3)")
    parser.add_argument("--mlir", action="store_true", help="print the programs instead")
    options = parser.parse_args()
    for name in ("batch", "heads", "length", "splits"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    if not 1 <= options.group <= GROUP_ROWS:
        parser.error(f"--group must be from 1 to {GROUP_ROWS}, got {options.group}")
    sizes = (options.batch, options.heads, options.group)
    if options.mlir:
        kernels = (
            make_attention(*sizes, options.length, options.d, options.splits).kernel_for(),
            make_combine(*sizes, options.d, options.splits),
        )
        print("// -----\n".join(map(program_text, kernels)), end="")
    elif not run(*sizes, options.length, options.d, options.splits) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
