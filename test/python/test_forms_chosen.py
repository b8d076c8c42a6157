"""The products that tests on a GPU run have, on an H200, every form of kernel there is."""

import random
from collections import Counter

import linear_forms
import pytest
from chosen_products import EVERY_KIND, INVARIANT, REPEATED, shared_tiles
from linear_forms import FORMS, GROUPS, KINDS, Product, form_of, products_by_form

from lowlp.schedules.device import device_like

ARCH = "sm_90a"
MULTIPROCESSORS = 132


@pytest.fixture(autouse=True)
def on_an_h200(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_forms, "gpu_of", lambda arch: (device_like(arch), "NVIDIA H200"))


def occur(forms: set[str], products: list[Product]) -> bool:
    """Whether some product has each of these forms for some M. No choice is made after the last is found."""
    missing = set(forms)
    for product in reversed(products):
        for m in reversed(product.rows):
            missing.discard(form_of(product.schedule(m, ARCH)))
            if not missing:
                return True
    return False


def test_given_forms() -> None:
    products = products_by_form(1000, 1152, ARCH)
    assert Counter(product.form for product in products) == {form: len(KINDS) * len(GROUPS) for form in FORMS}
    assert all(form_of(product.schedule(1, ARCH)) == product.form for product in products)
    shared = [product for product in products if product.form.endswith("shared tiles")]
    assert all(product.shares_sums(1, ARCH, MULTIPROCESSORS) for product in [*shared, *shared_tiles(ARCH)])


def test_chosen_forms() -> None:
    assert occur(set(FORMS), EVERY_KIND)
    assert occur({form for form in FORMS if not form.endswith("shared tiles")}, REPEATED)


def test_invariant_products_have_a_tile_each() -> None:
    sample = random.Random(1).sample([(product, m) for product in INVARIANT for m in product.rows], 4)
    assert all(product.schedule(m, ARCH).has_tile_each for product, m in sample)
    assert form_of(Product("int1", 3584, 7168).schedule(16, ARCH)) == "streaming, shared tiles"
