"""Bar charts and curves as pictures of rectangles, lines and texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lowlp.drawing.picture import EDGE, FAINT, Box, Label, Line, Picture

COLORS: Final = ("#0969da", "#bf8700", "#1a7f37", "#cf222e", "#8250df", "#57606a")
_LEFT, _TOP, _WIDTH, _HEIGHT = 60.0, 64.0, 840.0, 300.0
_BOTTOM = _TOP + _HEIGHT


@dataclass(frozen=True)
class Series:
    """Values over the categories or places of a chart; None where there is none."""

    name: str
    values: tuple[float | None, ...]
    color: str
    faint: bool = False


def bars(
    title: str,
    categories: Sequence[str],
    series: Sequence[Series],
    rule: float | None = None,
    step: float = 0.5,
    digits: int = 2,
) -> Picture:
    """Groups of bars from 0 up, one group for each category, values with so many digits; a line across at `rule`."""
    top = max([value for one in series for value in one.values if value is not None] + [rule or 0.0, step])
    top = math.ceil(top / step - 1e-9) * step
    picture = _frame(title, series)

    def height(value: float) -> float:
        return value / top * _HEIGHT

    for number in range(round(top / step) + 1):
        _rule(picture, _BOTTOM - height(number * step), f"{number * step:g}")
    group = _WIDTH / max(1, len(categories))
    width = group * 0.8 / max(1, len(series))
    for number, category in enumerate(categories):
        left = _LEFT + group * (number + 0.1)
        for place, one in enumerate(series):
            value = one.values[number]
            if value is not None:
                x = left + place * width
                picture.add(Box(x, _BOTTOM - height(value), width * 0.9, height(value), one.color, ""))
                picture.add(Label(x + width * 0.45, _BOTTOM - height(value) - 6, f"{value:.{digits}f}", size=7.0))
        picture.add(Label(left + group * 0.4, _BOTTOM + 14, category))
    if rule is not None:
        y = _BOTTOM - height(rule)
        picture.add(Line(_LEFT, y, _LEFT + _WIDTH, y, "#cf222e", 1.0))
    return picture


def curves(
    title: str, places: Sequence[str], series: Sequence[Series], step: float | None = None, rule: float | None = None
) -> Picture:
    """Lines over evenly spaced places; the values on a logarithmic axis, or from 0 up with a mark each `step`, and a
    line across at `rule`."""
    values = [value for one in series for value in one.values if value is not None] or [1.0]
    picture = _frame(title, series)
    if step is None:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
        marks = [factor * 10.0**power for power in range(low, high) for factor in (1, 2, 5)] + [10.0**high]

        def y_of(value: float) -> float:
            return _BOTTOM - (math.log10(value) - low) / max(1, high - low) * _HEIGHT
    else:
        count = math.ceil(max(values) / step - 1e-9)
        marks = [number * step for number in range(count + 1)]

        def y_of(value: float) -> float:
            return _BOTTOM - value / (count * step) * _HEIGHT

    for mark in marks:
        _rule(picture, y_of(mark), f"{mark:g}")
    if rule is not None:
        picture.add(Line(_LEFT, y_of(rule), _LEFT + _WIDTH, y_of(rule), "#cf222e", 1.0))
    gap = _WIDTH / max(1, len(places))
    for number, place in enumerate(places):
        picture.add(Label(_LEFT + gap * (number + 0.5), _BOTTOM + 14, place))
    for one in series:
        _curve(picture, one, lambda number: _LEFT + gap * (number + 0.5), y_of)
    return picture


def _curve(picture: Picture, one: Series, x_of: Callable[[int], float], y_of: Callable[[float], float]) -> None:
    before: tuple[float, float] | None = None
    for number, value in enumerate(one.values):
        if value is None:
            before = None
            continue
        here = x_of(number), y_of(value)
        if before is not None:
            picture.add(Line(*before, *here, one.color, 1.0 if one.faint else 2.0))
        picture.add(Box(here[0] - 2, here[1] - 2, 4, 4, one.color, ""))
        before = here


def _frame(title: str, series: Sequence[Series]) -> Picture:
    picture = Picture(title)
    picture.add(Label(_LEFT, 18, title, size=14.0, align="left", bold=True))
    x = _LEFT
    for one in series:
        picture.add(Box(x, 34, 10, 10, one.color, ""))
        label = Label(x + 14, 39, one.name, align="left")
        picture.add(label)
        x += 30 + 6.5 * len(one.name)
    picture.add(Line(_LEFT, _BOTTOM, _LEFT + _WIDTH, _BOTTOM, EDGE, 1.0))
    return picture


def _rule(picture: Picture, y: float, text: str) -> None:
    picture.add(Line(_LEFT, y, _LEFT + _WIDTH, y, "#d0d7de", 0.5))
    picture.add(Label(_LEFT - 6, y, text, size=9.0, align="right", color=FAINT))
