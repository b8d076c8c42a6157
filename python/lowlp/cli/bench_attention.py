"""`lowlp bench --attention`: decode attention over all kinds of caches, and appending, held to targets."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lowlp_runtime.errors import DeviceError, LowlpValueError

from .bench_progress import progress_bar

if TYPE_CHECKING:
    from lowlp.benchmarks.attention.results import AttentionResults

_RESULTS = "benchmarks/results"
_OF_LINEAR = (
    "activations",
    "codebooks",
    "shapes",
    "m",
    "peers_only",
    "kernels",
    "prepare",
    "limit",
)

EPILOG = """
attention (--attention):
  One new token over caches of f16 bf16 f8e4m3 int8 int4 cq-4 cq-2, 32 query heads of 128, five cases; the same without
  values; appending a token of 8 sequences. Beside torch's attention in f16, and FlashInfer where it is installed.
  lowlp bench --attention --peers torch,flashinfer --out r.attention-1.json
  lowlp bench --attention --ablation --out r.attention-2.json   # the versions of VQ-LLM's table IV, of codebooks
The page of --report NAME.json shows what is beside it as NAME.attention-*.json.
"""


def refuse_others(options: argparse.Namespace) -> None:
    """Raises `LowlpValueError` for arguments that say what is measured of `linear`."""
    for name in _OF_LINEAR:
        if getattr(options, name):
            raise LowlpValueError(f"--{name.replace('_', '-')}: is not with --attention")
    if options.set != "grid":
        raise LowlpValueError("--set: is not with --attention")


def run(options: argparse.Namespace) -> int:
    """Measures; 1 where something has no time."""
    from lowlp.benchmarks import session as of_linear
    from lowlp.benchmarks.attention import cases, results, session
    from lowlp.benchmarks.attention.measuring import Bench
    from lowlp.benchmarks.timing import QUICK, Effort

    refuse_others(options)
    among = cases.ABLATED if options.ablation else cases.KINDS
    kinds = cases.parse_kinds(options.types, among) if options.types else among
    peers = _peers(options.peers)
    if missing := of_linear.why_not():
        raise DeviceError(f"lowlp bench needs a GPU: {missing}")
    bench = Bench(QUICK if options.quick else Effort())
    of_run = replace(of_linear.run_of_this_machine(), empty_us=bench.empty_us())
    if options.measure_read:
        of_run = of_linear.with_measured_read(of_run)
    out = Path(options.out or f"{_RESULTS}/attention.json")
    if options.ablation:
        items = list(session.items_of_versions(kinds, cases.ABLATION_CASES))
    else:
        items = list(session.items_of(kinds, cases.QUICK if options.quick else cases.CASES, peers))
    with progress_bar("bench") as show:
        found = session.run(items, of_run, out, bench.measure, show, options.deadline)
    print(text_of(found))
    print(f"\nresults in {out}")
    return 1 if any(row.problem and row.who == results.OURS for row in found.rows) else 0


def _peers(text: str | None) -> tuple[str, ...]:
    from lowlp.benchmarks.attention.session import PEERS

    if text in (None, "all"):
        return PEERS
    peers = tuple(str(text).split(","))
    for peer in peers:
        if peer not in PEERS:
            raise LowlpValueError(f"--peers: must be among {', '.join(PEERS)} with --attention, got {peer!r:.40}")
    return peers


def text_of(found: object) -> str:
    """The tables, and what has no time."""
    from lowlp.benchmarks.attention import results
    from lowlp.benchmarks.attention.versions import versions_table

    assert isinstance(found, results.AttentionResults)
    if versions := versions_table(found):
        tables = {"versions of VQ-LLM's table IV, microseconds (part of GC's)": versions}
        return _with_rest(tables, found)
    tables = {
        "one token, microseconds (allowed, at best)": results.decode_table(found),
        "what limits it": results.limits_table(found),
        "appending a token of each sequence (allowed)": results.append_table(found),
    }
    return _with_rest(tables, found)


def _with_rest(tables: dict[str, str], found: AttentionResults) -> str:
    """Tables by their titles, what has no time, and notes."""
    parts = [f"{title}\n{table}" for title, table in tables.items() if table]
    parts += [f"no time: {row.who} {row.kind}, {row.case}: {row.problem}" for row in found.rows if row.problem]
    parts += list(found.run.notes)
    return "\n\n".join(parts)
