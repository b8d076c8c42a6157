"""The products that tests on a GPU go through: every form has a kernel of every kind, and shows what it claims."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from linear_forms import FORMS, GIVING, GROUPS, KINDS, ROWS, Product, compile_ahead, form_of, forms_of, products_by_form
from linear_forms import what_differs as differences
from linear_matrix import TYPES
from test_linear_epilogues import wanted_of

from lowlp.compiler import compilation
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.ops.linear_kernels import gpu_kernel

ARCH = "sm_90a"
H200 = 132


def test_every_form_has_every_kind_and_group() -> None:
    products = products_by_form(1000, 1152, ARCH)
    assert len(products) == len(FORMS) * len(KINDS) * len(GROUPS)
    for product in products:
        assert {form_of(product.schedule(m, ARCH)) for m in ROWS} == {product.form}
        linear_kernel(product.spec, product.schedule(1, ARCH))  # raises where there is no program
        assert product.shares_sums(1, ARCH, H200) == product.form.endswith("shared tiles")


@pytest.mark.parametrize("kind", KINDS)
def test_specs_are_those_of_the_weights(kind: str) -> None:
    for group in GROUPS:
        product = Product(kind, 64, 128, group)
        assert product.spec == spec_for(product.weights, "f16", "f16", aligned=True)


@pytest.mark.parametrize("form", FORMS)
def test_kernels_show_their_form(form: str) -> None:
    product = Product("int4", 200, 640, form=form)
    schedule = product.schedule(1, ARCH)
    kernel = gpu_kernel(*product.kernel(1, ARCH)).binary
    assert differences(kernel, ARCH, schedule) == []
    others = [replace(product, form=other).schedule(1, ARCH) for other in FORMS if other != form]
    assert all(differences(kernel, ARCH, other) for other in others)
    assert differences(kernel, ARCH, replace(schedule, stages=9)) == ["stages"]


def test_registers_are_given_away() -> None:
    for product in GIVING:
        schedules = [product.schedule(m, ARCH) for m in (1, 16)]
        assert [schedule.exchanges_registers for schedule in schedules] == [False, True]
        assert form_of(schedules[1]) == "streaming, a tile each"


def test_forms_of_architectures() -> None:
    assert forms_of(ARCH) == tuple(FORMS)
    assert forms_of("sm_80") == ("streaming, shared tiles", "streaming, a tile each")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("m", [1, 20])
@pytest.mark.parametrize(
    "product",
    [
        *(Product("f3e1m1", 72, 640, form=form, bias="f32", epilogue="silu", residual="f16") for form in FORMS),
        Product("int5", 80, 576, 64, bias="f16", epilogue="silu_mul", residual="f32", out="f32"),
        Product("uint4z", 72, 576, 64, "wgmma, clusters", activation="bf16"),
        Product("lut3", 72, 640, form="streaming, shared tiles", follows=True),
    ],
    ids=str,
)
def test_arguments_on_the_cpu_target(product: Product, m: int) -> None:
    rng = np.random.default_rng(m)
    spec, qw = product.spec, product.weights
    x = rng.standard_normal((m, product.k)).astype(TYPES[product.activation])
    extents = {"bias": (product.n,), "residual": (m, spec.columns_of_y)}
    parts: dict[str, Any] = {
        name: rng.standard_normal(shape).astype(TYPES[kind])
        for name, shape in extents.items()
        if (kind := getattr(product, name))
    }
    y = np.full((m, spec.columns_of_y), np.nan, TYPES[spec.out])
    kernel = compilation.compile_cpu(linear_kernel(spec, product.schedule(m, ARCH)), opt_level=0)
    operands = host_operands(qw, product.activation, product.epilogue, product.schedule(m, ARCH))
    kernel(x=x, **operands, **parts, y=y, **product.numbers(m, ARCH, 5))
    wanted = wanted_of(x, qw, product.epilogue or None, **parts)
    limit = {"f16": 1e-3, "bf16": 8e-3}[product.activation]
    assert np.linalg.norm(y.astype(np.float64) - wanted) <= limit * np.linalg.norm(wanted)


def test_kernels_that_are_compiled_ahead_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("LOWLP_CACHE_DIR", str(tmp_path))
    product = Product("int4", 200, 640, rows=(1, 2, 16, 100))
    schedules = {product.schedule(m, ARCH) for m in product.rows}
    assert compile_ahead([product, product], ARCH, processes=1) == len(schedules) > 1
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == len(schedules)
    for m in product.rows:
        gpu_kernel(*product.kernel(m, ARCH))
    assert sorted(tmp_path.iterdir()) == kept
