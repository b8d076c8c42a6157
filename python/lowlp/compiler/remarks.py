"""What the passes say of what they did to a program, and of what they did not and why (MLIR's remark engine)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowlp._mlir import ir


@dataclass(frozen=True)
class Remark:
    """One remark of a pass.

    declined  True: the pass left the op without `what`, for the reason `text`; False: it gave it `what`, as `text` says
    pass_name the pass, as `lowlp-plan-decode`
    what      as 'plan' or 'stages'
    kernel    the kernel's name
    op        the name of the op, as `lowlp.dot`
    text      the reason, or which it got
    file      where the op was written; '' where that is not known
    line      its line there; 0 where that is not known
    """

    declined: bool
    pass_name: str
    what: str
    kernel: str
    op: str
    text: str
    file: str
    line: int

    def __str__(self) -> str:
        """`lowlp-plan-decode: lowlp.dot at k.py:12 without plan: weights are scaled in f32 ...`."""
        place = f" at {os.path.basename(self.file)}:{self.line}" if self.line else ""
        return f"{self.pass_name}: {self.op}{place} {'without' if self.declined else 'with'} {self.what}: {self.text}"


@contextmanager
def collected(context: ir.Context) -> Iterator[list[Remark]]:
    """A list that holds, when the block ends, the remarks of all passes that ran in `context` within it, in order."""
    from lowlp._mlir._mlir_libs import _compiler

    remarks: list[Remark] = []
    collector = _compiler.Remarks(context)
    collector.start()
    try:
        yield remarks
    finally:
        collector.stop()
        remarks.extend(Remark(*facts) for facts in collector.get())


def summary(remarks: Iterable[Remark]) -> dict[str, str]:
    """What was declined, one text for each place and reason, numbered from '1'; with how often it was said."""
    counts = Counter(str(remark) for remark in remarks if remark.declined)
    return {
        str(number): text if count == 1 else f"{text} ({count} times)"
        for number, (text, count) in enumerate(counts.items(), 1)
    }
