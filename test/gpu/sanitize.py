"""Runs small products under compute-sanitizer, by each of its tools, and prints a line of what each found.

    python test/gpu/sanitize.py [FOLDER] [--tools memcheck synccheck racecheck] [--sanitizer PATH]

FOLDER (default: out/sanitize) holds cases of `prepare.py`. Where it has none they are compiled first, which takes the
compiler; where another machine has compiled them, by

    python test/gpu/prepare.py FOLDER --only optimised epilogues clusters groups codebooks caches quantised experts

lowlp_runtime, numpy and PyTorch are enough. Ends with status 1 where a tool reports errors, where a result is wrong or
where the tool did not come to its end, and with 2 where there is no compute-sanitizer. Warnings fail nothing: of those
of racecheck docs/adr/0024-one-tile-for-a-block-or-a-cluster.md tells. Errors that calls of the driver return are not
counted. FOLDER/TOOL.log has all that a tool said.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = ("memcheck", "synccheck", "racecheck")
MODULES = ("optimised", "epilogues", "clusters", "groups", "codebooks", "caches", "quantised", "experts")
_ERRORS = re.compile(r"^=+ ERROR SUMMARY: (\d+) errors?", re.MULTILINE)
_HAZARDS = re.compile(r"^=+ RACECHECK SUMMARY: .*\((\d+) errors?, (\d+) warnings?\)", re.MULTILINE)
_CASES = re.compile(r"^(\d+) passed, (\d+) failed", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """What one tool reported.

    problem  why it is no success, or ''
    """

    errors: int
    warnings: int
    cases: int
    problem: str


def find_sanitizer() -> Path | None:
    """compute-sanitizer on PATH, of the wheel nvidia-cuda-sanitizer-api, or of a CUDA toolkit."""
    on_path = shutil.which("compute-sanitizer")
    if on_path:
        return Path(on_path)
    namespace = importlib.util.find_spec("nvidia")
    folders = list(namespace.submodule_search_locations or []) if namespace else []
    toolkits = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    places = [path for folder in folders for path in sorted(Path(folder).glob("*/bin/compute-sanitizer"))]
    places += [Path(toolkit, "bin", "compute-sanitizer") for toolkit in toolkits if toolkit]
    return next((path for path in places if path.is_file()), None)


def finding_of(text: str, status: int) -> Finding:
    """What a tool's text and exit status say."""
    summaries = [(int(errors), 0) for errors in _ERRORS.findall(text)]
    summaries += [(int(errors), int(warnings)) for errors, warnings in _HAZARDS.findall(text)]
    errors, warnings = (sum(counts) for counts in zip(*summaries, strict=True)) if summaries else (0, 0)
    ran = _CASES.search(text)
    passed, failed = (int(ran[1]), int(ran[2])) if ran else (0, 0)
    if errors:
        problem = f"{errors} errors"
    elif not summaries:
        problem = "no summary"
    elif not ran:
        problem = "the cases did not come to their end"
    elif failed or not passed:
        problem = f"{failed} of {passed + failed} results are wrong"
    else:
        problem = f"exit status {status}" if status else ""
    return Finding(errors, warnings, passed + failed, problem)


def has_cases(folder: Path) -> bool:
    return any(folder.glob("*/case.json"))


def run_tool(sanitizer: Path, tool: str, folder: Path) -> Finding:
    """Runs all cases of the folder under a tool."""
    program = [sys.executable, HERE / "run_prepared.py", folder, "--once"]
    # A driver that is older than its Python bindings has no answer to some of their questions. That is no error of a
    # kernel; lowlp_runtime looks at what the driver says to each call.
    options = ["--report-api-errors", "no"] if tool == "memcheck" else []
    command = [sanitizer, "--tool", tool, *options, *program]
    # Each array is an allocation of its own, so that memcheck sees what is beyond its end.
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    )
    (folder / f"{tool}.log").write_text(done.stdout)
    return finding_of(done.stdout, done.returncode)


def main() -> int:
    parser = argparse.ArgumentParser(description="run small products under compute-sanitizer")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("out/sanitize"))
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--sanitizer", type=Path, metavar="PATH", help="the program (default: as found)")
    options = parser.parse_args()
    sanitizer = options.sanitizer or find_sanitizer()
    if sanitizer is None or not sanitizer.is_file():
        wanted = "not on PATH, in no wheel and no CUDA toolkit" if sanitizer is None else f"not at {sanitizer}"
        print(
            f"compute-sanitizer is missing: {wanted}; `pip install nvidia-cuda-sanitizer-api` has it, and --sanitizer "
            "says where it is",
            file=sys.stderr,
        )
        return 2
    if not has_cases(options.folder):
        prepare = [sys.executable, str(HERE / "prepare.py"), str(options.folder), "--only", *MODULES]
        subprocess.run(prepare, check=True)
    failed = False
    for tool in options.tools:
        found = run_tool(sanitizer, tool, options.folder)
        verdict = f"FAILED: {found.problem}, see {options.folder / tool}.log" if found.problem else "ok"
        counts = f"{found.errors} errors, {found.warnings} warnings in {found.cases} cases"
        print(f"{tool:<10} {counts}  {verdict}", flush=True)
        failed = failed or bool(found.problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
