"""How far a command is that takes long: a bar, or lines."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str, unit: str = "row") -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on stderr; lines now and then where that is no terminal or tqdm is missing."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not sys.stderr.isatty():
        yield _lines(what)
        return
    bar = tqdm(desc=what, unit=unit, file=sys.stderr)

    def show(done: int, total: int, text: str) -> None:
        bar.total = total
        bar.set_postfix_str(text, refresh=False)
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        bar.close()


def _lines(what: str) -> Callable[[int, int, str], None]:
    """A line for each twentieth of the way."""
    shown = -1

    def show(done: int, total: int, text: str) -> None:
        nonlocal shown
        part = 20 * done // max(1, total)
        if part != shown:
            shown = part
            print(f"{what}: {done} of {total}, {text}", file=sys.stderr, flush=True)

    return show
