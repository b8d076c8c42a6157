"""Checks that keep the tree readable: sizes of files and functions, names, pass descriptions, nothing left open, one
version.

    python tools/dev/check-structure.py

Prints every finding and ends with status 1 if one of them is an error.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE_SUFFIXES = {".cpp", ".h", ".td", ".py", ".cu", ".cmake", ".sh"}
MAX_LINES = 800
MANY_LINES = 500
MANY_LINES_OF_FUNCTION = 60
# What begins a block of C++ and is no function.
NO_FUNCTION = re.compile(r"(if|for|while|switch|else|do|namespace|extern|class|struct|enum|union)\b")
VAGUE_FOLDERS = {"utils", "util", "helpers", "common", "misc"}
LEFT_OPEN = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b|raise NotImplemented" r"Error")
TABLEGEN = Path("/usr/lib/llvm-22/bin/llvm-tblgen")
LLVM_INCLUDE = Path("/usr/lib/llvm-22/include")


def tracked_files() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in listing.split("\0") if name and (ROOT / name).is_file()]


def check_sizes(files: list[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        if path.suffix in SOURCE_SUFFIXES:
            lines = len((ROOT / path).read_text().splitlines())
            if lines > MAX_LINES:
                yield "error", f"{path}: {lines} lines; at most {MAX_LINES}, split it by topic"
            elif lines > MANY_LINES:
                yield "warning", f"{path}: {lines} lines; better below {MANY_LINES}"


def check_functions(files: list[Path]) -> Iterator[tuple[str, str]]:
    """Lines of each function, with those inside of it and without its docstring."""
    sizes_of = {".py": python_functions, ".cpp": cpp_functions, ".h": cpp_functions}
    for path in files:
        # Tests list what they check.
        if path.suffix in sizes_of and path.parts[0] != "test":
            for name, first, lines in sizes_of[path.suffix]((ROOT / path).read_text()):
                if lines > MANY_LINES_OF_FUNCTION:
                    yield "warning", f"{path}:{first}: {name}: {lines} lines; better below {MANY_LINES_OF_FUNCTION}"


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            has_docstring = ast.get_docstring(node) is not None and len(node.body) > 1
            begin = node.body[1].lineno if has_docstring else node.lineno
            yield node.name, node.lineno, (node.end_lineno or begin) - begin + 1


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """As clang-format writes them: in a namespace, which does not indent, or in a class. Arguments may take lines."""
    lines = text.splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines]
    for opening, line in enumerate(lines):
        if not line.endswith("{") or ")" not in line:
            continue
        first = opening
        while first and indents[first] >= 4 and lines[first - 1].endswith((",", "(")):
            first -= 1
        head, indent = lines[first].strip(), indents[first]
        if indent <= 2 and not NO_FUNCTION.match(head):
            ends = (at for at in range(opening, len(lines)) if lines[at].startswith(" " * indent + "}"))
            yield head.partition("(")[0].split()[-1], first + 1, next(ends, opening) - first + 1


def check_names(files: list[Path]) -> Iterator[tuple[str, str]]:
    folded = Counter(str(path).lower() for path in files)
    for path in files:
        if folded[str(path).lower()] > 1:
            yield "error", f"{path}: another file's name differs in letter case only"
        for folder in VAGUE_FOLDERS.intersection(path.parts[:-1]):
            yield "error", f"{path}: a folder called '{folder}' says nothing; name it after what it holds"


def check_left_open(files: list[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        if path.suffix in SOURCE_SUFFIXES:
            for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
                if LEFT_OPEN.search(line):
                    yield "error", f"{path}:{number}: left open: {line.strip()}"


def check_passes(files: list[Path]) -> Iterator[tuple[str, str]]:
    """Every pass has a summary and a description, and a lit test of its name; a conversion a folder of tests."""
    tests = {path.stem for path in files if path.parts[0] == "test" and path.suffix == ".mlir"}
    folders = tuple({path.parent.name.lower() for path in files if path.parts[:2] == ("test", "Conversion")})
    includes = [f"-I{ROOT / part / 'include'}" for part in ("dialect", "compiler")]
    for path in files:
        if path.name != "Passes.td":
            continue
        command = [TABLEGEN, "--dump-json", f"-I{LLVM_INCLUDE}", *includes, ROOT / path]
        records = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for name in records["!instanceof"].get("PassBase", []):
            argument = records[name]["argument"]
            for field in ("summary", "description"):
                if not records[name][field].strip():
                    yield "error", f"{path}: pass {argument} has no {field}"
            conversion = argument.replace("convert-", "").replace("-", "")
            if argument.removeprefix("lowlp-") not in tests and not conversion.endswith(folders):
                yield "warning", f"{path}: pass {argument} has no test/**/{argument.removeprefix('lowlp-')}.mlir"


def check_version(files: list[Path]) -> Iterator[tuple[str, str]]:
    places = {
        "CMakeLists.txt": r"project\(lowlp VERSION ([0-9.]+)",
        "python/lowlp/__init__.py": r'__version__ = "([0-9.]+)"',
    }
    found = {name: re.search(pattern, (ROOT / name).read_text()) for name, pattern in places.items()}
    versions = {name: match[1] if match else "none" for name, match in found.items()}
    if len(set(versions.values())) != 1:
        yield "error", f"the version differs: {versions}"


def main() -> int:
    files = tracked_files()
    checks = (check_sizes, check_functions, check_names, check_left_open, check_passes, check_version)
    findings = [finding for check in checks for finding in check(files)]
    for severity, text in findings:
        print(f"{severity}: {text}")
    return 1 if any(severity == "error" for severity, _ in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
