"""Mutates programs and gives them to lowlp-opt, which must neither crash nor hang, whatever it is given.

    python tools/dev/fuzz.py --seconds 600 [--seed 1] [--opt build/fuzz/bin/lowlp-opt] [--out out/fuzz]
    python tools/dev/fuzz.py --reduce FILE --passes=--lowlp-to-ptx

The corpus is all of test/**/*.mlir and examples, and kernels traced from Python. A mutant is one of them with up to
four changes that know the language: numbers, types, layouts, op names, operands, attributes, lines. Mutants go to
lowlp-opt in batches, which share a pipeline; a batch that ends by a signal or runs too long is run again one by one.
What is then found (a crash, a failed assertion, a sanitizer's report, a hang) is written to --out, reduced, once for
each place in the code. The same seed gives the same mutants.

The preset `fuzz` builds a lowlp-opt with assertions and UBSan; it needs the package libclang-rt-22-dev as well:

    cmake --preset fuzz && ninja -C build/fuzz lowlp-opt
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPLIT = "\n// -----\n"
BATCH = 60
# Of the processor; a busy machine gets ten times as many by the clock.
SECONDS_EACH = 10
SECONDS_BATCH = 60
BYTES_OF_MEMORY = 6 << 30
CHIPS = ("sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")
PIPELINES = (
    "--verify-roundtrip",
    "--canonicalize --cse",
    "--lowlp-convert-to-thread",
    "--lowlp-to-thread",
    "--lowlp-to-cpu",
    "--lowlp-convert-thread-to-cpu",
    "--lowlp-convert-thread-to-nvvm=arch={chip}",
    "--lowlp-to-nvvm=arch={chip}",
    "--lowlp-to-ptx=arch={chip} opt-level={level}",
)

# --- programs ---------------------------------------------------------------------------------------------------------


def chunks(text: str, wrong: bool = False) -> Iterator[str]:
    """The programs of one file that are right, or those that an error is expected of, without their comments."""
    for part in text.split("// -----"):
        if ("expected-error" in part) != wrong:
            continue
        lines = [line for line in part.splitlines() if line.strip() and not line.lstrip().startswith("//")]
        if lines:
            yield "\n".join(lines) + "\n"


def traced() -> Iterator[str]:
    """Programs that the DSL makes; none where the package is not built."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        done = subprocess.run([sys.executable, str(path), "--mlir"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            yield done.stdout
    code = (
        "import sys, lowlp\n"
        "for weight in ('int6', 'uint4', 'f6e3m2', 'int3'):\n"
        "    print(lowlp.compile_linear(n=64, k=128, m=(1, 16), weight=weight, group_size=64, activation='f16',\n"
        "                               target='sm_90a').ir('block'), '// -----')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    yield from chunks(done.stdout)


def read_corpus() -> tuple[list[str], list[str]]:
    """Programs that are right, and programs that are wrong."""
    files = [*sorted((ROOT / "test").rglob("*.mlir")), *sorted((ROOT / "examples").glob("*.mlir"))]
    texts = [path.read_text(encoding="utf-8") for path in files]
    right, wrong = ([chunk for text in texts for chunk in chunks(text, flag)] for flag in (False, True))
    return [*right, *traced()], wrong


# --- mutations --------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"(?<![\w%@#.])-?\d+(?![\w.])")
DIMENSION = re.compile(r"(?<=[<x])\d+(?=x)")
# Not within array<>: array<index: 1> crashes the parser of MLIR 22.1 itself.
TYPE = re.compile(r"(?<!array<)\b(?:[su]?i\d+|f\d+(?:e\d+m\d+)?|f\d+E\w+|bf16|tf32|index)\b")
VALUE = re.compile(r"%[\w#]+")
# Not vector.shuffle: MLIR 22.1 takes its operands for vectors before it looks.
OP = re.compile(r"\b(?:lowlp|simt|arith|scf|gpu|vector(?!\.shuffle)|math|cf|func|llvm|nvvm)\.\w+")
FACTOR = re.compile(r"\b(?:column_)?(?:local|spatial)\([^()]*\)")
ATTRIBUTE = re.compile(r"\w+ = (?:[^,{}\[\]<>()]+|affine_map<[^>]*>[^,}]*)")
WORD = re.compile(r"[\w.$@%#!]+|[^\s\w]")
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    8,
    16,
    31,
    32,
    33,
    64,
    127,
    128,
    255,
    256,
    1024,
    4095,
    65535,
    65536,
    1 << 20,
    (1 << 31) - 1,
)
HUGE = (1 << 31, 1 << 32, (1 << 62) + 1, (1 << 63) - 1, 1 << 63, -(1 << 31), -(1 << 63))
FLOATS = ("f16", "bf16", "f32", "f64", "tf32", "f3e1m1", "f4e2m1", "f6e3m2", "f8e4m3", "f8e6m1", "f8E4M3FN", "f8E5M2")
INTEGERS = tuple(sign + str(bits) for sign in ("i", "si", "ui") for bits in (1, 2, 3, 4, 6, 8, 16, 32, 64, 128))
TYPES = (*FLOATS, *INTEGERS, "index")
FACTORS = ("local", "spatial", "column_local", "column_spatial")
CHARACTERS = '()[]{}<>,:=%@#!-*"x0 '


def replace_one(pattern: re.Pattern[str], text: str, rng: random.Random, make: Callable[[str], str]) -> str:
    places = list(pattern.finditer(text))
    if not places:
        return text
    place = rng.choice(places)
    new = make(place[0])
    if rng.random() < 0.5:
        # Everywhere, so that what belongs together still fits.
        return pattern.sub(lambda found: new if found[0] == place[0] else found[0], text)
    return text[: place.start()] + new + text[place.end() :]


def other_number(old: str, rng: random.Random) -> str:
    if rng.random() < 0.4:
        value = int(old)
        return str(rng.choice((value + 1, value - 1, value * 2, value // 2, -value, value * 3)))
    return str(rng.choice(HUGE if rng.random() < 0.15 else NUMBERS))


def other_factor(old: str, rng: random.Random) -> str:
    arguments = old[old.index("(") :]
    choice = rng.randrange(4)
    if choice == 0:
        return f"{rng.choice(FACTORS)}{arguments}"
    if choice == 1:
        return f"{old}.{rng.choice(FACTORS)}{arguments}"
    extents = [str(rng.choice((1, 2, 3, 4, 8, 16, 32))) for _ in range(rng.randint(1, 3))]
    made = f"{rng.choice(FACTORS)}({', '.join(extents)})"
    return made if choice == 2 else f"{old}.{made}"


class Mutator:
    """Makes mutants of a corpus."""

    def __init__(self, right: Sequence[str], wrong: Sequence[str]) -> None:
        self.right, self.wrong = right, wrong
        corpus = [*right, *wrong]
        self.ops = sorted({name for program in corpus for name in OP.findall(program)})
        self.lines = sorted({line for program in corpus for line in program.splitlines() if "=" in line or "." in line})

    def mutant(self, seed: int) -> str:
        rng = random.Random(seed)
        # Most begin right, since what is refused at once tells little.
        text = rng.choice(self.right if rng.random() < 0.85 else self.wrong)
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
            text = self._change(text, rng)
        return text

    def _change(self, text: str, rng: random.Random) -> str:
        kind = rng.randrange(100)
        if kind < 18:
            return replace_one(NUMBER, text, rng, lambda old: other_number(old, rng))
        if kind < 30:
            return replace_one(DIMENSION, text, rng, lambda old: other_number(old, rng))
        if kind < 45:
            return replace_one(TYPE, text, rng, lambda old: rng.choice(TYPES))
        if kind < 58:
            return replace_one(FACTOR, text, rng, lambda old: other_factor(old, rng))
        if kind < 70:
            values = VALUE.findall(text)
            return replace_one(VALUE, text, rng, lambda old: rng.choice(values))
        if kind < 76:
            return replace_one(OP, text, rng, lambda old: rng.choice(self.ops))
        if kind < 81:
            return replace_one(ATTRIBUTE, text, rng, lambda old: "")
        if kind < 95:
            return self._change_lines(text, rng)
        if kind < 98:
            return replace_one(WORD, text, rng, lambda old: rng.choice(("", f"{old} {old}")))
        at = rng.randrange(len(text) + 1)
        return text[:at] + rng.choice(CHARACTERS) + text[at + rng.randrange(2) :]

    def _change_lines(self, text: str, rng: random.Random) -> str:
        lines = text.splitlines()
        if not lines:
            return text
        one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(4)
        if kind == 0:
            del lines[one]
        elif kind == 1:
            lines.insert(other, lines[one])
        elif kind == 2:
            lines[one], lines[other] = lines[other], lines[one]
        else:
            lines.insert(one, rng.choice(self.lines))
        return "\n".join(lines) + "\n"


# --- runs -------------------------------------------------------------------------------------------------------------

# A line that begins with "error:" is LLVM's last word before it ends the process; those of MLIR begin with a place.
REPORT = re.compile(
    r"^error: .*|runtime error: .*|Assertion `.*' failed|LLVM ERROR: .*|UNREACHABLE executed.*|terminate called.*",
    re.MULTILINE,
)
FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ ([^(\n][^(\n]*)", re.MULTILINE)
# Frames that say nothing of the fault: those of the report of it, and of every run.
HANDLERS = ("llvm::sys::", "SignalHandler", "__restore_rt", "abort", "raise", "gsignal", "assert", "_kill", "runOpt")


@dataclass(frozen=True)
class Outcome:
    """How one run ended: `fault` says in words what went wrong, and is empty for accepting and for refusing."""

    fault: str


def run(opt: Path, passes: str, text: str, seconds: int, *options: str) -> Outcome:
    # An option of a pipeline may hold blanks, so options are parted before dashes only.
    command = [str(opt), "-", "-o", "/dev/null", "--mlir-disable-threading", *re.split(r" (?=--)", passes), *options]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES_OF_MEMORY, BYTES_OF_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=10 * seconds, check=False, preexec_fn=limit
        )
    except subprocess.TimeoutExpired:
        return Outcome(f"takes more than {10 * seconds} s by the clock")
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Outcome(f"takes more than {seconds} s")
    output = done.stderr.decode(errors="replace")
    report = REPORT.search(output)
    if done.returncode in (0, 1) and not report:
        return Outcome("")
    frames = [name for name in FRAME.findall(output) if not any(word in name for word in HANDLERS)]
    ours = next((name for name in frames if "lowlp" in name), "")
    where = " < ".join(dict.fromkeys([*frames[:1], ours])).strip(" <")
    return Outcome(f"status {done.returncode}: {report[0] if report else where or output[-200:]}")


def reduced(opt: Path, passes: str, text: str, fault: str) -> str:
    """The text without the lines, and then the words, that the fault does not need."""

    def holds(candidate: str) -> bool:
        return run(opt, passes, candidate, SECONDS_EACH).fault == fault

    for separator in ("\n", " "):
        parts = text.split(separator)
        size = max(1, len(parts) // 2)
        while size:
            at = 0
            while at < len(parts):
                shorter = parts[:at] + parts[at + size :]
                if holds(separator.join(shorter)):
                    parts = shorter
                else:
                    at += size
            size //= 2
        text = separator.join(parts)
    return text


class Hunt:
    """A run of the fuzzer: what was tried and what was found."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.opt: Path = options.opt
        self.out: Path = options.out
        self.mutator = Mutator(*read_corpus())
        self.executions = 0
        self.faults: Counter[str] = Counter()

    def batch(self, first: int) -> None:
        rng = random.Random(first)
        passes = rng.choice(PIPELINES).format(chip=rng.choice(CHIPS), level=rng.randrange(4))
        programs = {seed: self.mutator.mutant(seed) for seed in range(first, first + BATCH)}
        self.executions += BATCH
        whole = run(self.opt, passes, SPLIT.join(programs.values()), SECONDS_BATCH, "--split-input-file")
        if not whole.fault:
            return
        for seed, text in programs.items():
            fault = run(self.opt, passes, text, SECONDS_EACH).fault
            if fault:
                self.record(seed, passes, text, fault)

    def record(self, seed: int, passes: str, text: str, fault: str) -> None:
        self.faults[fault] += 1
        if self.faults[fault] > 1:
            return
        print(f"seed {seed}: {fault}\n  lowlp-opt '{passes}'", flush=True)
        self.out.mkdir(parents=True, exist_ok=True)
        smaller = text if "takes more" in fault else reduced(self.opt, passes, text, fault)
        path = self.out / f"seed-{seed}.mlir"
        path.write_text(f"// lowlp-opt '{passes}'\n// {fault}\n{smaller}", encoding="utf-8")
        print(f"  {path}", flush=True)

    def report(self, seconds: float, last: int) -> None:
        sources = f"{len(self.mutator.right)} right and {len(self.mutator.wrong)} wrong ones"
        print(f"{self.executions} programs in {seconds:.0f} s, from {sources}; seeds up to {last}")
        print(f"{len(self.faults)} faults")
        for fault, count in self.faults.most_common():
            print(f"  {count:5} {fault}")


def main() -> int:
    parser = argparse.ArgumentParser(description="mutate programs and give them to lowlp-opt")
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--opt", type=Path, default=ROOT / "build" / "fuzz" / "bin" / "lowlp-opt", help="the compiler")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "fuzz", help="where findings are written")
    parser.add_argument("--reduce", type=Path, metavar="FILE", help="shorten this program instead")
    parser.add_argument("--passes", default="--verify-roundtrip", help="with --reduce: options of lowlp-opt")
    options = parser.parse_args()
    if not options.opt.is_file():
        parser.error(f"{options.opt} is not built: cmake --preset fuzz && ninja -C build/fuzz lowlp-opt")
    if options.reduce:
        text = options.reduce.read_text(encoding="utf-8")
        fault = run(options.opt, options.passes, text, SECONDS_EACH).fault
        print(reduced(options.opt, options.passes, text, fault) if fault else text, end="")
        print(f"fault: {fault or 'none'}", file=sys.stderr)
        return 0
    hunt = Hunt(options)
    start, seed = time.monotonic(), options.seed
    while time.monotonic() - start < options.seconds:
        hunt.batch(seed)
        seed += BATCH
    hunt.report(time.monotonic() - start, seed - 1)
    return 1 if hunt.faults else 0


if __name__ == "__main__":
    sys.exit(main())
