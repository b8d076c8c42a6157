"""Parts of stored weights, as several GPUs have them: cut as arrays, they mean what they meant."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from codec_samples import CODE_TYPES, EXTRAS, SCALES, TABLES, random_tensor

import lowlp
from lowlp.benchmarks.models.shapes import GPUS, MODELS
from lowlp.checkpoints.own import PackedParts
from lowlp.errors import LowlpError
from lowlp.numeric.host_array import AnyArray
from lowlp.packing import packed_shape
from lowlp.weights.parts import Part, cuts_of, part_of_arrays, pieces, ranges, whole_of
from lowlp.weights.quantized_tensor import QuantizedTensor


def with_two_levels(rng: np.random.Generator, n: int, k: int) -> QuantizedTensor:
    codes = rng.integers(0, 16, (n, k), dtype=np.uint8)
    of_groups, of_supers = (n, k // 32), (n, -(-k // 256))
    return QuantizedTensor(
        codes,
        dtype="uint4",
        group_size=32,
        scales=rng.integers(0, 32, of_groups).astype(np.int8),
        offsets=rng.integers(-32, 32, of_groups).astype(np.int8),
        super_scales=rng.normal(size=of_supers).astype(np.float16),
        super_offsets=rng.normal(size=of_supers).astype(np.float16),
        super_group_size=256,
        scale_dtype="int6",
    )


def with_books(rng: np.random.Generator, n: int, k: int, per: Any) -> QuantizedTensor:
    blocks = () if per is None else (-(-n // (per[0] or n)), -(-k // (per[1] or k)))
    books = rng.normal(size=(*blocks, 2, 16, 4)).astype(np.float16)
    codes = rng.integers(0, 16, (n, k // 4, 2), dtype=np.uint8)
    return QuantizedTensor(
        codes, codebooks=books, book_per=per, scales=rng.normal(size=(n, k // 32)).astype(np.float16)
    )


def samples() -> list[Any]:
    """Weights of all kinds, of shapes whose parts have units of other shapes too."""
    rng = np.random.default_rng(78)
    found = []
    for number in range(24):
        t = CODE_TYPES[int(rng.integers(len(CODE_TYPES)))]
        groups, size = int(rng.integers(4, 9)), int(rng.choice([16, 32, 48, 64, 128]))
        n = int(rng.choice([128, 256, 300]))
        options = {
            "scale": str(rng.choice(list(SCALES))),
            "extra": EXTRAS[number % len(EXTRAS)],
            "table": str(rng.choice(TABLES)) if t.name.startswith("uint") else "",
            "group": str(rng.choice(["", "", "", "channel", "tensor"])),
        }
        if options["table"] == "group" and options["group"]:
            options["table"] = "channel"
        if options["scale"] == "e8m0" and t.bits == 1:
            options["scale"] = "f16"
        found.append(random_tensor(rng, t, n, groups, groups * size if options["group"] else size, **options))
    found.append(with_two_levels(rng, 64, 1024 + 256))
    found += [with_books(rng, 192, 512, per) for per in (None, (64, 128), (64, None), (None, 256))]
    codes = rng.integers(0, 8, (64, 256), dtype=np.uint8)
    scales = rng.normal(size=(64, 4)).astype(np.float16)
    order = rng.permutation(256)
    found.append(QuantizedTensor(codes, dtype="uint3", group_size=64, scales=scales, permutation=order))
    return found


@pytest.mark.parametrize("qw", samples(), ids=lambda qw: str(qw.codec)[:60])
def test_parts_mean_what_they_meant(qw: QuantizedTensor) -> None:
    arrays, header = qw.to_arrays()
    n, k = qw.shape
    values, cuts = qw.dequantize(), cuts_of(header)
    rng = np.random.default_rng(n * k)
    for ranks in (2, 3, 4):
        if -(-n // cuts.rows) >= ranks:
            for rows in ranges(n, ranks, cuts.rows, "N"):
                part = part_of_arrays(arrays.__getitem__, header, Part((rows,), slice(0, k)))
                assert np.array_equal(part.dequantize(), values[rows]) and part.codec == qw[rows].codec
        if -(-k // cuts.columns) >= ranks and qw.permutation is None:
            columns = ranges(k, ranks, cuts.columns, "K")[int(rng.integers(ranks))]
            part = part_of_arrays(arrays.__getitem__, header, Part((slice(0, n),), columns))
            assert np.array_equal(part.dequantize(), values[:, columns])
    whole = part_of_arrays(arrays.__getitem__, header, whole_of(header))
    assert whole == qw


def test_gate_and_up_lie_one_below_the_other() -> None:
    rng = np.random.default_rng(1)
    qw = lowlp.quantize(rng.normal(size=(256, 192)).astype(np.float32), "int6", group_size=64)
    arrays, header = qw.to_arrays()
    rows = (slice(32, 64), slice(160, 192))
    part = part_of_arrays(arrays.__getitem__, header, Part(rows, slice(64, 192)))
    assert np.array_equal(part.dequantize(), np.concatenate([qw.dequantize()[r, 64:192] for r in rows]))


@pytest.mark.parametrize("kind", ["int4", "books"])
def test_parts_of_experts(kind: str) -> None:
    rng = np.random.default_rng(2)
    if kind == "int4":
        qw = lowlp.quantize(rng.normal(size=(4, 96, 512)).astype(np.float32), "int4", group_size=32)
    else:
        codes = rng.integers(0, 16, (4, 96, 128, 1), dtype=np.uint8)
        books = rng.normal(size=(4, 3, 1, 1, 16, 4)).astype(np.float16)
        qw = QuantizedTensor(codes, codebooks=books)
    arrays, header = qw.to_arrays()
    for rows, columns in (((slice(0, 32), slice(64, 96)), slice(0, 512)), ((slice(0, 96),), slice(256, 512))):
        part = part_of_arrays(arrays.__getitem__, header, Part(rows, columns, slice(1, 3)))
        wanted = np.concatenate([qw.dequantize()[1:3, r, columns] for r in rows], axis=1)
        assert part.shape == wanted.shape and np.array_equal(part.dequantize(), wanted)


def bytes_of(qw: QuantizedTensor, part: Part) -> int:
    """What is read of the arrays for a part."""
    arrays, header = qw.to_arrays()
    read = 0
    for name, array in arrays.items():
        read += sum(array[index].nbytes for index in pieces(name, array.shape, header, part)[0])
    return read


def test_a_part_reads_its_part() -> None:
    qw = lowlp.quantize(np.ones((256, 512), np.float32), "uint5", group_size=64, zero_point=True)
    total = sum(array.nbytes for array in qw.to_arrays()[0].values())
    for along_n in (True, False):
        found = [
            Part((cut,), slice(0, 512)) if along_n else Part((slice(0, 256),), cut)
            for cut in ranges(256 if along_n else 512, 4, 64, "it")
        ]
        assert [bytes_of(qw, part) for part in found] == [total // 4] * 4


@pytest.mark.parametrize("extent, count, multiple", [(7, 3, 2), (128256, 8, 16), (11008, 4, 128), (50257, 8, 16)])
def test_ranges_are_as_equal_as_can_be(extent: int, count: int, multiple: int) -> None:
    found = ranges(extent, count, multiple, "N")
    assert found[0].start == 0 and found[-1].stop == extent
    assert all(one.stop == other.start and other.start % multiple == 0 for one, other in itertools.pairwise(found))
    lengths = [part.stop - part.start for part in found]
    assert max(lengths) - min(lengths[:-1]) <= multiple and max(lengths) == lengths[0] and min(lengths) > 0


def of_random_words(rng: np.random.Generator, n: int, k: int, dtype: str) -> QuantizedTensor:
    group = min(k, 128)
    words = rng.integers(0, 1 << 32, packed_shape(n, k, group, f"{dtype}.f16"), np.uint32)
    scales = 2.0 ** rng.integers(-1, 2, (n, k // group))
    return QuantizedTensor.from_packed(words, (n, k), dtype=dtype, scales=scales.astype(np.float16), group_size=group)


def blocks_of(model: Any, product: Any) -> list[tuple[int, int]]:
    """The matrices that lie one below the other in a layer's weights: rows, and of how many rows parts are."""
    n = product.shape.n
    if product.name == "qkv":
        head, pairs = model.head_dim, model.num_key_value_heads
        return [(model.num_attention_heads * head, head), (pairs * head, head), (pairs * head, head)]
    return [(n // 2, 1)] * 2 if product.name.endswith("gate_up") else [(n, 1)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_all_ranks_of_a_model(model: Any) -> None:
    """Layers of `lowlp bench --set models`, for 4 and 8 GPUs: all rows of few columns, or all columns of few rows."""
    rng = np.random.default_rng(len(model.name))
    for gpus in GPUS[2:]:
        cut_shapes = {product.name: product.shape for product in model.products(gpus)}
        for product in model.products(1):
            dtype, shape = str(rng.choice(["int4", "int8", "int3"])), cut_shapes.get(product.name)
            if shape is None:
                continue  # its heads cannot be divided, or it stays whole
            if shape.k == product.shape.k:
                qw, parts, first = of_random_words(rng, product.shape.n, 64, dtype), [[] for _ in range(gpus)], 0
                for rows, multiple in blocks_of(model, product):
                    for mine, part in zip(parts, ranges(rows, gpus, max(multiple, 16), "N"), strict=True):
                        mine.append(slice(first + part.start, first + part.stop))
                    first += rows
                order = np.concatenate([np.arange(rows.start, rows.stop) for mine in parts for rows in mine])
                every = [Part(tuple(mine), slice(0, 64)) for mine in parts]
            else:
                qw, order = of_random_words(rng, 16, product.shape.k, dtype), np.arange(16)
                every = [Part((slice(0, 16),), part) for part in ranges(product.shape.k, gpus, 128, "K")]
            arrays, header = qw.to_arrays()
            found = [part_of_arrays(arrays.__getitem__, header, part) for part in every]
            assert {part.shape for part in found} == {(16, shape.k) if qw.shape[0] == 16 else (shape.n, 64)}
            x = rng.integers(-3, 4, (1, qw.shape[1])).astype(np.float64)
            wanted = (x @ qw.dequantize().T.astype(np.float64))[:, order]
            of_ranks = [x[:, part.columns] @ w.dequantize().T for part, w in zip(every, found, strict=True)]
            y = np.concatenate(of_ranks, axis=1) if len(order) > 16 else sum(of_ranks)
            assert np.array_equal(y, wanted), (product, gpus)


@pytest.mark.parametrize(
    "part, message",
    [
        (
            Part((slice(0, 24),), slice(0, 256)),
            r"^rows: 0:24 of 64 .* at 24, .* multiples of 16; .* 16 and 32",
        ),
        (Part((slice(0, 64),), slice(32, 256)), r"^columns: 32:256 of 256 cannot be cut at 32, .* of 64; .* 0 and 64"),
        (Part((slice(32, 80),), slice(0, 256)), r"^rows: must be a part of 0:64, got 32:80"),
    ],
)
def test_mistakes_are_named(part: Part, message: str) -> None:
    qw = lowlp.quantize(np.ones((64, 256), np.float32), "int4", group_size=64)
    arrays, header = qw.to_arrays()

    def read(name: str) -> AnyArray:
        return arrays[name]

    with pytest.raises(LowlpError, match=message):
        part_of_arrays(read, header, part)
    with pytest.raises(
        LowlpError, match=r"^N: 64 can be cut at multiples of 16 only, into at most 4 parts, and 8 ranks"
    ):
        ranges(64, 8, 16, "N")
    moved = QuantizedTensor(
        qw.codes, dtype="int4", scales=qw.scales, group_size=64, permutation=np.arange(256)[::-1].copy()
    )
    arrays, header = moved.to_arrays()
    with pytest.raises(LowlpError, match=r"^columns: weights with a permutation \(act-order\) are packed in another"):
        part_of_arrays(read, header, Part((slice(0, 64),), slice(0, 128)))


def resident_bytes(name: str) -> int:
    """Of a mapped file, what this process has touched of it."""
    found, is_it = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            is_it = name in line
        elif is_it and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


def test_a_rank_reads_its_part_of_a_file(tmp_path: Path) -> None:
    n, k = 4096, 8192
    words = np.random.default_rng(3).integers(0, 1 << 32, packed_shape(n, k, 128, "int8.f16"), np.uint32)
    scales = np.ones((n, k // 128), np.float16)
    qw = QuantizedTensor.from_packed(words, (n, k), dtype="int8", scales=scales, group_size=128)
    lowlp.checkpoints.save(tmp_path / "m", {"layer.weight": qw})
    for rows in ranges(n, 4, 16, "N")[1:3]:
        parts = lowlp.checkpoints.open(tmp_path / "m").layers["layer.weight"].parts()
        assert isinstance(parts, PackedParts)
        part = Part((rows,), slice(0, k))
        assert parts.part(part) == qw[rows] and parts.part_bytes(part) == qw.nbytes // 4
        # The operating system maps up to 2 MiB around what is touched, here at both ends of words and at scales.
        assert resident_bytes(str(tmp_path / "m")) < qw.nbytes // 4 + (6 << 20) < qw.nbytes // 2
