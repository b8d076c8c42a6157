"""Draws the pictures of docs: runs every command of its pages that writes to docs/pictures.

python tools/dev/draw-pictures.py [FOLDER]     (default: docs/pictures)
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

from lowlp.cli import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = re.compile(r"^    lowlp (layout .* --svg docs/pictures/(\S+))$", re.MULTILINE)


def draw(folder: Path) -> list[Path]:
    """Draws all pictures into the folder, and returns their paths."""
    drawn = []
    for page in sorted((ROOT / "docs").glob("*.md")):
        for command, name in COMMAND.findall(page.read_text(encoding="utf-8")):
            *words, _ = shlex.split(command)
            drawn.append(folder / name)
            if main([*words, str(drawn[-1])]) != 0:
                raise SystemExit(f"{page}: the command fails: lowlp {command}")
    return drawn


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures")
