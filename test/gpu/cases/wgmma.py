"""Products by warpgroups: every type, widths from 8 to 256, every swizzle, and each way to stage and to add up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import lowlp
from cases.case import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from wgmma_products import Product, make_arguments, make_product

WIDTHS = (8, 16, 24, 64, 128, 256)
# Sums of 8-bit floats: tensor cores keep fewer bits of them than f32 has.
TOLERANCES = {"f16": 1e-5, "bf16": 1e-5, "int8": 0.0, "uint8": 0.0, "f8e4m3": 1e-3, "f8e5m2": 1e-3}


def product_case(product: Product, arch: str) -> Case:
    arguments, wanted = make_arguments(product)
    kernel = lowlp.compile(make_product(product), arch)
    tolerance = TOLERANCES[product.a_type]
    facts = {"shape": [product.m, product.n, product.k]}
    return Case(f"wgmma_{product.name}", kernel, arguments, "c", wanted, tolerance, facts)


def cases(arch: str) -> Iterator[Case]:
    if arch != "sm_90a":
        return
    for n in WIDTHS:
        for swizzle in (0, 32, 64, 128):
            yield product_case(Product(n=n, k=320, swizzle=swizzle), arch)
    for n in (16, 128):
        # Two patterns along K, and one of half the length.
        yield product_case(Product(n=n, k=640, bk=128), arch)
        yield product_case(Product(n=n, k=352, bk=32, swizzle=64), arch)
        yield product_case(Product(n=n, k=512, way="scaled"), arch)
        yield product_case(Product(n=n, k=576, order="other"), arch)
        yield product_case(Product(n=n, k=576, staging="store_shared"), arch)
        yield product_case(Product(n=n, k=576, staging="copy_tensor"), arch)
        yield product_case(Product(m=1024, n=n, k=1088, warpgroups=2), arch)
        for types in (("bf16", "bf16"), ("int8", "int8"), ("int8", "uint8"), ("uint8", "int8"), ("uint8", "uint8")):
            yield product_case(Product(n=n, k=640, bk=128, a_type=types[0], b_type=types[1]), arch)
        for a_type in ("f8e4m3", "f8e5m2"):
            for b_type in ("f8e4m3", "f8e5m2"):
                yield product_case(Product(n=n, k=640, bk=128, a_type=a_type, b_type=b_type, swizzle=0), arch)
                yield product_case(Product(n=n, k=640, bk=128, a_type=a_type, b_type=b_type), arch)
