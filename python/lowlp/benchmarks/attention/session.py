"""One run: what is measured in which order, and the file that has it after each time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lowlp.benchmarks.results import Run
from lowlp.benchmarks.worker import deadline_after
from lowlp.kernels.attention.spec import VERSIONS

from .cases import APPEND, APPEND_BATCH, Case
from .results import KEYS_ONLY, OURS, AttentionResults, AttentionRow

PEERS: Final = ("torch", "flashinfer")


@dataclass(frozen=True)
class Item:
    """Something to measure, named as in `AttentionRow`."""

    who: str
    kind: str
    case: Case
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.who} {self.kind}, {self.case}{', ' if self.variant else ''}{self.variant}"

    def failed(self, problem: str) -> AttentionRow:
        """The row where there is no time."""
        case = self.case
        return AttentionRow(
            self.who, self.kind, case.kv_heads, case.batch, case.tokens, None, variant=self.variant, problem=problem
        )


def items_of(kinds: tuple[str, ...], cases: tuple[Case, ...], peers: tuple[str, ...]) -> Iterator[Item]:
    """Decoding of all cases, with peers in turns, then the same without values, then appending."""
    for case in cases:
        yield from (Item(who, "f16", case) for who in peers)
        yield from (Item(OURS, kind, case) for kind in kinds)
    for case in cases:
        yield from (Item(OURS, kind, case, KEYS_ONLY) for kind in kinds)
    for kv_heads in dict.fromkeys(case.kv_heads for case in cases):
        yield from (Item(OURS, f"{APPEND} {kind}", Case(kv_heads, APPEND_BATCH, 1)) for kind in kinds)


def items_of_versions(kinds: tuple[str, ...], cases: tuple[Case, ...]) -> Iterator[Item]:
    """Each case as `attention_decode` takes it, and in the versions of VQ-LLM's table IV."""
    for case in cases:
        for kind in kinds:
            yield from (Item(OURS, kind, case, version) for version in ("", *VERSIONS))


def run(
    items: list[Item],
    of_run: Run,
    out: Path,
    measure: Callable[[Item], AttentionRow],
    show: Callable[[int, int, str], None],
    deadline_s: float | None = None,
) -> AttentionResults:
    """Measures all and writes `out` after each.

    measure     times an item; what it raises becomes the problem of the row
    show        called with (items done, of how many, what is measured)
    deadline_s  after so many seconds nothing further is begun; None: all is
    """
    results = AttentionResults(of_run)
    is_late = deadline_after(deadline_s)
    for done, item in enumerate(items):
        if is_late():
            of_run.notes.append("the deadline came before all was measured")
            results.save(out)
            break
        show(done, len(items), str(item))
        try:
            row = measure(item)
        except Exception as error:
            # A peer that is not installed, or memory that a case needs, costs its rows and no others.
            row = item.failed(f"{type(error).__name__}: {error}".splitlines()[0][:300])
        results.rows.append(row)
        results.save(out)
    show(len(items), len(items), "done")
    return results
