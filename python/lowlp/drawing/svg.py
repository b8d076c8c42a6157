"""A picture as SVG text."""

from __future__ import annotations

from xml.sax.saxutils import escape

from .picture import INK, PAPER, Box, Label, Line, Picture

_FONT = "DejaVu Sans, Helvetica, Arial, sans-serif"
_SIZE = 11.0
_ANCHOR = {"left": "start", "middle": "middle", "right": "end"}


def to_svg(picture: Picture) -> str:
    """The picture as one SVG document, with its title for screen readers."""
    width, height = _number(picture.width), _number(picture.height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" font-family="{_FONT}" font-size="{_number(_SIZE)}" text-anchor="middle" '
        f'dominant-baseline="central" fill="{INK}">',
        f"<title>{escape(picture.title)}</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *map(_element, picture.shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _element(shape: Box | Line | Label) -> str:
    if isinstance(shape, Box):
        edge = f' stroke="{shape.edge}" stroke-width="{_number(shape.edge_width)}"' if shape.edge else ""
        place = " ".join(f'{name}="{_number(getattr(shape, name))}"' for name in ("x", "y", "width", "height"))
        return f'<rect {place} fill="{shape.fill}"{edge}/>'
    if isinstance(shape, Line):
        place = " ".join(f'{name}="{_number(getattr(shape, name))}"' for name in ("x1", "y1", "x2", "y2"))
        return f'<line {place} stroke="{shape.color}" stroke-width="{_number(shape.width)}"/>'
    # What most texts share is written once, at the top.
    size = f' font-size="{_number(shape.size)}"' if shape.size != _SIZE else ""
    anchor = f' text-anchor="{_ANCHOR[shape.align]}"' if shape.align != "middle" else ""
    color = f' fill="{shape.color}"' if shape.color != INK else ""
    bold = ' font-weight="bold"' if shape.bold else ""
    return f'<text x="{_number(shape.x)}" y="{_number(shape.y)}"{size}{anchor}{color}{bold}>{escape(shape.text)}</text>'
