"""`lowlp layout`: which thread, which bits, which bank hold which element; as text, SVG or PNG."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import LowlpValueError

from . import output

if TYPE_CHECKING:
    from lowlp._layout import Placement
    from lowlp.drawing import Picture
    from lowlp.layouts.register_layout import Layout
    from lowlp.layouts.shared_layout import SharedLayout
    from lowlp.numeric.dtypes import DType

# As int6.f16; layouts have brackets.
_PLACEMENT_NAME = re.compile(r"[\w-]+\.\w+(\.k\d+)?")
_BYTE = 8
_MAX_DRAWN = 1 << 16
_SHARED_DTYPE = "f16"
_MAX_BITS_LISTED = 256


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "layout",
        help="draw a layout: which thread holds what, in which bits or which bank",
        description="Draw a layout. Each cell of the tile shows thread:place, the thread that holds the element and "
        "the element's place among that thread's values; above two dimensions each thread's elements are listed. For "
        "elements narrower than 8 bits the bits of thread 0 are told too. A layout of shared memory shows the bank of "
        "each element, and how many passes it takes to read a row, a column, or 8 rows of 16 bytes. The name of a "
        "placement of packed weights, as int6.f16, shows where each bit of a weight is in a lane's words.",
        epilog='examples:\n  lowlp layout "local(2,1).spatial(8,4).local(1,2)" --dtype int6\n'
        '  lowlp layout "local(2,1).spatial(8,4).local(1,2)" --dtype int6 --svg rows.svg\n'
        '  lowlp layout "swizzle(local(8,8), dim=1).local(1,8)" --dtype f16 --png banks.png\n'
        "  lowlp layout int6.f16 --svg int6.svg",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument(
        "layout", metavar="LAYOUT", help="factors joined by dots: local, spatial, column_local, ...; or int6.f16"
    )
    parser.add_argument(
        "--dtype", metavar="TYPE", help="the elements' type, as int6; of shared memory f16 where it is left out"
    )
    parser.add_argument(
        "--shared", action="store_true", help="a layout of shared memory, as one with a swizzle always is"
    )
    parser.add_argument("--svg", metavar="FILE", help="write a picture as SVG; - is stdout, and then there is no text")
    parser.add_argument("--png", metavar="FILE", help="write a picture as PNG; needs Pillow: pip install 'lowlp[draw]'")
    parser.add_argument(
        "--color",
        choices=("auto", "thread", "warp"),
        default="auto",
        help="what shares a colour; auto: threads, and warps where there are several (default)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints facts and drawing, and writes pictures."""
    from lowlp.numeric.dtypes import named_dtype

    if _PLACEMENT_NAME.fullmatch(options.layout):
        text, picture = _placement(options)
        return _show(text, picture, options)
    dtype = None if options.dtype is None else named_dtype(options.dtype, "--dtype")
    if options.shared or "swizzle" in options.layout:
        text, picture = _shared(options.layout, dtype or named_dtype(_SHARED_DTYPE, "--dtype"), options)
    else:
        text, picture = _registers(options.layout, dtype, options)
    return _show(text, picture, options)


def _show(text: str, picture: Picture | None, options: argparse.Namespace) -> int:
    if picture:
        _write(picture, options)
    if output.STDOUT not in (options.svg, options.png):
        print(text)
    return 0


def _write(picture: Picture, options: argparse.Namespace) -> None:
    from lowlp.drawing import to_png, to_svg

    if options.svg == options.png == output.STDOUT:
        raise LowlpValueError("--svg, --png: only one of them may go to stdout")
    if options.svg:
        output.write(options.svg, to_svg(picture))
    if options.png:
        output.write(options.png, to_png(picture))


def _registers(text: str, dtype: DType | None, options: argparse.Namespace) -> tuple[str, Picture | None]:
    from lowlp.layouts.register_layout import layout

    found = layout(text)
    facts = [
        ("layout", str(found)),
        ("shape", " x ".join(str(extent) for extent in found.shape)),
        ("threads", str(found.num_threads)),
        ("per thread", _plural(found.num_local, "element")),
    ]
    parts = [output.aligned(facts + (_facts_of_type(found, dtype) if dtype else [])), _drawing(found)]
    is_packed = dtype is not None and dtype.bits < _BYTE and found.num_local * dtype.bits <= _MAX_BITS_LISTED
    if dtype is not None and is_packed:
        parts.append("the bits of thread 0, low bits first\n" + output.aligned(_bits(found, dtype), "  "))
    picture = None
    if options.svg or options.png:
        from lowlp.drawing import draw_layout, draw_packed_bits, stacked

        picture = draw_layout(found, options.color)
        if dtype is not None and is_packed:
            picture = stacked([picture, draw_packed_bits(found, dtype)])
    return "\n\n".join(parts), picture


def _bits(layout: Layout, dtype: DType) -> list[tuple[str, str]]:
    rows = []
    for place in range(layout.num_local):
        first, last = place * dtype.bits, (place + 1) * dtype.bits - 1
        span = f"bit {first}" if first == last else f"bits {first} to {last}"
        first_byte, last_byte = first // _BYTE, last // _BYTE
        held = f"byte {first_byte}" if first_byte == last_byte else f"bytes {first_byte} and {last_byte}"
        rows.append((f"{place}: {layout(0, place)}", f"{span}, {held}"))
    return rows


def _shared(text: str, dtype: DType, options: argparse.Namespace) -> tuple[str, Picture | None]:
    from lowlp.drawing import KINDS, access_passes, bank_table, draw_banks
    from lowlp.layouts.shared_layout import shared_layout

    found = shared_layout(text)
    facts = [
        ("layout", str(found)),
        ("shape", " x ".join(str(extent) for extent in found.shape)),
        ("element type", f"{dtype.name}, {_plural(dtype.bits, 'bit')}"),
        ("bytes", output.count(-(-_elements(found) * dtype.bits // _BYTE))),
    ]
    passes = access_passes(found, dtype)
    facts += [(f"passes {KINDS[kind]}", str(number)) for kind, number in passes.items()]
    banks = bank_table(found, dtype)
    rows = banks.reshape(-1, banks.shape[-1]).tolist()
    table = "\n".join(" ".join(f"{bank:2}" for bank in row) for row in rows)
    picture = draw_banks(found, dtype) if options.svg or options.png else None
    return f"{output.aligned(facts)}\n\nthe bank of each element\n{table}", picture


def _placement(options: argparse.Namespace) -> tuple[str, Picture | None]:
    from lowlp.weights.packing import placement_named

    if options.dtype is not None or options.shared:
        raise LowlpValueError(f"--dtype, --shared: not for placements, got {options.layout}")
    found = placement_named(options.layout, "LAYOUT")
    facts = [
        ("placement", found.name),
        ("unit", f"{found.unit_rows} x {found.unit_k} weights {_codes_of_unit(found)}"),
        ("words per lane", f"{found.num_words}, {found.words_per_access} at a time"),
        ("slots", f"{found.slots} of {_plural(found.parts, 'weight' if found.vector == 1 else 'code')}"),
    ]
    slots = []
    halves, span = found.slots // (2 * found.row_tiles), found.parts if found.vector == 1 else found.vector
    for slot, parts in enumerate(found.places().tolist()):
        rows, first = slot // (2 * halves) * 16 + slot % 2 * 8, 4 * span * (slot // 2 % halves)
        name = f"slot {slot}: w[{rows}, {first}..{first + span - 1}]"
        slots.append((name, " | ".join(runs_of_bits(places) for places in parts)))
    picture = None
    if options.svg or options.png:
        from lowlp.drawing import draw_placement

        picture = draw_placement(found)
    title = "the bits of lane 0's weights, from bit 0 of a stored code on: word.bit of its words"
    return f"{output.aligned(facts)}\n\n{title}\n{output.aligned(slots, '  ')}", picture


def _codes_of_unit(placement: Placement) -> str:
    bits = f"of {_plural(placement.bits, 'bit')}"
    if placement.vector == 1:
        return bits
    codes = "a code" if placement.books == 1 else f"{placement.books} codes"
    return f"in vectors of {placement.vector}, {codes} {bits} each"


def runs_of_bits(places: Sequence[Sequence[int]]) -> str:
    """`0.4-7 2.1`: bits (word, bit) that follow each other, upwards or downwards, are written together."""
    runs: list[list[int]] = []  # word, first bit, last bit
    for word, bit in places:
        if runs and runs[-1][0] == word:
            _, first, last = runs[-1]
            step = bit - last
            if abs(step) == 1 and (first == last or (last > first) == (step > 0)):
                runs[-1][2] = bit
                continue
        runs.append([word, bit, bit])
    return " ".join(f"{word}.{first}" + (f"-{last}" if last != first else "") for word, first, last in runs)


def _elements(layout: SharedLayout) -> int:
    count = 1
    for extent in layout.shape:
        count *= extent
    return count


def _drawing(layout: Layout) -> str:
    elements = layout.num_threads * layout.num_local
    if elements > _MAX_DRAWN:
        return f"not drawn: {output.count(elements)} elements, and at most {output.count(_MAX_DRAWN)} are"
    return layout.draw() if len(layout.shape) <= 2 else _listing(layout)


def _plural(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _facts_of_type(layout: Layout, dtype: DType) -> list[tuple[str, str]]:
    """Sizes of a thread's share and of the tile, and the layout through which the share is loaded as bytes."""
    bits = layout.num_local * dtype.bits
    share = _plural(bits, "bit") + (f" = {_plural(bits // _BYTE, 'byte')}" if bits % _BYTE == 0 else "")
    facts = [("element type", f"{dtype.name}, {_plural(dtype.bits, 'bit')}"), ("bits per thread", share)]
    if bits % _BYTE:
        facts.append(("as bytes", "no: a thread's share is not a whole number of bytes"))
    else:
        bytes_layout = layout.reinterpret(from_bits=dtype.bits, to_bits=_BYTE)
        facts.append(("as bytes", f"{bytes_layout} over {_plural(bytes_layout.shape[0], 'byte')}"))
    return facts


def _listing(layout: Layout) -> str:
    rows = (
        (f"thread {thread}", " ".join(str(tuple(index)) for index in indices))
        for thread, indices in enumerate(layout.table().tolist())
    )
    return output.aligned(rows)
