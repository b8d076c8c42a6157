"""A picture as PNG, drawn with Pillow."""

from __future__ import annotations

import io
from typing import Any

from lowlp_runtime.errors import LowlpRuntimeError

from .picture import PAPER, Box, Label, Line, Picture

_ANCHOR = {"left": "lm", "middle": "mm", "right": "rm"}


def to_png(picture: Picture, scale: float = 2.0) -> bytes:
    """The picture as a PNG file.

    scale  pixels for each unit of the picture

    Raises `LowlpRuntimeError`, with what to install, where Pillow is missing.
    """
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise LowlpRuntimeError(
            f"a PNG is drawn with Pillow, which cannot be imported ({error}); "
            "install it with: pip install 'lowlp[draw]'; an SVG needs nothing"
        ) from error

    def at(*values: float) -> list[float]:
        return [value * scale for value in values]

    def thickness(value: float) -> int:
        return max(1, round(value * scale))

    image = Image.new("RGB", (round(picture.width * scale), round(picture.height * scale)), PAPER)
    draw = ImageDraw.Draw(image)
    fonts: dict[float, Any] = {}
    for shape in picture.shapes:
        if isinstance(shape, Box):
            corners = at(shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
            edge = thickness(shape.edge_width) if shape.edge else 0
            draw.rectangle(corners, fill=shape.fill, outline=shape.edge or None, width=edge)
        elif isinstance(shape, Line):
            draw.line(at(shape.x1, shape.y1, shape.x2, shape.y2), fill=shape.color, width=thickness(shape.width))
        else:
            assert isinstance(shape, Label)
            font = fonts.setdefault(shape.size, ImageFont.load_default(shape.size * scale))
            weight = scale / 6 if shape.bold else 0
            anchor = _ANCHOR[shape.align]
            draw.text((shape.x * scale, shape.y * scale), shape.text, shape.color, font, anchor, stroke_width=weight)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
