"""`lowlp bench --experts`: products of experts, held to targets."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from lowlp_runtime.errors import DeviceError, LowlpValueError

from .bench_progress import progress_bar

_RESULTS = "benchmarks/results"
_MOST_AHEAD_S = 300.0
"""For a peer to compile its kernels."""
_OTHERS = (
    *("activations", "attention", "codebooks", "ablation", "shapes", "peers_only"),
    *("kernels", "prepare", "limit"),
)

EPILOG = """
experts (--experts):
  gate and up, and down, of gpt-oss-120b qwen3-30b-a3b deepseek-v3 (--models), in mxfp4 and int4 (--types); --m counts
  tokens, 1,16,64,256,1024,4096, which choose uniformly and by Zipf's law. Peers: torch, its _grouped_mm of bf16;
  humming, its grouped product; loop, linear for each expert that has rows.
  lowlp bench --experts --models qwen3-30b-a3b --types int4 --m 1,64 --peers torch,loop --out r.experts-1.json
"""


def refuse_others(options: argparse.Namespace) -> None:
    """Raises `LowlpValueError` for arguments that say what else is measured."""
    for name in _OTHERS:
        if getattr(options, name):
            raise LowlpValueError(f"--{name.replace('_', '-')}: is not with --experts")
    if options.set != "grid":
        raise LowlpValueError("--set: is not with --experts")


def run(options: argparse.Namespace) -> int:
    """Measures; 1 where something of ours has no time."""
    from lowlp.benchmarks import cases as of_linear
    from lowlp.benchmarks import session as of_all
    from lowlp.benchmarks.attention.measuring import Bench as AttentionBench
    from lowlp.benchmarks.experts import cases, results, session
    from lowlp.benchmarks.experts.measuring import Bench, compile_ahead, compile_humming
    from lowlp.benchmarks.models.ahead import in_process
    from lowlp.benchmarks.timing import QUICK, Effort

    refuse_others(options)
    models = cases.parse_names(options.models, tuple(cases.MODELS), "--models") if options.models else ()
    kinds = cases.parse_names(options.types, cases.KINDS, "--types") if options.types else cases.KINDS
    tokens: tuple[int, ...] = cases.QUICK_TOKENS if options.quick else cases.TOKENS
    tokens = of_linear.parse_rows(options.m) if options.m else tokens
    peers = () if not options.peers else tuple(session.PEERS)
    if options.peers not in (None, "all"):
        peers = cases.parse_names(options.peers, tuple(session.PEERS), "--peers")
    if missing := of_all.why_not():
        raise DeviceError(f"lowlp bench needs a GPU: {missing}")
    found = cases.cases_of(models or tuple(cases.MODELS), kinds, tokens)
    compile_ahead(found, options.jobs)
    effort = QUICK if options.quick else Effort()
    of_run = replace(of_all.run_of_this_machine(), empty_us=AttentionBench(effort).empty_us())
    if options.measure_read:
        of_run = of_all.with_measured_read(of_run)
    if "humming" in peers:
        with progress_bar("bench") as show:
            of_run.notes.extend(in_process("humming", compile_humming, (found,), _MOST_AHEAD_S, show))
    out = Path(options.out or f"{_RESULTS}/experts.json")
    items = session.items_of(found, peers)
    with progress_bar("bench") as show:
        made = session.run(items, of_run, out, Bench(effort).measure, show, options.deadline)
    print(results.table(made))
    for row in made.rows:
        if row.problem:
            print(f"no time: {row.who} {row.case}: {row.problem}")
    print(*made.run.notes, f"\nresults in {out}", sep="\n")
    return 1 if any(row.problem and row.who == results.OURS for row in made.rows) else 0
