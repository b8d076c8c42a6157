"""Products that tests on a GPU run as `linear` chooses their kernels, and in forms that are given.

Which forms these are is known without a GPU: `test_forms_chosen.py` holds it.
"""

from __future__ import annotations

from dataclasses import replace

from linear_forms import GIVING, GROUPS, KINDS, Product, forms_of

SHARING = [Product(kind, 1000, 9216, rows=(129, 300)) for kind in ("int4", "int8", "nf4")]
SHARING += [Product("int1", 3584, 7168, rows=(1, 16))]
"""Long rows and few tiles, for which `linear` shares tiles: of warpgroups, and of few rows of x."""

EVERY_KIND = [Product(kind, 1000, 1152, group) for kind in KINDS for group in GROUPS]
EVERY_KIND += [Product(kind, 2056, 2304) for kind in KINDS]
EVERY_KIND += [replace(product, rows=(1, 16)) for product in GIVING]
EVERY_KIND += SHARING

REPEATED_KINDS = ("int1", "int2", "int3", "int4", "int6", "int8", "uint4z", "f6e3m2", "nf4", "lut3")
FEW_ROWS, MANY_ROWS = (1, 7, 16), (64, 300)
REPEATED_K = 1152

REPEATED = [Product(kind, 3000, REPEATED_K, rows=(*FEW_ROWS, *MANY_ROWS)) for kind in REPEATED_KINDS]
REPEATED += [replace(product, rows=FEW_ROWS) for product in GIVING]

INVARIANT = [
    Product(kind, n, k, batch_invariant=True, rows=(1, 5, 16, 17, 64, 200, 1024))
    for kind, n, k in [
        *((kind, n, REPEATED_K) for kind in REPEATED_KINDS for n in (1000, 3000)),
        # Here `linear` shares tiles of few rows, if it may.
        ("int1", 3584, 7168),
    ]
]


def shared_tiles(arch: str) -> list[Product]:
    """Tiles that blocks share: by streaming for few rows, by warpgroups for many."""
    found = [
        Product(kind, 1000, REPEATED_K, form="streaming, shared tiles", follows=True, rows=FEW_ROWS)
        for kind in REPEATED_KINDS
    ]
    if "wgmma, shared tiles" in forms_of(arch):
        found += [
            Product(kind, 1000, REPEATED_K, form="wgmma, shared tiles", rows=MANY_ROWS) for kind in REPEATED_KINDS
        ]
    return found
