"""Writes docs/reference.md: every op, type, attribute, pass and public Python name, each with a line and a link to the
file that documents it in full.

    python tools/dev/list-reference.py [FILE]
"""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TABLEGEN = Path("/usr/lib/llvm-22/bin/llvm-tblgen")
INCLUDES = (Path("/usr/lib/llvm-22/include"), ROOT / "dialect" / "include", ROOT / "compiler" / "include")
DIALECTS = {"lowlp": "dialect/include/lowlp/IR/Lowlp.td", "simt": "dialect/include/lowlp/IR/Simt.td"}
OPENING = """# Reference

One line for each op, type, attribute, pass and Python name; the link leads to the file whose text describes it in full.
Written by `tools/dev/list-reference.py`; a test compares. `make docs` writes the full texts as HTML into `build/docs`.
"""


def records_of(source: Path) -> dict[str, Any]:
    command = [TABLEGEN, "--dump-json", *(f"-I{path}" for path in INCLUDES), source]
    records: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return records


def defined_in(record: dict[str, Any], folder: Path) -> Path:
    """The file of ours that names the record; macros of upstream have places of their own."""
    names = [place.rpartition(":")[0] for place in record["!locs"]]
    return next(found[0] for name in reversed(names) if (found := list(folder.glob(f"**/{Path(name).name}"))))


def link(name: str, path: Path) -> str:
    return f"[`{name}`](../{path.relative_to(ROOT).as_posix()})"


def table(rows: list[tuple[str, str]]) -> Iterator[str]:
    yield "| | |\n|---|---|"
    for name, text in sorted(rows):
        yield f"| {name} | {' '.join(text.split()).replace('|', chr(92) + '|')} |"


def dialect_rows(records: dict[str, Any], kind: str, folder: Path) -> list[tuple[str, str]]:
    rows = []
    for key in records["!instanceof"].get(kind, []):
        record = records[key]
        dialect = records[record["opDialect" if kind == "Op" else "dialect"]["def"]]
        if dialect["name"] not in DIALECTS:
            continue
        if kind == "Op":
            name = f"{dialect['name']}.{record['opName']}"
        else:
            sign, field = ("!", "typeName") if kind == "TypeDef" else ("#", "attrName")
            name = sign + (f"{dialect['name']}.{record['mnemonic']}" if record["mnemonic"] else record[field])
        rows.append((link(name, defined_in(record, folder)), record["summary"]))
    return rows


def pass_rows() -> list[tuple[str, str]]:
    rows = []
    for source in sorted((ROOT / "compiler" / "include").glob("**/Passes.td")):
        records = records_of(source)
        passes = [records[key] for key in records["!instanceof"].get("PassBase", [])]
        rows += [(link(record["argument"], defined_in(record, source.parent)), record["summary"]) for record in passes]
    return rows


def python_rows(module_name: str, prefix: str) -> list[tuple[str, str]]:
    """The public functions and classes of a package, with the first line of what they say of themselves."""
    module = importlib.import_module(module_name)
    rows = []
    for name in module.__all__:
        value = getattr(module, name)
        if not inspect.isfunction(value) and not inspect.isclass(value):
            continue
        source = inspect.getsourcefile(inspect.unwrap(value))
        inside = "lowlp_runtime" if value.__module__.startswith("lowlp_runtime") else "lowlp"
        base = ROOT / ("runtime" if inside == "lowlp_runtime" else "python")
        assert source and value.__doc__, name
        parts = Path(source).parts
        path = base.joinpath(*parts[len(parts) - 1 - parts[::-1].index(inside) :])
        first = " ".join(inspect.cleandoc(value.__doc__).partition("\n\n")[0].split())
        rows.append((link(f"{prefix}{name}", path), first.partition(": `")[0]))
    return rows


def page() -> str:
    lines = [OPENING]
    for name, source in DIALECTS.items():
        folder = ROOT / "dialect" / "include" / "lowlp" / "IR"
        records = records_of(ROOT / source)
        for kind, title in (("Op", "ops"), ("TypeDef", "types"), ("AttrDef", "attributes")):
            rows = dialect_rows(records, kind, folder)
            if rows:
                lines += [f"## The dialect `{name}`: {title}\n", *table(rows), ""]
    lines += ["## Passes\n", *table(pass_rows()), ""]
    lines += ["## Python: `lowlp`\n", *table(python_rows("lowlp", "lowlp.")), ""]
    lines += ["## Python: `lowlp.torch`, modules of PyTorch\n"]
    lines += [*table(python_rows("lowlp.torch", "lowlp.torch.")), ""]
    lines += ["## Python: `lowlp.checkpoints`, models of other tools\n"]
    lines += [*table(python_rows("lowlp.checkpoints", "lowlp.checkpoints.")), ""]
    lines += ["## Python: `lowlp.language`, the language of kernels\n"]
    lines += [*table(python_rows("lowlp.language", "ll.")), ""]
    lines += ["## Python: `lowlp_runtime`, without a compiler\n", *table(python_rows("lowlp_runtime", "")), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "reference.md"
    target.write_text(page(), encoding="utf-8")
