"""Attention of one token over codes of codebooks (CQ, arXiv 2405.03917): 4 channels side by side share a code.

o = softmax(q k^T / sqrt(D)) v for each head, keys and values looked up in a book of 256 entries for each group of
channels. A block of one warp has one head and takes 16 tokens at a time.

Lanes that look up the same group of channels of different tokens would read one book, and meet in a bank of shared
memory. So in the row of token n the codes of four neighbouring groups are exchanged: slot s has the code of group
s ^ x(n), x of two bits. A line of shared memory has an entry of all books, each in banks of its own, and the 16 lanes
of a phase read 16 books.

    S = K Q^T      the channels of row n are then in the order of x(n). A query has four columns of Q, one for each x,
                   with its channels in that order, and a token counts in the column of its own x alone.
    O^T = V^T P    column x adds the tokens of that x, whose channels are in one order; columns are added at the end.

    python examples/vq_attention.py [--tokens T] [--heads H]     run on the CPU target, compare with float64
    python examples/vq_attention.py --mlir                       print the program in the block dialect
"""

import argparse
import math

import numpy as np

import lowlp
from lowlp import language as ll
from lowlp import local, spatial

D, VECTOR, ENTRIES, TOKENS, CLASSES, COLUMNS = 128, 4, 256, 16, 4, 8
GROUPS = D // VECTOR
MASKS = (5, 2)  # bit b of x(n) is the parity of n & MASKS[b]
LIMIT = 2e-3

# Keys, [tokens, groups]: lane 4 g + t has groups 4 t to 4 t + 3 and 16 more of tokens g and g + 8.
KEY_CODES = local(2, 2).spatial(8, 4).local(1, 4)
KEYS_A = local(2, 2).local(1, 8).spatial(8, 4).local(1, 2)  # their channels as operand A
QUERY = local(1, 2).spatial(8, 4).local(1, 16)  # [columns, channels], alike
QUERY_PLACES = spatial(8, 1).local(2, 1).spatial(4, 1).local(16, 1)  # [columns * channels, 1]
QUERY_B = local(1, 2).local(1, 8).spatial(8, 4).local(1, 2)
# Values: lane 4 g + t has groups 4 g to 4 g + 3 of tokens 2 t, 2 t + 1, 2 t + 8 and 2 t + 9.
VALUE_CODES = local(2, 1).column_spatial(4, 8).local(2, 4)
PAIRED = local(2, 1).column_spatial(4, 8).column_local(2, 16)  # with two tokens side by side
VALUES_A = local(2, 1).local(1, 16).column_spatial(4, 8).local(2, 1)
SCORES = local(2, 1).spatial(8, 4).local(1, 2)  # [tokens, columns]
WEIGHTS_B = local(2, 1).column_spatial(4, 8).local(2, 1)
SUMS = local(16, 1).spatial(8, 4).local(1, 2)  # [channels, columns], channels in the order of VALUES_A
# The same registers as [group / 4, group % 4, channel, columns].
SUMS_BY_GROUP = spatial(8, 1, 1, 1).local(1, 4, 4, 1).spatial(1, 1, 1, 4).local(1, 1, 1, 2)
IN_LINES = ll.CodebookCache(shared=ENTRIES, line_bytes=256)


def class_of(token: ll.Tile) -> ll.Tile:
    """x of tokens."""
    return ((token ^ (token >> 2)) & 1) | (token & 2)


def make_attention(heads: int, tokens: int) -> ll.Kernel:
    """The kernel for so many heads and tokens, a multiple of 16."""

    @lowlp.kernel(grid=(heads,), num_threads=32)
    def vq_attention(
        q: ll.pointer("f16", align=16),
        keys: ll.pointer("uint8", align=16),
        values: ll.pointer("uint8", align=16),
        books: ll.pointer("f16", align=16),
        o: ll.pointer("f32", align=16),
    ) -> None:
        (head,) = ll.block_indices()
        view = ll.view_global(books, shape=[heads, 2, GROUPS, ENTRIES, VECTOR])
        key_books = ll.load_codebook(view, offsets=[head, 0], cache=IN_LINES)
        value_books = ll.load_codebook(view, offsets=[head, 1], cache=IN_LINES)
        # Column c, of class c % 4, has channel s of the query at the place of its group s / 4 ^ class.
        number = ll.iota(0, layout=QUERY_PLACES, dtype="int32")
        slot, x = number % D // VECTOR, number // D % CLASSES
        place = (slot ^ x) * VECTOR + number % VECTOR
        view = ll.view_global(q, shape=[heads, D, 1])
        query = ll.gather_global(view, place, dim=0, offsets=[head, 0, 0], layout=QUERY_PLACES, in_bounds=True)
        query = ll.transpose(ll.view(query, dtype="f16", layout=QUERY_B))
        # Only tokens of a column's class count in it, and columns 4 to 7 are idle.
        column = ll.iota(1, layout=SCORES, dtype="int32")
        counts = ll.equal(class_of(ll.iota(0, layout=SCORES, dtype="int32")) - column, 0)
        nothing = ll.full(-math.inf, "f32", layout=SCORES)
        largest = ll.full(-1e30, "f32", layout=SCORES.reduce([0], keep_dims=True))
        total = ll.full(0.0, "f32", layout=SCORES.reduce([0], keep_dims=True))
        sums = ll.full(0.0, "f32", layout=SUMS)
        key_codes = ll.view_global(keys, shape=[heads, tokens, GROUPS])
        value_codes = ll.view_global(values, shape=[heads, tokens, GROUPS])
        for step in ll.range(tokens // TOKENS):
            at = [head, step * TOKENS, 0]
            codes = ll.load_global(key_codes, offsets=at, layout=KEY_CODES, in_bounds=True)
            key = ll.lookup_vectors(codes, key_books, along=1, book_along=1, staggered=(0, *MASKS))
            score = ll.dot(ll.view(key, dtype="f16", layout=KEYS_A), query, ll.full(0.0, "f32", layout=SCORES))
            score = ll.where(counts, score * (math.log2(math.e) / math.sqrt(D)), nothing)
            grown = ll.maximum(largest, ll.max(score, 0, keep_dims=True))
            weight, mend = ll.exp2(score - grown), ll.exp2(largest - grown)
            total = total * mend + ll.sum(weight, 0, keep_dims=True)
            codes = ll.load_global(value_codes, offsets=at, layout=VALUE_CODES, in_bounds=True)
            value = ll.lookup_vectors(codes, value_books, along=1, book_along=1, staggered=(0, *MASKS))
            value = ll.transpose(ll.view(ll.convert_layout(value, PAIRED), dtype="f16", layout=VALUES_A))
            sums = ll.dot(value, ll.convert_layout(ll.cast(weight, "f16"), WEIGHTS_B), sums * mend)
            largest = grown
        # Each column has its own maximum, and group g of column c in slot g ^ c.
        of_all = ll.max(largest, 1, keep_dims=True)
        mend = ll.exp2(largest - of_all)
        denominator = ll.sum(total * mend, 1, keep_dims=True)
        sums = ll.view(sums * (mend / denominator), dtype="f32", layout=SUMS_BY_GROUP)
        by_class = ll.alloc_shared("f32", [GROUPS // 4, 4, VECTOR, COLUMNS])
        ll.store_shared(sums, by_class, offsets=[0, 0, 0, 0])
        ll.synchronize()
        out = ll.view_global(o, shape=[heads, GROUPS // 4, 4, VECTOR])
        held = spatial(8, 1, 4)
        for group in range(4):
            result = ll.full(0.0, "f32", layout=held)
            for c in range(CLASSES):
                found = ll.load_shared(by_class, offsets=[0, group ^ c, 0, c], layout=held.unsqueeze(3))
                result = result + ll.view(found, dtype="f32", layout=held)
            ll.store_global(result, out, offsets=[head, 0, group, 0])

    return vq_attention


def in_memory(codes: np.ndarray) -> np.ndarray:
    """Codes [heads, tokens, groups] with those of neighbouring groups exchanged."""
    token = np.arange(codes.shape[1]) % 8
    x = ((token ^ token >> 2) & 1) | (token & 2)
    places = np.arange(GROUPS) ^ x[:, None]
    return np.ascontiguousarray(np.take_along_axis(codes, np.broadcast_to(places, codes.shape), axis=2))


def run(heads: int, tokens: int) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    random = np.random.default_rng(1)
    books = random.standard_normal((heads, 2, GROUPS, ENTRIES, VECTOR), np.float32).astype(np.float16)
    codes = random.integers(0, ENTRIES, (2, heads, tokens, GROUPS), np.uint8)
    q = (3 * random.standard_normal((heads, D), np.float32)).astype(np.float16)
    o = np.full((heads, D), np.nan, np.float32)
    counters = lowlp.compile_cpu(make_attention(heads, tokens))(q, *map(in_memory, codes), books, o)
    head, group = np.arange(heads)[:, None, None], np.arange(GROUPS)
    k, v = (books[head, part, group, codes[part]].reshape(heads, tokens, D).astype(np.float64) for part in range(2))
    scores = np.einsum("hd,hnd->hn", q.astype(np.float64), k) / math.sqrt(D)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = np.einsum("hn,hnd->hd", powers / powers.sum(axis=1, keepdims=True), v)
    error = float(np.linalg.norm(o - wanted) / np.linalg.norm(wanted))
    print(f"{heads} heads of {D}, {tokens} tokens of 2 bits a channel: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Attention of one token over codes of codebooks.")
    parser.add_argument("--heads", type=int, default=2, help="of queries, keys and values (default: 2)")
    parser.add_argument("--tokens", type=int, default=64, help="a multiple of 16 (default: 64)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    if options.heads < 1 or options.tokens < TOKENS or options.tokens % TOKENS:
        parser.error("--heads must be at least 1, --tokens a multiple of 16")
    if options.mlir:
        print(make_attention(options.heads, options.tokens).mlir)
    elif not run(options.heads, options.tokens) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
