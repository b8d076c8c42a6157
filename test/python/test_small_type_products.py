"""Products of int8, 8-bit floats and bits on the CPU target, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from small_type_products import as_buffer, exact_product, make_product, random_matrix

import lowlp
from lowlp import language as ll
from lowlp.errors import CompileError

CASES = [
    ("int8", "int8", 33, 40, 200),
    ("int8", "uint8", 32, 64, 64),
    ("uint8", "int8", 17, 9, 33),
    ("uint8", "uint8", 64, 32, 256),
    ("f8e4m3", "f8e4m3", 33, 40, 208),
    ("f8e4m3", "f8e5m2", 16, 32, 64),
    ("f8e5m2", "f8e4m3", 32, 17, 31),
    ("f8e5m2", "f8e5m2", 32, 32, 128),
    ("uint1", "uint1", 33, 40, 640),
    ("uint1", "uint1", 64, 64, 2048),
    ("f16", "f16", 33, 35, 70),
    ("bf16", "bf16", 48, 32, 96),
]


@pytest.mark.parametrize(("a_type", "b_type", "m", "n", "k"), CASES)
def test_product(a_type: str, b_type: str, m: int, n: int, k: int) -> None:
    a, b = random_matrix((m, k), a_type, 1), random_matrix((n, k), b_type, 2)
    exact = exact_product(a, b, a_type)
    c = np.full((m, n), -1, np.float32 if exact.dtype == np.float64 else np.int32)
    make_product(m, n, k, a_type, b_type)(as_buffer(a, a_type), as_buffer(b, b_type), c)
    if exact.dtype == np.int32:
        np.testing.assert_array_equal(c, exact)
    else:
        np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5 * k)


def test_sums_of_integers_wrap_around() -> None:
    """From 2^31 - 1 on."""
    k = 32
    a, b = np.full((16, k), 127, np.int8), np.full((k, 8), 127, np.int8)
    layouts = ("column_local(2, 2).spatial(8, 4).local(1, 4)", "local(2, 1).column_spatial(4, 8).local(4, 1)")
    text = f"""
    lowlp.kernel @f(%a: !lowlp.ptr<si8>, %b: !lowlp.ptr<si8>, %c: !lowlp.ptr<si32>)
        attributes {{grid = affine_map<() -> (1)>, num_threads = 32 : i64}} {{
      %z = arith.constant 0 : index
      %va = lowlp.view_global %a shape [16, 32] : !lowlp.ptr<si8> -> !lowlp.global<16x32xsi8>
      %vb = lowlp.view_global %b shape [32, 8] : !lowlp.ptr<si8> -> !lowlp.global<32x8xsi8>
      %vc = lowlp.view_global %c shape [16, 8] : !lowlp.ptr<si32> -> !lowlp.global<16x8xsi32>
      %ta = lowlp.load_global %va[%z, %z] : !lowlp.global<16x32xsi8> -> !lowlp.tile<16x32xsi8, {layouts[0]}>
      %tb = lowlp.load_global %vb[%z, %z] : !lowlp.global<32x8xsi8> -> !lowlp.tile<32x8xsi8, {layouts[1]}>
      %tc = lowlp.load_global %vc[%z, %z] : !lowlp.global<16x8xsi32>
        -> !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
      %d = lowlp.dot %ta, %tb, %tc : !lowlp.tile<16x32xsi8, {layouts[0]}>, !lowlp.tile<32x8xsi8, {layouts[1]}>,
        !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>
      lowlp.store_global %d, %vc[%z, %z] : !lowlp.tile<16x8xsi32, local(2, 1).spatial(8, 4).local(1, 2)>,
        !lowlp.global<16x8xsi32>
      lowlp.return
    }}"""
    c = np.full((16, 8), 2**31 - 1, np.int32)
    lowlp.compile_cpu(text)(a, b, c)
    assert (c == k * 127**2 - 2**31 - 1).all()


def test_nan_of_8_bit_floats_stays() -> None:
    a, b = random_matrix((16, 64), "f8e4m3", 1), random_matrix((16, 64), "f8e4m3", 2)
    a.view(np.uint8)[3, 5] = 0xFF
    c = np.zeros((16, 16), np.float32)
    make_product(16, 16, 64, "f8e4m3", "f8e4m3")(a.view(np.uint8), b.view(np.uint8), c)
    assert np.isnan(c[3]).all() and np.isfinite(np.delete(c, 3, axis=0)).all()


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize(
    ("types", "instruction"),
    [
        (("int8", "uint8"), "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32"),
        (("f8e4m3", "f8e5m2"), "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        (("uint1", "uint1"), "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"),
    ],
)
def test_ptx(types: tuple[str, str], instruction: str, arch: str) -> None:
    program = make_product(64, 64, 512, *types)
    if types[0] == "f8e4m3" and arch == "sm_80":
        pattern = "'lowlp.dot' op needs mma.sync.m16n8k32 e4m3, e5m2, which sm_80 does not have"
        with pytest.raises(CompileError, match=pattern):
            lowlp.compile(program, arch)
        return
    kernel = lowlp.compile(program, arch)
    # In each of 2 steps 2 products, and one load for A and for B.
    count = kernel.ptx.count(instruction)
    if types[0] == "f8e4m3" and arch in ("sm_90a", "sm_100a"):
        # As two of halves, where the instruction is emulated.
        count = kernel.ptx.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") // 2
    assert count and count % 4 == 0
    assert kernel.ptx.count("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == count
    assert "ld.shared" not in kernel.ptx
    assert kernel.ptx.count("cp.async.cg.shared.global") >= 2


def test_bits_of_an_odd_number_of_words() -> None:
    """Three instructions of 128 along K: half of the registers of those of 256."""
    rows = lowlp.layout("local(2, 1).spatial(8, 4).local(1, 1)")

    @lowlp.kernel(grid=(1,), num_threads=32)
    def product(a: ll.pointer("uint32"), b: ll.pointer("uint32"), c: ll.pointer("int32")) -> None:
        a_words = ll.load_global(ll.view_global(a, shape=[16, 12]), offsets=[0, 0], layout=lowlp.local(1, 3) * rows)
        b_words = ll.load_global(ll.view_global(b, shape=[8, 12]), offsets=[0, 0], layout="local(1, 3).spatial(8, 4)")
        a_bits = ll.view(a_words, dtype="uint1", layout=(lowlp.local(1, 3) * rows).local(1, 32))
        b_bits = ll.view(b_words, dtype="uint1", layout="local(1, 3).spatial(8, 4).local(1, 32)")
        sums = ll.full(5, "int32", layout="local(2, 1).spatial(8, 4).local(1, 2)")
        result = ll.dot(a_bits, ll.transpose(b_bits), sums)
        ll.store_global(result, ll.view_global(c, shape=[16, 8]), offsets=[0, 0])

    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 32, (extent, 12), dtype=np.uint32) for extent in (16, 8))
    c = np.zeros((16, 8), np.int32)
    assert product(a, b, c)["mmas"] == 3
    np.testing.assert_array_equal(c, 5 + np.bitwise_count(a[:, None] & b[None]).sum(-1))
