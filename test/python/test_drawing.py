"""Drawings of layouts: what they show is what the layout says, in SVG, PNG and text."""

from __future__ import annotations

import builtins
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from lowlp._layout import Placement

import lowlp
from lowlp.cli import main
from lowlp.drawing import (
    access_passes,
    bank_table,
    draw_banks,
    draw_layout,
    draw_packed_bits,
    draw_placement,
    stacked,
    to_png,
    to_svg,
)
from lowlp.drawing.picture import Box, Label, Picture
from lowlp.drawing.placement_bits import bit_owners
from lowlp.drawing.shared_banks import passes
from lowlp.errors import LowlpRuntimeError, LowlpValueError
from lowlp.layouts.shared_layout import shared_layout

INT6_B = lowlp.layout("local(2, 1).column_spatial(4, 8).local(2, 1)")
F16 = lowlp.dtype("f16")
PLAIN = shared_layout("local(8, 64)")
SWIZZLED = shared_layout("swizzle(local(8, 8), dim=1).local(1, 8)")


def labels(picture: Picture) -> list[str]:
    return [shape.text for shape in picture.shapes if isinstance(shape, Label)]


def boxes(picture: Picture) -> list[Box]:
    return [shape for shape in picture.shapes if isinstance(shape, Box)]


def cells(picture: Picture) -> list[tuple[Box, str]]:
    """Every box and the text in its middle."""
    texts = {(shape.x, shape.y): shape.text for shape in picture.shapes if isinstance(shape, Label)}
    return [(box, texts.get((box.x + box.width / 2, box.y + box.height / 2), "")) for box in boxes(picture)]


# --- registers --------------------------------------------------------------------------------------------------------


def test_a_cell_names_thread_and_place() -> None:
    drawn = cells(draw_layout(INT6_B))
    assert len(drawn) == 16 * 8
    columns, rows = (sorted({getattr(box, axis) for box, _ in drawn}) for axis in ("x", "y"))
    for box, text in drawn:
        ((thread, place),) = INT6_B.threads_holding(rows.index(box.y), columns.index(box.x))
        assert text == f"{thread}:{place}"


def test_colours_are_of_threads_or_warps() -> None:
    def colours(picture: Picture) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for box, text in cells(picture):
            found.setdefault(int(text.partition(":")[0]), set()).add(box.fill)
        return found

    by_thread = colours(draw_layout(INT6_B))
    assert all(len(fills) == 1 for fills in by_thread.values())
    assert len(set.union(*by_thread.values())) == 32
    two_warps = lowlp.spatial(2, 1) * INT6_B
    assert len(set.union(*colours(draw_layout(two_warps)).values())) == 2
    assert len(set.union(*colours(draw_layout(two_warps, "thread")).values())) == 32


def test_copies_are_counted() -> None:
    picture = draw_layout(lowlp.layout("reduce(spatial(1, 1, 4), dims=[2]).local(1, 4)"))
    assert [text for _, text in cells(picture)] == ["0:0 +3", "0:1 +3", "0:2 +3", "0:3 +3"]


def test_one_dimension_is_broken_into_lines_and_three_are_tables() -> None:
    flat = draw_layout(lowlp.local(3).spatial(32))
    assert len({box.y for box in boxes(flat)}) == 3
    assert {"0", "32", "64"} <= set(labels(flat))
    assert {"[0, :, :]", "[1, :, :]"} <= set(labels(draw_layout(lowlp.local(2, 1, 1).spatial(1, 8, 4))))


def test_a_large_layout_is_refused() -> None:
    with pytest.raises(LowlpValueError, match=r"a picture holds at most 8192 elements; spatial\(100, 100\) has 10000"):
        draw_layout(lowlp.spatial(100, 100))


# --- bits -------------------------------------------------------------------------------------------------------------


def test_bits_of_an_element_lie_side_by_side() -> None:
    drawn = cells(draw_packed_bits(INT6_B, lowlp.dtype("int6"), threads=2))
    assert [text for _, text in drawn] == ["0,0", "1,0", "8,0", "9,0", "2,0", "3,0", "10,0", "11,0"]
    bit = drawn[0][0].width / 6
    assert [round((box.x - drawn[0][0].x) / bit) for box, _ in drawn[:4]] == [0, 6, 12, 18]


def test_an_element_may_lie_in_two_words() -> None:
    drawn = boxes(draw_packed_bits(lowlp.spatial(32).local(16), lowlp.dtype("int3"), threads=1))
    assert len(drawn) == 16 + 1  # element 10 has bits 30 to 32
    assert len({box.y for box in drawn}) == 2
    assert sum(box.width for box in drawn) == 48 * 18


def test_bits_are_of_small_types() -> None:
    with pytest.raises(LowlpValueError, match="dtype: elements of 1 to 8 bits are packed, got f16"):
        draw_packed_bits(INT6_B, F16)
    with pytest.raises(LowlpValueError, match=r"at most 1024 bits a thread; .* has 4096"):
        draw_packed_bits(lowlp.local(1024), lowlp.dtype("int4"))


@pytest.mark.parametrize("name", ["int6.f16", "e3m2.bf16", "lut4.f16", "int1.bf16"])
def test_each_bit_of_a_placement_is_drawn_where_it_is(name: str) -> None:
    placement = Placement.find(name)
    picture = draw_placement(placement)
    weights = boxes(picture)
    assert sum(box.width for box in weights) == placement.num_words * 32 * 24
    tops = sorted({box.y for box in weights})
    assert len(tops) == placement.num_words
    texts = [shape for shape in picture.shapes if isinstance(shape, Label)]
    names = {(label.x, label.y): label.text for label in texts}
    for word, owners in enumerate(bit_owners(placement)):
        for place, (slot, part, bit) in enumerate(owners):
            assert placement.place(slot, part, bit) == (word, place)
            x = weights[0].x + (place + 0.5) * 24
            (box,) = [box for box in weights if box.y == tops[word] and box.x < x < box.x + box.width]
            assert names[box.x + box.width / 2, box.y + 10] == f"{slot}.{part}"
            assert names[x, box.y + 22] == str(bit)


# --- banks ------------------------------------------------------------------------------------------------------------


def test_banks_are_those_of_addresses() -> None:
    assert (bank_table(PLAIN, F16) == np.arange(64)[None, :] // 2).all()
    table = bank_table(SWIZZLED, F16)
    assert all(table[i, j] == SWIZZLED.address_of(i, j) // 2 % 32 for i in range(8) for j in range(64))
    assert bank_table(shared_layout("local(4, 32)"), lowlp.dtype("int3"))[1, 31] == 63 * 3 // 32


def test_passes_are_counted() -> None:
    assert passes(range(32)) == 1
    assert passes([0] * 32) == 1  # one word for all is one pass
    assert passes([0, 32, 64, 1]) == 3
    assert access_passes(PLAIN, F16) == {"row": 1, "column": 8, "matrix": 8}
    assert access_passes(SWIZZLED, F16) == {"row": 1, "column": 1, "matrix": 1}
    assert access_passes(shared_layout("local(32, 32)"), lowlp.dtype("f32")) == {"row": 1, "column": 32, "matrix": 8}
    assert access_passes(shared_layout("local(4, 4)"), lowlp.dtype("f32")) == {"row": 1, "column": 1}


def test_what_is_counted_is_what_the_cpu_target_counts() -> None:
    from lowlp import language as ll

    def column(layout: lowlp.SharedLayout) -> int:
        @lowlp.kernel(grid=(1,), num_threads=32)
        def read(y: ll.pointer("f32")) -> None:
            tile = ll.alloc_shared("f32", shape=[32, 32], layout=layout)
            ll.store_shared(ll.full(1.0, "f32", layout=lowlp.local(32, 1).spatial(1, 32)), tile, offsets=[0, 0])
            ll.synchronize()
            values = ll.load_shared(tile, offsets=[0, 0], layout=lowlp.spatial(32, 1))
            ll.store_global(values, ll.view_global(y, shape=[32, 1]), offsets=[0, 0])

        counters = read(np.zeros(32, np.float32), sites=True)
        (site,) = [site for site in counters["sites"] if "load_shared" in site["site"]]
        return int(site["extra_passes"]) + int(site["requests"])

    for text in ("local(32, 32)", "swizzle(local(32, 32), dim=1)"):
        layout = shared_layout(text)
        assert column(layout) == access_passes(layout, lowlp.dtype("f32"))["column"]


def test_a_cell_of_banks_is_a_word() -> None:
    drawn = cells(draw_banks(SWIZZLED, F16))
    assert len(drawn) == 8 * 32
    assert [text for _, text in drawn[32:40]] == ["4", "5", "6", "7", "0", "1", "2", "3"]
    assert "passes of a read: along a row 1, down a column 1, 8 rows of 16 bytes 1" in labels(draw_banks(SWIZZLED, F16))


# --- files ------------------------------------------------------------------------------------------------------------


def test_svg_is_well_formed_and_complete() -> None:
    picture = stacked([draw_layout(INT6_B), draw_packed_bits(INT6_B, lowlp.dtype("int6"))])
    root = ElementTree.fromstring(to_svg(picture))
    svg = "{http://www.w3.org/2000/svg}"
    assert [element.text for element in root.iter(f"{svg}text")] == labels(picture)
    assert len(list(root.iter(f"{svg}rect"))) == len(boxes(picture)) + 1
    assert (float(root.get("width", 0)), float(root.get("height", 0))) == (picture.width, picture.height)
    for box in boxes(picture):
        assert box.x + box.width <= picture.width
        assert box.y + box.height <= picture.height


def test_png_has_the_size_and_colours_of_the_picture() -> None:
    image_module = pytest.importorskip("PIL.Image")
    import io

    picture = draw_layout(INT6_B)
    data = to_png(picture, scale=2)
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (round(2 * picture.width), round(2 * picture.height))
    image = image_module.open(io.BytesIO(data)).convert("RGB")
    for box in boxes(picture)[:5]:
        pixel = image.getpixel((round(2 * box.x + 5), round(2 * box.y + 5)))
        assert "#" + "".join(f"{value:02x}" for value in pixel) == box.fill


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "PIL":
            raise ImportError("No module named 'PIL'")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(LowlpRuntimeError, match=r"drawn with Pillow.*pip install 'lowlp\[draw\]'"):
        to_png(draw_layout(INT6_B))


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("PIL")
    svg, png = tmp_path / "l.svg", tmp_path / "l.png"
    assert main(["layout", str(INT6_B), "--dtype", "int6", "--svg", str(svg), "--png", str(png)]) == 0
    out = capsys.readouterr().out
    assert INT6_B.draw() in out
    assert re.search(r"^  1: \(1, 0\) +bits 6 to 11, bytes 0 and 1$", out, re.MULTILINE)
    assert svg.read_text() == to_svg(stacked([draw_layout(INT6_B), draw_packed_bits(INT6_B, lowlp.dtype("int6"))]))
    assert png.read_bytes().startswith(b"\x89PNG")
    assert main(["layout", "spatial(8, 4)", "--svg", "-"]) == 0
    assert capsys.readouterr().out == to_svg(draw_layout(lowlp.spatial(8, 4)))
    assert main(["layout", "spatial(8, 4)", "--svg", "-", "--png", "-"]) == 1
    assert "only one of them may go to stdout" in capsys.readouterr().err


@pytest.mark.parametrize("text", [str(SWIZZLED), "local(8, 64)"])
def test_the_command_shows_banks(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", text, "--shared", "--svg", str(tmp_path / "l.svg")]) == 0
    out = re.sub(r" {2,}", "  ", capsys.readouterr().out)
    passes_down = 1 if "swizzle" in text else 8
    assert (
        f"\nelement type  f16, 16 bits\nbytes  1,024\npasses along a row  1\npasses down a column  {passes_down}\n"
        in out
    )
    assert "\nthe bank of each element\n" in out
    assert to_svg(draw_banks(shared_layout(text), F16)) == (tmp_path / "l.svg").read_text()


def test_the_command_refuses_what_cannot_be_shared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layout", "spatial(8, 4)", "--shared"]) == 1
    assert capsys.readouterr().err.startswith("lowlp: error: ")
