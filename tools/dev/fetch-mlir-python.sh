#!/usr/bin/env bash
# Fills a directory with the source text of MLIR's Python bindings, which Debian's MLIR packages leave out.
#   tools/dev/fetch-mlir-python.sh [DIRECTORY]      (default: build/mlir-python-src)
# The package is pinned by version and hash in requirements-mlir-python.txt; only text below mlir/src/python is unpacked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${1:-$root/build/mlir-python-src}
requirement=$here/requirements-mlir-python.txt
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$python" ] || python=python3

if cmp -s "$requirement" "$target/.fetched-from"; then
  exit 0
fi

echo "==> fetching the source of MLIR's Python bindings (73 MB, of which 9 MB are kept)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! "$python" -m pip download --quiet --no-deps --require-hashes --only-binary :all: \
  --dest "$work" --requirement "$requirement"; then
  echo "error: the package named in $requirement could not be downloaded." >&2
  echo "  With a source tree of MLIR 22.1.8 at hand, set LOWLP_MLIR_PYTHON_SRC to its binding sources instead;" >&2
  echo "  -DLOWLP_PYTHON=OFF builds the compiler without Python." >&2
  exit 1
fi
rm -rf "$target"
mkdir -p "$target"
"$python" - "$work" "$target" <<'PY'
import pathlib
import sys
import zipfile

wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
target = pathlib.Path(sys.argv[2])
prefix = "mlir/src/python/"
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if name.startswith(prefix) and name.endswith((".cpp", ".h", ".py", ".pyi")):
            path = target / name[len(prefix):]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
PY
cp "$requirement" "$target/.fetched-from"
