#!/usr/bin/env bash
# Tests the readers of checkpoints against the tools that write them: gptqmodel, compressed-tensors, gguf, bitsandbytes
# and others, on the CPU. They are installed once, into build/checkpoint-tools, 700 MB.
#   tools/dev/test-checkpoints.sh [arguments of pytest]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
exec </dev/null
tools=build/checkpoint-tools
requirements=$here/requirements-checkpoints.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
  echo "error: .venv has no PyTorch, which the tools need; see tools/dev/setup.sh" >&2
  exit 1
fi
if ! cmp -s "$requirements" "$tools/requirements-installed.txt"; then
  echo "==> installing the tools that write checkpoints ($(grep -c '==' "$requirements"), pinned in tools/dev/requirements-checkpoints.txt)"
  rm -rf "$tools"
  .venv/bin/python -m venv "$tools"
  # What .venv has is seen from there, and not installed again.
  site=$("$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/of-venv.pth"
  echo "$root/build/python_packages" >"$site/lowlp-build-tree.pth"
  "$tools/bin/python" -m pip install --quiet --no-deps --requirement "$requirements"
  cp "$requirements" "$tools/requirements-installed.txt"
fi
# Nothing here may ask a hub for a model.
export HF_HUB_OFFLINE=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
exec "$tools/bin/python" -m pytest -n "$(nproc)" --dist loadfile "$@" test/checkpoints
