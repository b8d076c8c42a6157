"""QuantizedTensor with codebooks: packing, exact meaning, slices, files, and every refusal."""

import itertools
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import QuantizedTensor
from lowlp.numeric.codec import Codec
from lowlp.numeric.vectors import Vectors, lattice_vectors, vq
from lowlp_runtime import LowlpTypeError, LowlpValueError

ENTRIES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
}


def entries_of(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    if kind == "int8":
        return random.integers(-128, 128, shape).astype(np.int8)
    return random.normal(0, 1, shape).astype(ENTRIES[kind])


def codes_of(random: np.random.Generator, shape: tuple[int, ...], bits: int) -> Any:
    return random.integers(0, 1 << bits, shape).astype(np.uint8 if bits <= 8 else np.uint16)


def gathered(codes: Any, books: Any, book_scales: Any, block: tuple[int, int]) -> Any:
    """Row by row and vector by vector: entries of float32, added book by book."""
    n, vectors, count = codes.shape
    v = books.shape[-1]
    found = np.empty((n, vectors, v), np.float32)
    for row, j in itertools.product(range(n), range(vectors)):
        at = (row // block[0], j * v // block[1]) if books.ndim == 5 else ()
        for book in range(count):
            entry = books[(*at, book, codes[row, j, book])].astype(np.float32)
            if book_scales is not None:
                entry = book_scales[(*at, book)] * entry
            found[row, j] = entry if book == 0 else found[row, j] + entry
    return found.reshape(n, -1)


@pytest.mark.parametrize("seed", range(24))
def test_codes_and_values_are_those_of_a_gather(seed: int) -> None:
    """Codes of all widths, vectors and numbers of books, by a seeded draw, with books of tensors and of blocks."""
    random = np.random.default_rng(seed)
    v, bits, books = int(random.choice([2, 4, 8, 16])), int(random.integers(1, 13)), int(random.integers(1, 5))
    kind, blocks = list(ENTRIES)[seed % 4], seed % 3
    n, k = int(random.integers(1, 40)), 16 * int(random.integers(1, 20))
    block = (int(random.integers(1, n + 1)), v * int(random.integers(1, k // v + 1)))
    counts = (-(-n // block[0]), -(-k // block[1])) if blocks else ()
    entries = entries_of(random, kind, (*counts, books, 1 << bits, v))
    factors = random.normal(0, 1, (*counts, books)).astype(np.float32) if kind in ("int8", "f8e4m3") else None
    codes = codes_of(random, (n, k // v, books), bits)
    scales = random.normal(0, 0.1, (n, k // 16)).astype(np.float16)
    more: dict[str, Any] = {"book_per": block} if blocks else {}
    qw = QuantizedTensor(codes, codebooks=entries, scales=scales, book_scales=factors, **more)
    assert (qw.codes == codes).all() and qw.codes.dtype == codes.dtype
    assert qw.shape == (n, k) and qw.bits == bits and qw.group_size == 16
    wanted = np.repeat(scales.astype(np.float32), 16, axis=1) * gathered(codes, entries, factors, block)
    assert np.array_equal(qw.dequantize(), wanted)
    assert pickle.loads(pickle.dumps(qw)) == qw
    assert Codec.parse(qw.codec.text) == qw.codec


def test_bytes_are_those_of_the_codes() -> None:
    random = np.random.default_rng(0)
    for v, bits, books in ((8, 8, 2), (8, 12, 2), (8, 16, 1), (4, 8, 1), (2, 10, 1)):
        codes = codes_of(random, (64, 1024 // v, books), bits)
        entries = entries_of(random, "f16", (books, 1 << bits, v))
        qw = QuantizedTensor(codes, codebooks=entries)
        assert qw.packed.nbytes == 64 * 1024 // v * books * bits // 8
        assert qw.nbytes == qw.packed.nbytes + entries.nbytes + 4  # a scale of 1


@pytest.mark.parametrize("scales", [None, 0.5, np.float16(0.25), np.full((1, 1), 2, np.float32)])
def test_scales_of_the_tensor(scales: Any) -> None:
    random = np.random.default_rng(1)
    entries = entries_of(random, "f16", (1, 16, 8))
    codes = codes_of(random, (20, 4, 1), 4)
    qw = QuantizedTensor(codes, codebooks=entries, scales=scales)
    factor = np.float32(1 if scales is None else np.asarray(scales).reshape(()))
    assert np.array_equal(qw.dequantize(), factor * entries[0].astype(np.float32)[codes[..., 0]].reshape(20, 32))
    assert qw.codec.group == "tensor" and qw.scales.shape == (1, 1)
    of_rows = QuantizedTensor(codes, codebooks=entries, scales=np.ones((20, 1), np.float16))
    assert of_rows.codec == Codec.parse("vec8:1x4:f16 channel f16")


def test_a_gpu_packs_to_the_same_words() -> None:
    """The operations of an array library, here numpy's, pack as the library does."""
    from lowlp.numeric.array_ops import NumpyOps
    from lowlp.weights.array_packing import pack_with, unpack_with
    from lowlp.weights.packing import find_placement

    random = np.random.default_rng(2)
    for v, bits, books in itertools.product((2, 8, 16), (3, 8, 12), (1, 2, 3)):
        for unit_k in find_placement(vq(v, bits, books), "f16").unit_ks:
            placement = find_placement(vq(v, bits, books), "f16").with_unit_k(unit_k)
            columns = codes_of(random, (33, 80 // v * books), bits)
            packed = pack_with(NumpyOps(1), placement, columns, 0)
            assert np.array_equal(packed, placement.pack(columns, 0, 1))
            assert np.array_equal(unpack_with(NumpyOps(1), placement, packed, 33, 80, 0), columns)


#
# Computed books.
#


def e8p_by_evenness(code: int, absolute: Any) -> Any:
    """QuIP#, section 4.2: the sign that a code leaves out makes the sum of the vector even, before 1/4 is added."""
    bits = [code >> bit & 1 for bit in range(8)]
    signs = dict(zip((2, 4, 6, 1, 3, 5, 7), bits[1:], strict=True))
    vector = absolute[code >> 8].copy()
    signs[7] ^= int(vector.sum()) % 2
    for element, is_negative in signs.items():
        vector[element] *= 1 - 2 * is_negative
    vector[0] *= 1 - 2 * (int(vector.sum()) % 2)
    return vector + (-0.25 if sum(bits) % 2 else 0.25)


def absolute_vectors() -> Any:
    grid = np.stack(np.meshgrid(*[np.array([0.5, 1.5, 2.5])] * 8, indexing="ij"), axis=-1).reshape(-1, 8)
    short = grid[(grid**2).sum(axis=1) <= 10]
    # The places of 1/2 in the others, in the order of the format.
    halves = (
        "123 023 013 012 367 357 347 356 346 345 267 257 247 256 246 245 167 157 147 156 146 045 067 057 047 056 046"
    )
    others = np.full((29, 8), 1.5)
    for row, places in enumerate((*halves.split(), "014", "237")):
        others[row, [int(place) for place in places]] = 0.5
    return np.concatenate([short, others])


def test_e8p_is_the_lattice_of_quip() -> None:
    absolute = absolute_vectors()
    assert absolute.shape == (256, 8)
    table = lattice_vectors("e8p")
    for code in np.random.default_rng(3).integers(0, 1 << 16, 3000):
        assert np.array_equal(table[code], e8p_by_evenness(int(code), absolute))


@pytest.mark.parametrize(("name", "factor"), [("e8p", 0.0), ("e8p+e81b", 1 / 2.04), ("e8p+e8p", 1 / 3.45)])
def test_computed_books(name: str, factor: float) -> None:
    random = np.random.default_rng(4)
    kind = Vectors.lattice(name)
    codes = np.stack([random.integers(0, 1 << bits, (20, 12)) for bits in kind.bits_of_books], axis=-1)
    scales = random.normal(0, 0.1, (20, 1)).astype(np.float32)
    qw = QuantizedTensor(codes.astype(np.uint16), codebooks=name, scales=scales)
    assert (qw.codes == codes).all()
    values = lattice_vectors("e8p")[codes[..., 0]]
    if factor:
        second = name.split("+")[1]
        values = values + np.float32(factor) * lattice_vectors(second)[codes[..., 1]]
    assert np.array_equal(qw.dequantize(), scales * values.reshape(20, 96))
    assert qw.codebooks is None and qw.codec.text == f"{name} channel f32"
    assert pickle.loads(pickle.dumps(qw)) == qw
    bits = {"e8p": 2, "e8p+e81b": 3, "e8p+e8p": 4}[name]
    assert kind.bits_per_weight == bits
    whole = QuantizedTensor(np.zeros((64, 64, len(kind.bits_of_books)), np.uint16), codebooks=name)
    assert whole.packed.nbytes == 64 * 512 * bits // 8


#
# Parts, and experts.
#


def blocks(n: int = 128, k: int = 512, block: tuple[int, int] = (32, 256), seed: int = 5) -> QuantizedTensor:
    random = np.random.default_rng(seed)
    entries = entries_of(random, "int8", (-(-n // block[0]), -(-k // block[1]), 2, 256, 8))
    factors = random.normal(0, 1, entries.shape[:3]).astype(np.float32)
    codes = codes_of(random, (n, k // 8, 2), 8)
    scales = random.normal(0, 1, (n, k // 128)).astype(np.float16)
    return QuantizedTensor(codes, codebooks=entries, scales=scales, book_scales=factors, book_per=block)


def test_slices_have_their_blocks() -> None:
    qw = blocks()
    part = qw[32:96, 256:]
    assert part.codebooks is not None and part.codebooks.shape == (2, 1, 2, 256, 8)
    assert part.book_scales is not None and part.book_scales.shape == (2, 1, 2)
    assert np.array_equal(part.dequantize(), qw.dequantize()[32:96, 256:])
    assert lowlp.concat([qw[:32], qw[32:96], qw[96:]]) == qw
    with pytest.raises(LowlpValueError, match=r"^rows: 16 is not between units of 16 rows and blocks of 32 rows that"):
        qw[:16]
    with pytest.raises(LowlpValueError, match=r"^columns: 128 is not between units of 128 weights, blocks of 256 that"):
        qw[:, :128]
    with pytest.raises(
        LowlpValueError, match=r"^tensors\[0\]: must end between units of 16 rows and blocks of 32 rows"
    ):
        lowlp.concat([blocks(n=48), blocks(n=48)])


def test_projections_with_books_of_their_own_are_merged() -> None:
    """Codebooks of whole tensors become those of blocks of rows; where they are the same they stay one."""
    random = np.random.default_rng(6)

    def made(n: int, entries: Any) -> QuantizedTensor:
        return QuantizedTensor(codes_of(random, (n, 32, 2), 8), codebooks=entries, scales=np.ones((n, 1), np.float16))

    first, second = (entries_of(random, "f16", (2, 256, 8)) for _ in range(2))
    q, k = made(64, first), made(32, second)
    merged = lowlp.concat([q, k])
    assert merged.codec.text == "vec8:2x8:f16:32x* channel f16"
    assert np.array_equal(merged.dequantize(), np.concatenate([q.dequantize(), k.dequantize()]))
    assert lowlp.concat([q, made(32, first)]).codec == q.codec


@pytest.mark.parametrize("counts", [(), (3, 1, 1), (3, 2, 2)])
def test_experts(counts: tuple[int, ...]) -> None:
    random = np.random.default_rng(7)
    entries = entries_of(random, "f16", (*counts, 1, 16, 4))
    codes = codes_of(random, (3, 32, 64, 1), 4)
    qw = QuantizedTensor(codes, codebooks=entries, scales=random.normal(0, 1, (3, 32, 2)).astype(np.float16))
    assert (qw.codes == codes).all() and qw.shape == (3, 32, 256)
    assert qw.codebooks is not None and np.array_equal(qw.codebooks, entries)
    for number in range(3):
        one = QuantizedTensor(codes[number], codebooks=entries[number] if counts else entries, scales=qw.scales[number])
        assert qw[number] == one
        assert np.array_equal(qw.dequantize()[number], one.dequantize())
    assert QuantizedTensor.from_arrays(*qw.to_arrays()) == qw
    assert qw[1:].shape == (2, 32, 256) and qw[1:][0] == qw[1]


def test_ready_words_are_taken() -> None:
    qw = blocks()
    again = QuantizedTensor.from_packed(
        qw.packed, qw.shape, codebooks=qw.codebooks, scales=qw.scales, book_scales=qw.book_scales, book_per=(32, 256)
    )
    assert again == qw
    assert repr(qw).startswith("QuantizedTensor(vec8:2x8:int8:32x256, shape=(128, 512), group_size=128, scales=float16")
    arrays, header = qw.to_arrays()
    assert set(arrays) == {"packed", "scales", "codebooks", "book_scales"}
    with pytest.raises(LowlpValueError, match=r"^header: vectors must be such as 'vec8:2x8:f16', got 'vec8'"):
        QuantizedTensor.from_arrays(arrays, header.replace("vec8:2x8:int8:32x256", "vec8"))
    with pytest.raises(LowlpValueError, match=r"^header: vectors: codec: vector: must be one of 2, 4, 8, 16, got 3"):
        QuantizedTensor.from_arrays(arrays, header.replace("vec8:2x8", "vec3:2x8"))
    words = qw.pack_for("bf16")
    assert words.family == "bf16" and np.array_equal(words.packed, qw.packed)


#
# Refusals.
#

CODES = np.zeros((16, 8, 2), np.uint8)
BOOKS = np.zeros((2, 256, 8), np.float16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"codebooks": BOOKS.astype(np.float32)},
            "codebooks: expected elements of float16, bfloat16, int8 or",
        ),
        ({"codebooks": BOOKS[0]}, r"codebooks: expected shape \[R, 2\*\*b, v\] for all weights or \[blocks of N"),
        ({"codebooks": BOOKS[:, :100]}, r"codebooks: expected 2\*\*b entries in each book with b in 1..16, got 100"),
        ({"codebooks": BOOKS[..., :3]}, r"codebooks: expected shape .* vector: must be one of 2, 4, 8, 16, got 3"),
        ({"codebooks": BOOKS + np.inf}, r"codebooks: must be finite, got inf at \[0, 0, 0\]"),
        ({"codebooks": "e9"}, r"codebooks: computed ones are e8p, e8p\+e81b, e8p\+e8p, got 'e9'"),
        ({"codebooks": "e8p"}, "codes: expected uint16 for e8p, got uint8"),
        ({"codes": CODES.astype(np.uint16)}, "codes: expected uint8 for vec8:2x8:f16, got uint16"),
        (
            {"codes": CODES[..., :1]},
            r"codes: expected shape \[N, K / 8, 2\] or \[E, N, K / 8, 2\] for vec8:2x8",
        ),
        ({"codebooks": BOOKS[:, :128], "codes": CODES + 128}, r"codes: must be in 0\.\.127 for book 0 of vec8:2x7:f16"),
        ({"book_scales": np.ones(2, np.float32)}, "book_scales: go with entries of int8 and f8e4m3 and with computed"),
        (
            {"codebooks": BOOKS.astype(np.int8), "book_scales": np.ones(3, np.float32)},
            r"book_scales: expected shape \[R\] = \[2\], got \[3\]",
        ),
        (
            {"codebooks": BOOKS.astype(np.int8), "book_scales": CODES},
            "book_scales: expected floats, got elements",
        ),
        (
            {"codebooks": BOOKS.astype(np.int8), "book_scales": ["a", 1]},
            r"book_scales: expected floats, got \['a', 1\]",
        ),
        ({"book_per": (8, 8)}, "book_per: must be 'tensor' for codebooks of all weights, got"),
        (
            {"codebooks": np.stack([[BOOKS]] * 3)},
            "book_per: must be given where blocks are not all alike: 3 along",
        ),
        (
            {"codebooks": np.stack([[BOOKS]] * 2), "book_per": (4, None)},
            r"book_per: blocks of \(4, None\) are 4 x 1 in weights \[16, 64\], and codebooks are for 2 x 1",
        ),
        (
            {"codebooks": np.stack([[BOOKS]] * 2), "book_per": (0, 8)},
            "book_per: extents must be at least 1, or None",
        ),
        ({"codebooks": np.stack([[BOOKS]] * 2), "book_per": "row"}, "book_per: expected 'tensor' or a tuple such as"),
        ({"codebooks": np.stack([[[BOOKS]]] * 2)}, r"codebooks: expected shape .* for weights \[16, 64\]"),
        ({"zeros": np.zeros((16, 1), np.uint8)}, "zeros: not allowed with codebooks, whose codes have scales only"),
        ({"dtype": "int4"}, "dtype: not allowed with codebooks, whose codes have scales only"),
        ({"scales": np.ones((16, 16), np.float16)}, "group_size: must be a multiple of the 8 weights of a code, got 4"),
        ({"scales": np.ones((16, 3), np.float16)}, r"scales: expected shape \[N, K / group_size\] = \[16, 1\], got"),
        ({"activation": "s8"}, "activation: the packed format has no placement of vec8:2x8:f16 for family s8; use"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"codes": CODES, "codebooks": BOOKS} | arguments
    with pytest.raises((LowlpValueError, LowlpTypeError), match="^" + message):
        QuantizedTensor(given.pop("codes"), **given)


def test_refusals_elsewhere() -> None:
    with pytest.raises(LowlpValueError, match=r"^book_per: goes with codebooks, which are not given"):
        QuantizedTensor(CODES[..., 0], dtype="int4", scales=np.ones((16, 1), np.float16), book_per="tensor")
    with pytest.raises(LowlpValueError, match=r"^book_per: rows of a block must divide N = 6 of experts, got 4"):
        QuantizedTensor(
            np.zeros((2, 6, 8, 2), np.uint8),
            codebooks=np.zeros((2, 2, 1, *BOOKS.shape), np.float16),
            book_per=(1, 4, None),
        )
    with pytest.raises(LowlpValueError, match=r"^book_per: books of blocks are of one expert each"):
        QuantizedTensor(np.zeros((2, 6, 8, 2), np.uint8), codebooks=np.zeros((1, 2, 1, *BOOKS.shape), np.float16))
    with pytest.raises(LowlpValueError, match=r"^shape: K must be a multiple of the 8 weights of a code, got \[16, 6"):
        QuantizedTensor.from_packed(np.zeros((1, 1, 1, 32, 4), np.uint32), (16, 60), codebooks=BOOKS)
    with pytest.raises(LowlpValueError, match=r"^code: codes of vectors are packed by Q"):
        lowlp.pack(CODES[..., 0], 8, vq(8, 8), "f16")
    with pytest.raises(LowlpValueError, match=r"^codec: codes of vec8:2x8:f16 tensor f32 stand for 8 weights"):
        QuantizedTensor(CODES, codebooks=BOOKS).codec.values()


def test_vq() -> None:
    assert str(lowlp.vq(vector=8, bits=8, books=2)) == "vec8:2x8:f16" and lowlp.vq(4, 8) == vq(4, 8, 1, "float16")
    found = vq(4, 10, 3, "int8").with_book_per((256, None))
    assert (found.vector, found.bits, found.books, found.entries) == (4, 10, 3, "int8")
    assert found.block == (256, 0) and found.book_per == (256, None) and found.has_book_scales
    assert pickle.loads(pickle.dumps(found)) == found and repr(found) == "Vectors(vec4:3x10:int8:256x*)"
    # By head and group of channels, as CQ has books: blocks over heads and channels of [tokens, heads, channels].
    assert str(vq(4, 8).with_book_per((None, 1, 4))) == "vec4:1x8:f16:1x4"
    for arguments, message in (
        ((3, 8), "vector: must be one of 2, 4, 8, 16, got 3"),
        ((8, 17), r"bits: must be in 1\.\.16, got 17"),
        ((8, 8, 5), r"books: must be in 1\.\.4, got 5"),
        ((8, 8, 1, "f32"), "entries: must be one of f16, bf16, int8, f8e4m3, got 'f32'"),
        ((8, 2**80), r"bits: must be a number of 64 bits, got 1\.209e\+24"),
    ):
        with pytest.raises(LowlpValueError, match="^" + message):
            vq(*arguments)  # type: ignore[arg-type]
    with pytest.raises(LowlpTypeError, match=r"^bits: expected an int, got 8\.0"):
        vq(8, 8.0)  # type: ignore[arg-type]
    with pytest.raises(LowlpValueError, match=r"^book_per: must be 'tensor' for computed books e8p"):
        Vectors.lattice("e8p").with_book_per((8, 8))
