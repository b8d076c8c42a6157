"""Kernels of `linear` with stages: every kind of weights in every form, by schedule and as `lowlp.linear` chooses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from chosen_products import EVERY_KIND  # noqa: E402
from linear_forms import Product, form_of, products_by_form, what_differs  # noqa: E402
from linear_launches import ARCH, exact_product, multiply, random_x, relative_error  # noqa: E402

from lowlp.ops.linear_kernels import gpu_kernel  # noqa: E402
from lowlp_runtime.device import multiprocessors  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled_ahead")

LIMIT = 2e-3
BY_FORM = products_by_form(1000, 1152, ARCH)


def check_rows(product: Product) -> None:
    """Every number of rows against float64, and the kernel against its schedule."""
    x, exact = random_x(product.k, max(product.rows)), exact_product(product)
    for m in product.rows:
        schedule = product.schedule(m, ARCH)
        assert not what_differs(gpu_kernel(*product.kernel(m, ARCH)).binary, ARCH, schedule), f"M = {m}: {schedule}"
        error = relative_error(multiply(product, x[:m]), exact[:m])
        assert error <= LIMIT, f"M = {m}: error {error:.1e} by {schedule}"


@pytest.mark.parametrize("product", BY_FORM, ids=str)
def test_every_form_of_every_kind(product: Product) -> None:
    assert {form_of(product.schedule(m, ARCH)) for m in product.rows} == {product.form}
    if product.form.endswith("shared tiles"):
        assert product.shares_sums(1, ARCH, multiprocessors(torch.cuda.current_device()))
    check_rows(product)


@pytest.mark.parametrize("product", EVERY_KIND, ids=str)
def test_what_linear_chooses(product: Product) -> None:
    check_rows(product)
    x = random_x(product.k, max(product.rows))
    for m in product.rows:
        assert torch.equal(lowlp.linear(x[:m], product.weights), multiply(product, x[:m])), f"M = {m}"
