"""Grid expressions: evaluation against Python, freezing, and every refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saved_kernel import describe

from lowlp_runtime import LowlpTypeError, LowlpValueError, Parameter
from lowlp_runtime.grid import evaluate, freeze, thaw

M = ["param", "m"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (7, 7),
        (M, 37),
        (["+", M, 1], 38),
        (["*", M, ["+", M, 3]], 37 * 40),
        (["floordiv", M, 16], 2),
        (["ceildiv", M, 16], 3),
        (["mod", M, 16], 5),
        (["floordiv", -37, 16], -3),
        (["ceildiv", -37, 16], -2),
        (["mod", -37, 16], 11),
    ],
)
def test_evaluate(expression: object, expected: int) -> None:
    assert evaluate(freeze(expression), {"m": 37}) == expected


@given(st.integers(-(2**70), 2**70), st.integers(1, 2**40))
def test_division_identities(a: int, b: int) -> None:
    quotient, rest = evaluate(("floordiv", a, b), {}), evaluate(("mod", a, b), {})
    assert quotient * b + rest == a
    assert 0 <= rest < b
    assert evaluate(("ceildiv", a, b), {}) == quotient + (rest > 0)


def test_json_round_trip() -> None:
    expression = ["ceildiv", ["*", M, 3], ["mod", ["param", "n"], 5]]
    assert thaw(freeze(expression)) == expression
    hash(freeze(expression))


@pytest.mark.parametrize("expression", [True, 1.5, None, {"param": "m"}, ["+", 1, "m"]])
def test_refuses_types(expression: object) -> None:
    with pytest.raises(LowlpTypeError, match="grid: expected an int or a list"):
        freeze(expression)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (["**", 2, 3], r"operator '\*\*' is unknown; allowed: param, \+, \*, floordiv, ceildiv, mod"),
        (["+", 1], "takes 2 operands, got 1"),
        (["param", 3], r"expected \['param', name\]"),
        ([], "expected"),
    ],
)
def test_refuses_values(expression: object, message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        freeze(expression)


def test_refuses_deep_nesting() -> None:
    expression: object = 1
    for _ in range(5000):
        expression = ["+", expression, 1]
    with pytest.raises(LowlpValueError, match="nested deeper than 64"):
        freeze(expression)


def test_description_evaluates_its_grid() -> None:
    description = describe()
    assert description.evaluate_grid({"n": 1000}) == (8, 1, 1)
    assert description.evaluate_grid({"n": 0, "other": 3}) == (0, 1, 1)
    with pytest.raises(LowlpValueError, match=r"x must be in 0\.\.2147483647, got -1 blocks from n=-128"):
        description.evaluate_grid({"n": -128})
    with pytest.raises(LowlpValueError, match="'n' has no value"):
        description.evaluate_grid({})


def test_grid_bounds_of_cuda() -> None:
    tall = describe(grid=(1, ("param", "n"), 1))
    assert tall.evaluate_grid({"n": 65535}) == (1, 65535, 1)
    with pytest.raises(LowlpValueError, match=r"y must be in 0\.\.65535, got 65536"):
        tall.evaluate_grid({"n": 65536})


def test_divisor_must_be_positive() -> None:
    with pytest.raises(LowlpValueError, match="divisor of 'ceildiv' must be positive, got 0"):
        describe(grid=(("ceildiv", 5, ("param", "n")), 1, 1)).evaluate_grid({"n": 0})


def test_grid_reads_integer_parameters_only() -> None:
    parameters = (Parameter("scale", "f32"), Parameter("n", "i64"))
    with pytest.raises(LowlpValueError, match="'scale' is no integer parameter; integer parameters: n"):
        describe(parameters=parameters, grid=(("param", "scale"), 1, 1))
