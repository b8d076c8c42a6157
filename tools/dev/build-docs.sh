#!/usr/bin/env bash
# Writes the documentation of a finished build as HTML into build/docs: the pages of docs/, the references of dialects
# and passes that TableGen generates, of the command line, and of the Python packages. Redraws the pictures of docs/.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
python=.venv/bin/python
pages=build/docs-pages
echo "==> pictures"
$python tools/dev/draw-pictures.py >/dev/null
echo "==> reference of dialects and passes"
cmake --build build --target mlir-doc
$python tools/dev/gather-docs.py "$pages" build/reference/docs
echo "==> reference of the Python packages"
$python -m pdoc --docformat google --output-directory "$pages/python" lowlp lowlp_runtime '!lowlp._mlir'
echo "==> pages"
NO_MKDOCS_2_WARNING=1 $python -m mkdocs build --quiet --clean
echo "documentation is in build/docs; start with build/docs/index.html"
