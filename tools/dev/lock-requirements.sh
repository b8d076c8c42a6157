#!/usr/bin/env bash
# Rewrites tools/dev/requirements.txt: what pyproject.toml asks for, with everything it pulls in, pinned as it resolves
# today, with the hashes of all files that the index has of each version. Run it after a change of the dependencies, then
# `make test`.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" - "$root/pyproject.toml" >"$work/direct.txt" <<'PY'
import sys
import tomllib

with open(sys.argv[1], "rb") as file:
    pyproject = tomllib.load(file)
project = pyproject["project"]
print(*pyproject["build-system"]["requires"], *project["dependencies"],
      *project["optional-dependencies"]["demo"], *project["optional-dependencies"]["dev"], sep="\n")
PY
"$work/venv/bin/python" -m pip install --quiet --requirement "$work/direct.txt"
"$work/venv/bin/python" -m pip freeze >"$work/pinned.in"
"$work/venv/bin/python" -m pip install --quiet pip-tools
"$work/venv/bin/pip-compile" --quiet --generate-hashes --allow-unsafe --no-strip-extras --no-annotate --no-header \
  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --output-file "$work/pinned.txt" "$work/pinned.in"
{
  echo "# Everything .venv holds, pinned for Python 3.11.2 and newer. Written by tools/dev/lock-requirements.sh from pyproject.toml."
  cat "$work/pinned.txt"
} >"$root/tools/dev/requirements.txt"
