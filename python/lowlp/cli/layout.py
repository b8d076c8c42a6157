"""`lowlp layout`: which thread holds which element, as text."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from lowlp.dtypes import DType
    from lowlp.layouts import Layout

_BYTE = 8
_MAX_DRAWN = 1 << 16


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "layout",
        help="draw a layout: which thread holds which element",
        description="Draw a layout. Each cell of the tile shows thread:local, the thread that holds the element and "
        "the element's place among that thread's values. Above two dimensions each thread's elements are listed.",
        epilog='example:\n  lowlp layout "local(2,1).spatial(8,4).local(1,2)" --dtype f16',
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("layout", metavar="LAYOUT", help="factors joined by dots: local, spatial, column_local, ...")
    parser.add_argument("--dtype", metavar="TYPE", help="also tell bits and bytes for elements of this type, as int6")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints facts and drawing."""
    from lowlp.dtypes import named_dtype
    from lowlp.layouts import layout

    found = layout(options.layout)
    facts = [
        ("layout", str(found)),
        ("shape", " x ".join(str(extent) for extent in found.shape)),
        ("threads", str(found.num_threads)),
        ("per thread", _plural(found.num_local, "element")),
    ]
    if options.dtype is not None:
        facts += _facts_of_type(found, named_dtype(options.dtype, "--dtype"))
    print(output.table(facts))
    print()
    print(_drawing(found))
    return 0


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
    return output.table(rows)
