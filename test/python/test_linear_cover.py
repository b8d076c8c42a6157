"""Every codec, group and form of scales in kernels of every form: rows of I give `dequantize()` to the bit, and random
products what float64 gives.

A sample; `LOWLP_WHOLE_MATRIX=1 pytest test/python/test_linear_cover.py -n 2` goes through all (CONTRIBUTING.md).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from linear_cover import CASES, FORMS, GROUPS, SCALE_FORMS, Case, numbers_of, without_epilogue
from linear_matrix import CODES, ERROR_LIMITS, TYPES

from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.operands import host_operands
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.spec import LinearSpec

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")


@pytest.mark.sampled(9)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_identity_and_random_products(case: Case) -> None:
    qw = case.weights()
    form, spec, schedule = case.kernel(qw)
    plain = without_epilogue(spec)
    kernel = compile_cpu(linear_kernel(spec, schedule))

    def run(spec: LinearSpec, kernel: Any, **given: Any) -> Any:
        operands = host_operands(qw, spec.activation, spec.epilogue, schedule)
        y = np.full((case.m, spec.columns_of_y), np.nan, TYPES[spec.out])
        kernel(**operands, **given, y=y, **numbers_of(spec, schedule, case))
        return y

    x = case.identity()
    y = run(plain, kernel if plain == spec else compile_cpu(linear_kernel(plain, schedule)), x=x, **case.zeros(plain))
    np.testing.assert_array_equal(y, case.shown(qw, x, plain), err_msg=f"{form} {schedule}")

    given = case.random_operands(qw)
    error = case.error(run(spec, kernel, **given), qw, **given)
    assert error <= ERROR_LIMITS[case.config.activation], f"{form} {schedule}"


def test_every_combination_is_there_once() -> None:
    found = [(case.config.code, case.config.group, case.scales) for case in CASES]
    assert sorted(found, key=str) == sorted(itertools.product(CODES, GROUPS, SCALE_FORMS), key=str)
    assert len({str(case) for case in CASES}) == len(CASES)


def test_every_form_of_kernel_has_every_form_of_scales() -> None:
    def is_made(form: str, scales: str) -> bool:
        # Scales of rows are one level, and those that few rows have on weights of the activation type.
        if "rows" in form:
            return scales != "two levels"
        return scales == "own" or not ("streamed" in form and "weights" in form)

    left = {pair for pair in itertools.product(FORMS, SCALE_FORMS) if is_made(*pair)}
    # Whole groups go with every form.
    for case in sorted(CASES, key=lambda case: case.config.group is not None):
        left.discard((case.kernel(case.weights())[0], case.scales))
        if not left:
            break
    assert not left
