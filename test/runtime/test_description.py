"""Descriptions cannot be made malformed, and survive JSON."""

import json

import pytest
from saved_kernel import describe

from lowlp_runtime import KernelDescription, LowlpTypeError, LowlpValueError, Parameter


def test_json_round_trip() -> None:
    description = describe(block=[32, 4, 1], shared_bytes=99_000)
    again = KernelDescription.from_json(json.loads(json.dumps(description.to_json())))
    assert again == description
    assert hash(again) == hash(description)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "add one"}, "name: expected a PTX identifier, got 'add one'"),
        ({"block": (1025, 1, 1)}, "threads in x must be in 1..1024, got 1025"),
        ({"block": (32, 32, 2)}, r"at most 1024 threads, got 32 \* 32 \* 2 = 2048"),
        ({"block": (32, 0, 1)}, "threads in y must be in 1..1024, got 0"),
        ({"shared_bytes": -1}, "shared_bytes: must be in"),
        ({"format_version": 1}, "format_version: must be 2, got 1"),
        ({"parameters": (Parameter("n", "i32"), Parameter("n", "i64"))}, "the name 'n' occurs 2 times"),
        ({"notes": {"x": float("nan")}}, "notes: not JSON"),
        ({"notes": {"x": object()}}, "notes: not JSON"),
    ],
)
def test_refuses_values(changes: dict[str, object], message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        describe(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 3}, "name: expected str, got 3"),
        ({"shared_bytes": True}, "shared_bytes: expected int, got True"),
        ({"block": 128}, "block: expected three entries"),
        ({"grid": (1, 1)}, "grid: expected three entries"),
        ({"parameters": "n"}, "parameters: expected a sequence of Parameter"),
        ({"notes": {3: 4}}, "notes: expected a mapping with string keys"),
    ],
)
def test_refuses_types(changes: dict[str, object], message: str) -> None:
    with pytest.raises(LowlpTypeError, match=message):
        describe(**changes)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("2n", "i32"), "expected an identifier, got '2n'"),
        (("n", "i7"), "kind 'i7' is unknown; allowed: pointer, i32, i64, f32, f64"),
        (("x", "pointer"), "element must be the name of an element type"),
        (("n", "i32", "f16"), r"element must be '' \(it is no pointer\), got 'f16'"),
        (("x", "pointer", "f16", 24), "alignment_bytes must be a power of two, got 24"),
    ],
)
def test_parameter_refuses(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        Parameter(*arguments)  # type: ignore[arg-type]


def test_from_json_wants_exactly_its_fields() -> None:
    data = describe().to_json()
    with pytest.raises(LowlpValueError, match="missing or unknown fields: colour"):
        KernelDescription.from_json({**data, "colour": 1})
    with pytest.raises(LowlpTypeError, match="description: expected an object, got list"):
        KernelDescription.from_json([])
    del data["block"]
    with pytest.raises(LowlpValueError, match="missing or unknown fields: block"):
        KernelDescription.from_json(data)


def test_notes_do_not_follow_the_caller() -> None:
    notes = {"steps": [1, 2]}
    description = describe(notes=notes)
    notes["steps"].append(3)
    assert description.notes == {"steps": [1, 2]}
