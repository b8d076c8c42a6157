"""A picture as a list of rectangles, lines and texts, which `svg` and `png` write out."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, field
from typing import Literal

INK = "#1f2328"
FAINT = "#57606a"
EDGE = "#8c959f"
PAPER = "#ffffff"
MARGIN = 12.0


@dataclass(frozen=True)
class Box:
    """A filled rectangle; an `edge` of '' draws no outline. All lengths are in pixels of the unscaled picture."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    edge: str = EDGE
    edge_width: float = 0.75


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    color: str = INK
    width: float = 1.75


@dataclass(frozen=True)
class Label:
    """Text whose middle line is at y; x is its left end, its middle or its right end."""

    x: float
    y: float
    text: str
    size: float = 11.0
    align: Literal["left", "middle", "right"] = "middle"
    color: str = INK
    bold: bool = False


@dataclass
class Picture:
    """Shapes in the order in which they are drawn; the picture grows to hold them."""

    title: str = ""
    shapes: list[Box | Line | Label] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0

    def add(self, *shapes: Box | Line | Label) -> None:
        """Adds shapes on top of those that are there."""
        for shape in shapes:
            right, bottom = _corner(shape)
            self.width = max(self.width, right + MARGIN)
            self.height = max(self.height, bottom + MARGIN)
            self.shapes.append(shape)


def _corner(shape: Box | Line | Label) -> tuple[float, float]:
    if isinstance(shape, Box):
        return shape.x + shape.width, shape.y + shape.height
    if isinstance(shape, Line):
        return max(shape.x1, shape.x2), max(shape.y1, shape.y2)
    part = {"left": 1.0, "middle": 0.5, "right": 0.0}[shape.align]
    return shape.x + part * text_width(shape), shape.y + shape.size / 2


def text_width(label: Label) -> float:
    """About how wide a text is; the fonts of viewers differ."""
    return len(label.text) * label.size * (0.62 if label.bold else 0.58)


def stacked(pictures: list[Picture]) -> Picture:
    """The pictures one below the other."""
    result = Picture("; ".join(picture.title for picture in pictures if picture.title))
    top = 0.0
    for picture in pictures:
        for shape in picture.shapes:
            result.add(moved(shape, top))
        top += picture.height
    return result


def moved(shape: Box | Line | Label, down: float) -> Box | Line | Label:
    """The shape further down."""
    if isinstance(shape, Box):
        return Box(shape.x, shape.y + down, shape.width, shape.height, shape.fill, shape.edge, shape.edge_width)
    if isinstance(shape, Line):
        return Line(shape.x1, shape.y1 + down, shape.x2, shape.y2 + down, shape.color, shape.width)
    return Label(shape.x, shape.y + down, shape.text, shape.size, shape.align, shape.color, shape.bold)


def shade(number: int, count: int) -> str:
    """A light colour for one of `count` things: hues go round once, and neighbours differ in lightness too."""
    hue = (number % count) / max(count, 1)
    lightness = 0.86 if number % 2 == 0 else 0.76
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.75)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"
