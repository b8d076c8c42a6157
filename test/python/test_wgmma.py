"""Products of warpgroups: on the CPU target against float64, with mistakes that it must find, and as PTX."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from wgmma_products import Product, make_arguments, make_product

import lowlp
from lowlp import language as ll
from lowlp.errors import CompileError, CpuTargetError, ProductWarning
from lowlp_runtime.assemble import assemble_ptx

PRODUCTS = [
    Product(),
    Product(n=8, k=192, swizzle=0, staging="store_shared"),
    Product(n=24, swizzle=64, way="scaled"),
    Product(n=40, swizzle=32, bk=32, k=96, order="other"),
    Product(n=16, bk=128, k=384, swizzle=128, a_type="bf16", b_type="bf16"),
    Product(n=128, k=128, way="scaled", order="other"),
    Product(m=256, n=16, k=192, warpgroups=2),
    Product(n=256, k=64, bk=64, swizzle=0),
    Product(n=16, staging="copy_tensor"),
    Product(n=32, a_type="int8", b_type="uint8", bk=128, k=384),
    Product(n=24, a_type="uint8", b_type="int8", bk=64, k=128, swizzle=64, way="scaled"),
    Product(n=8, a_type="f8e4m3", b_type="f8e5m2", bk=32, k=96, swizzle=32),
    Product(n=16, a_type="f8e5m2", b_type="f8e4m3", bk=64, k=192, swizzle=0, order="other"),
]


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_products(product: Product) -> None:
    arguments, wanted = make_arguments(product)
    kernel = make_product(product)
    for seed in (0, 1):
        arguments["c"][:] = 77
        kernel(*arguments.values(), seed=seed)
        if wanted.dtype == np.int32:
            np.testing.assert_array_equal(arguments["c"], wanted)
        else:
            error = np.linalg.norm(arguments["c"] - wanted) / np.linalg.norm(wanted)
            assert error < 1e-6, error


MISTAKES = [
    (Product(mistake="fence_async"), r"lowlp\.wgmma at .*: missing fence: .* have no fence_async between them"),
    (Product(staging="store_shared", mistake="fence_async"), r"missing fence: read of .* by a product and the write"),
    (Product(mistake="synchronize"), r"lowlp\.wgmma at .*: (race|missing fence|uninitialised read|.*not waited for)"),
    (Product(k=320, mistake="wait"), r"changes bytes that a product still reads, begun by thread .* at lowlp\.wgmma"),
    (Product(k=320, mistake="unroll"), r"lowlp\.wgmma at .*: .* still reads its registers of A, .* unroll the loop"),
    (Product(way="scaled", mistake="commit"), r"lowlp\.wgmma_wait at .*: the accumulators are not there yet"),
    (Product(way="scaled", mistake="wait 0"), r"lowlp\.wgmma_wait at .*: the accumulators are not there yet"),
]


@pytest.mark.parametrize(("product", "message"), MISTAKES, ids=lambda value: getattr(value, "mistake", ""))
def test_mistakes_are_found(product: Product, message: str) -> None:
    """Each with its twin, which lacks nothing."""
    for seed in range(4):
        arguments, _ = make_arguments(product)
        with pytest.raises(CpuTargetError, match=message):
            make_product(product)(*arguments.values(), seed=seed)
        make_product(dataclasses.replace(product, mistake=""))(*arguments.values(), seed=seed)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_ptx_assembles(product: Product) -> None:
    kernel = lowlp.compile(make_product(product), "sm_90a")
    names = {"int8": "s8", "uint8": "u8", "f8e4m3": "e4m3", "f8e5m2": "e5m2"}
    types = ".".join(names.get(name, name) for name in (product.a_type, product.b_type))
    depth = 256 // lowlp.dtype(product.a_type).bits
    assert re.search(rf"wgmma\.mma_async\.sync\.aligned\.m64n{product.n}k{depth}\.[fs]32\.{types}", kernel.ptx)
    assert kernel.cubin
    # At most 128 accumulators, 32 registers of A, and what addresses take.
    if product.n <= 128:
        assert kernel.spilled_bytes == 0


@pytest.mark.parametrize(("way", "most"), [("chained", 64 + 96), ("scaled", 2 * 64 + 64)])
def test_accumulators_of_128_columns_stay_in_registers(way: str, most: int) -> None:
    """64 accumulators a thread, and as many of the total where there is one: a copy of either would show."""
    used = lowlp.compile(make_product(Product(n=128, k=1088, way=way)), "sm_90a").resources
    assert used is not None and used.spilled_bytes == 0
    assert used.registers <= most, used


@pytest.mark.parametrize("way", ["chained", "scaled"])
def test_ptxas_adds_no_waits(way: str) -> None:
    """It says where it must, as something touches accumulators in flight (C7517), as an addition of ours does."""
    ptx = lowlp.compile(make_product(Product(n=128, k=1088, way=way)), "sm_90a").ptx
    assert "injected" not in assemble_ptx(ptx, "sm_90a").log
    accumulators = re.findall(r"wgmma\.mma_async[^{]*\{(%\w+),", ptx)[-1]
    before, commit, after = ptx.rpartition("wgmma.commit_group")
    touched = f"{before}add.rn.f32 {accumulators}, {accumulators}, {accumulators};\n\t{commit}{after}"
    assert "wait is injected" in assemble_ptx(touched, "sm_90a").log


def test_a_product_that_waits_gets_a_warning() -> None:
    """Accumulators that are used before the wait for them are."""
    program = make_product(Product(n=128, k=1088, way="scaled", mistake="wait 0"))
    with pytest.warns(ProductWarning, match="kernel wgmma_product: ptxas: .*(injected|serialized)"):
        kernel = lowlp.compile(program, "sm_90a", cache=False)
    assert kernel.product_remarks >= 1
    assert lowlp.compile(make_product(Product(n=128, k=1088)), "sm_90a").product_remarks == 0


@pytest.mark.parametrize("arch", ["sm_90", "sm_100a", "sm_120a"])
def test_other_architectures_are_refused(arch: str) -> None:
    with pytest.raises(CompileError, match=r"'lowlp\.wgmma' op needs wgmma\.mma_async, which .* it is on sm_90a"):
        lowlp.compile(make_product(Product()), arch)


# --- what the DSL refuses ---------------------------------------------------------------------------------------------

LAYOUT_A = lowlp.spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)
LAYOUT_C = lowlp.spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)


def refused(use: object, num_threads: int = 128) -> None:
    """Traces a kernel that calls `use(a, b, c)` with tiles that fit together."""

    def body() -> None:
        a = ll.full(0.0, "f16", layout=LAYOUT_A)
        c = ll.full(0.0, "f32", layout=LAYOUT_C)
        b = ll.alloc_shared("f16", [8, 16], lowlp.local(1, 2).local(8, 8))
        use(a, b, c)  # type: ignore[operator]

    lowlp.compile(ll.make_kernel(body, name="k", parameters={}, grid=(1,), num_threads=num_threads), "sm_90a")


@pytest.mark.parametrize(
    ("use", "kind", "message"),
    [
        (lambda a, b, c: ll.wgmma(b, b, c, offsets=[0, 0]), TypeError, "a: must be a tile"),
        (lambda a, b, c: ll.wgmma(a, a, c, offsets=[0, 0]), TypeError, "b: must be a tile made by ll.alloc_shared"),
        (
            lambda a, b, c: ll.wgmma(a, b, 0.0, offsets=[0, 0]),
            TypeError,
            "c: must be a tile, accumulators in flight or None",
        ),
        (lambda a, b, c: ll.wgmma(a, b, a, offsets=[0, 0]), TypeError, "c: must hold f32, found f16"),
        (lambda a, b, c: ll.wgmma(c, b, c, offsets=[0, 0]), TypeError, "a and b must both hold f16, both bf16"),
        (lambda a, b, c: ll.wgmma(a, b, c, offsets=[0]), ValueError, "offsets: expected one for each of the 2"),
        (lambda a, b, c: ll.wgmma(a, b, offsets=[0, 0]), ValueError, "layout: must be given where c is not"),
        (lambda a, b, c: ll.wgmma_wait(0, c), TypeError, "accumulators: must be made by ll.wgmma, found a tile"),
        (lambda a, b, c: ll.wgmma_wait(8), ValueError, "n: must be an int from 0 to 7, found 8"),
        (lambda a, b, c: ll.wgmma(a, b, c, offsets=[0, 0]) + c, TypeError, "unsupported|accumulators in flight"),
        (lambda a, b, c: ll.wgmma(a, b, c, offsets=[4, 0]), ValueError, "must begin at a multiple of 8 rows"),
    ],
)
def test_refused(use: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        refused(use)
