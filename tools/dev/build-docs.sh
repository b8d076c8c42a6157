#!/usr/bin/env bash
# Writes the documentation of a finished build into build/docs: the pages of docs/, the reference of dialects and passes
# that TableGen generates, and the reference of the Python package.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
out=build/docs
mkdir -p "$out"
cp -R docs/. "$out/"
echo "==> reference of dialects and passes"
cmake --build build --target mlir-doc
rm -rf "$out/reference"
cp -R build/reference/docs "$out/reference"
echo "==> reference of the Python package"
.venv/bin/python -m pdoc --docformat google --output-directory "$out/python" lowlp lowlp_runtime '!lowlp._mlir'
echo "documentation is in $out"
