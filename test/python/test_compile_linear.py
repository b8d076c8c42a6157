"""`compile_linear`, the kernel it gives, and `load`: what they take, hold and refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.weights.packing import PACKED_FORMAT_VERSION

BASE: dict[str, Any] = {"n": 64, "k": 128, "weight": "int4", "group_size": 64}


@pytest.fixture(scope="module")
def kernel() -> Any:
    return lowlp.compile_linear(
        n=64, k=256, m=(1, 16), weight="int6", group_size=128, activation="f16", target="sm_90a", schedule=None
    )


def test_the_kernel_holds_code_at_every_level(kernel: Any) -> None:
    assert ".target sm_90a" in kernel.ptx
    assert kernel.cubin.startswith(b"\x7fELF")
    assert "lowlp.dot" in kernel.ir("block")
    assert "gpu.func" in kernel.ir("thread")
    assert "nvvm.mma.sync" in kernel.ir("nvvm")
    assert "registers per thread" in kernel.report()
    assert len(repr(kernel)) < 100


def test_a_saved_kernel_comes_back_equal(kernel: Any, tmp_path: Path) -> None:
    kernel.save(tmp_path / "k.lowlp")
    again = lowlp.load(tmp_path / "k.lowlp")
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert again.report() == kernel.report()
    assert (again.ptx, again.cubin, again.ir("nvvm")) == (kernel.ptx, kernel.cubin, kernel.ir("nvvm"))


def test_types_may_be_objects_or_long_names(kernel: Any) -> None:
    other = lowlp.compile_linear(
        n=np.int64(64),
        k=256,
        m=[1, 16],
        weight=lowlp.int6,
        activation="float16",
        out_dtype=lowlp.f16,
        scale_dtype=lowlp.f16,
    )
    assert other == kernel
    named = lowlp.compile_linear(**{**BASE, "weight": "float6_e3m2", "activation": lowlp.bf16, "bias": lowlp.f32})
    assert named.name == "linear_f6e3m2_bf16"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": "8"}, "n: expected an int, got '8'"),
        ({"n": 1.5}, "n: expected an int, got 1.5"),
        ({"n": True}, "n: expected an int, got True"),
        ({"k": None}, "k: expected an int, got None"),
        ({"group_size": "64"}, "group_size: expected an int, or None for a whole row, got '64'"),
        ({"group_size": 64.0}, "group_size: expected an int, or None"),
        ({"weight": None}, "weight: expected a name such as 'int6' or a DType, got NoneType"),
        ({"activation": float}, "activation: expected a name such as 'int6' or a DType, got type"),
        ({"m": 16}, r"m: expected None or a pair of ints \(least, largest\), got 16"),
        ({"m": "ab"}, "m: expected None or a pair of ints"),
        ({"m": (1.0, 2.0)}, "m: expected None or a pair of ints"),
        ({"zeros": 3.0}, "zeros: expected a bool or one of int8, uint8, int16, f16, bf16, f32, got 3.0"),
        ({"offsets": 1}, "offsets: expected a bool or one of f16, bf16, f32, got 1"),
        ({"scale2": 1}, "scale2: expected a bool or 'row', got 1"),
        ({"schedule": "x"}, "schedule: expected None or a Schedule, got 'x'"),
        ({"bias": np.zeros(3)}, "bias: expected a name such as 'int6' or a DType, got ndarray"),
        ({"target": 90}, "target: expected an architecture such as 'sm_90a', got 90"),
    ],
)
def test_refuses_types(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LowlpTypeError, match=message):
        lowlp.compile_linear(**{**BASE, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 0}, r"n: must be in 1\.\.2147483647, got 0"),
        ({"n": 2**70}, r"n: must be in 1\.\.2147483647, got 1180591620717411303424"),
        ({"k": 130}, "group_size: must divide K = 130"),
        ({"group_size": 0}, "group_size: must divide K = 128"),
        ({"weight": "int9"}, "weight: there is no type 'int9'"),
        ({"weight": "uint16"}, "weight: must be a type of 1 to 8 bits, got uint16"),
        ({"weight": "lut9"}, "weight: tables are 'lut1' to 'lut8', got 'lut9'"),
        (
            {"table": "tensor"},
            "table: must be one of tensor, channel, group with a weight of 'lut1' to 'lut8', got 'ten",
        ),
        ({"weight": "lut4", "table": "row"}, "table: must be one of tensor, channel, group .* got 'row' with lut4"),
        (
            {"weight": "lut4", "zeros": True},
            "zeros: allowed for integer types only, got dtype 4-bit table; use offsets",
        ),
        ({"weight": "bipolar2", "zeros": True}, "zeros: allowed for integer types only, got dtype bipolar2"),
        ({"zeros": "yes"}, "zeros: expected a bool or one of int8, uint8, int16, f16, bf16, f32, got 'yes'"),
        ({"offsets": "int8"}, "offsets: expected a bool or one of f16, bf16, f32, got 'int8'"),
        ({"offsets": True, "scale2": True}, "scale2, offsets: at most one of them may be given, got both"),
        ({"weight": "f8e7m0"}, "weight: f8e7m0 has 7 exponent bits and f16 has 5; use bf16"),
        ({"weight": "f4e2m1", "zeros": True}, "zeros: allowed for integer types only, got dtype f4e2m1"),
        ({"zeros": True, "offsets": True}, "zeros, offsets: at most one of them may be given"),
        ({"activation": "f32"}, "activation: must be one of f16, bf16, int8, uint8, f8e4m3, f8e5m2, got 'f32'"),
        ({"out_dtype": "int8"}, "out_dtype: must be one of f16, bf16, f32, got 'int8'"),
        ({"scale_dtype": "int8"}, "scale_dtype: must be one of f16, bf16, f32, e8m0, e4m3, got 'int8'"),
        ({"bias": "int8"}, "bias: must be one of f16, bf16, f32, got 'int8'"),
        ({"m": (5, 1)}, r"m: expected 0 <= least <= largest <= 2147483647, got \(5, 1\)"),
        ({"m": (0, 2**40)}, "m: expected 0 <= least <= largest <= 2147483647"),
        ({"target": "cpu"}, "target: expected an architecture such as 'sm_90a', got 'cpu'"),
        ({"target": "sm_91"}, "target: unknown architecture 'sm_91'; known are .*sm_90a"),
    ],
)
def test_refuses_values(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        lowlp.compile_linear(**{**BASE, **changes})


@pytest.mark.parametrize(("rows", "scales"), [((1, 100), "on the f32 accumulators"), ((65, 100), "on weights, in f16")])
def test_results_of_f32_decide_by_the_least_rows_where_scales_go(rows: tuple[int, int], scales: str) -> None:
    kernel = lowlp.compile_linear(n=5120, k=5120, m=rows, weight="int4", group_size=32, out_dtype="f32")
    plan: Any = kernel.description.notes["plan"]
    assert plan["scales"].startswith(scales)


def test_the_notes_say_what_was_decided() -> None:
    kernel = lowlp.compile_linear(
        n=100, k=96, m=(1, 16), weight="lut3", table="channel", group_size=24, scale_dtype="e4m3", scale2=True
    )
    notes = kernel.description.notes
    assert kernel.description.packed_format == PACKED_FORMAT_VERSION
    assert notes["schedule"] == {"columns": 16, "warps": 2}
    plan, floor = notes["plan"], notes["floor"]
    assert plan["placement"] == "lut3.f16.k32"
    assert plan["units"] == "32 rows by 32 weights, rows padded to 96"
    assert (floor["weight bytes"], floor["of these padding"]) == (128 * 96 * 3 // 8, 0)
    assert floor["scale bytes"] == 100 * 4
    assert "table_unscale" in kernel.ir("block")
    assert "scale2" in kernel.ir("block")


def test_a_schedule_may_be_given() -> None:
    kernel = lowlp.compile_linear(**BASE, schedule=Schedule(columns=32, warps=1))
    assert kernel.description.block[0] == 32
    for wrong in ({"columns": 12}, {"warps": 17}, {"table_form": "pairs"}, {"table_copies": 3}):
        with pytest.raises(LowlpValueError, match=rf"{next(iter(wrong))}: must be (one of|a multiple of 8) .*, got"):
            Schedule(**wrong)


@pytest.mark.parametrize(("form", "copies"), [("pair", 32), ("pair", 4), ("entry", 1), ("entry", 16)])
def test_a_schedule_says_how_tables_are_looked_up(form: str, copies: int) -> None:
    schedule = Schedule(table_form=form, table_copies=copies)
    kernel = lowlp.compile_linear(n=64, k=128, weight="lut4", group_size=64, schedule=schedule)
    (lookup,) = kernel.description.notes["lookups"].values()
    assert {"pair": "pairs of", "entry": "entries of"}[form] in lookup
    assert copies == 1 or f"{copies} copies" in lookup
    assert kernel.description.notes["schedule"]["table_copies"] == copies


@pytest.mark.parametrize("field", ["n", "k"])
def test_a_spec_is_checked(field: str) -> None:
    with pytest.raises(LowlpValueError, match=f"{field}: must be at least 1, got 0"):
        LinearSpec(**{"n": 8, "k": 8, "codec": "int4 g8 f16", field: 0})


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        ("int4 g3 f16", "group_size: must divide k = 8, got 3"),
        ("int4", "codec: expected one with scales, got int4"),
        ("lut9:f16:tensor g8 f16", "weight: must have codes of 1 to 8 bits, got lut9:f16:tensor"),
        ("f8e6m1 g8 f16", "weight: f8e6m1 has 6 exponent bits and f16 has 5"),
        ("int4 g8 f16 zeros:int4", "codec: zeros: must be one of int8, .*, got 'int4'"),
    ],
)
def test_a_codec_that_no_kernel_takes_is_refused(codec: str, message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        LinearSpec(8, 8, codec)  # type: ignore[arg-type]


def test_one_kernel_serves_codecs_that_differ_by_operands() -> None:
    tables = [lowlp.Codec.parse(f"lut1:{kind}[-1, {last}] g8 f16") for kind, last in (("f16", 1), ("f32", 2))]
    assert len({LinearSpec(8, 16, codec) for codec in tables}) == 1
    assert len({LinearSpec(8, 8, lowlp.Codec.parse(f"int4 {group} f16")) for group in ("g8", "channel", "tensor")}) == 1


def test_weights_too_large_for_many_rows_name_m() -> None:
    with pytest.raises(LowlpValueError, match=r"^m: 8192 rows are too many, .* of weights 1048576 x 1048576"):
        lowlp.compile_linear(n=2**20, k=2**20, weight="int4")


@pytest.mark.parametrize("level", ["ptx", "", None, [1]])
def test_refuses_levels(kernel: Any, level: Any) -> None:
    with pytest.raises(LowlpValueError, match=r"level: .* held: block, thread, nvvm"):
        kernel.ir(level)


def test_refuses_paths(kernel: Any, tmp_path: Path) -> None:
    with pytest.raises(LowlpTypeError, match=r"path: expected a str or an os\.PathLike, got NoneType"):
        kernel.save(None)
    with pytest.raises(LowlpTypeError, match=r"path: expected a str or an os\.PathLike, got int"):
        lowlp.load(3)  # type: ignore[arg-type]
    missing = tmp_path / "missing" / "k.lowlp"
    for attempt in (lambda: lowlp.load(missing), lambda: kernel.save(missing)):
        with pytest.raises(FileNotFoundError) as caught:
            attempt()
        assert isinstance(caught.value, lowlp.LowlpError)
        assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError) as refused:
        lowlp.load(tmp_path)
    assert isinstance(refused.value, lowlp.LowlpError)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((None,), LowlpTypeError, "program: expected a kernel of the DSL or text of the block dialect, got NoneType"),
        (("",), LowlpValueError, "program: expected one kernel, found none"),
        (("\udcff",), LowlpValueError, "program: cannot be encoded as UTF-8"),
        (("garbage",), LowlpValueError, "parsing the program: .*garbage"),
        (("", "sm_90a", True), LowlpValueError, "opt_level: expected 0, 1, 2 or 3, got True"),
        (("", "sm_90a", 2.0), LowlpValueError, r"opt_level: expected 0, 1, 2 or 3, got 2\.0"),
    ],
)
def test_compile_refuses(arguments: tuple[Any, ...], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        lowlp.compile(*arguments[:2], **({"opt_level": arguments[2]} if len(arguments) > 2 else {}))
