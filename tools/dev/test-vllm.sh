#!/usr/bin/env bash
# Tests lowlp.vllm against vLLM's own classes, on the CPU. vLLM is installed from its source without compiled code, with
# what its modules import, once, into build/vllm-tools, 500 MB. Where it cannot be installed, says so and is skipped.
#   tools/dev/test-vllm.sh [arguments of pytest]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
exec </dev/null
tools=build/vllm-tools
requirements=$here/requirements-vllm.txt
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
version=0.33.0

install() {
  rm -rf "$tools"
  .venv/bin/python -m venv "$tools"
  # What .venv has is seen from there, and not installed again.
  site=$("$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/of-venv.pth"
  echo "$root/build/python_packages" >"$site/lowlp-build-tree.pth"
  "$tools/bin/python" -m pip install --quiet --no-deps --requirement "$requirements" || return 1
  # Nothing is compiled; its version would be 0.33.0+empty, which is not the one that was asked for.
  VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$version "$tools/bin/python" -m pip install --quiet --no-deps \
    --no-build-isolation --no-binary vllm "vllm==$version" || return 1
  cp "$requirements" "$tools/requirements-installed.txt"
}

if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
  echo "error: .venv has no PyTorch, which vLLM needs; see tools/dev/setup.sh" >&2
  exit 1
fi
if ! cmp -s "$requirements" "$tools/requirements-installed.txt"; then
  echo "==> installing vLLM $version without compiled code ($(grep -c '==' "$requirements") packages, pinned in tools/dev/requirements-vllm.txt)"
  if ! install; then
    echo "==> skipped: vLLM $version or a package that it imports cannot be installed here (above); nothing was tested"
    exit 0
  fi
fi
# Nothing here may ask a hub for a model, or tell anybody that it ran.
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# The groups of processes that vLLM opens stay on this machine.
export VLLM_HOST_IP=127.0.0.1
exec "$tools/bin/python" -m pytest -n "$(nproc)" --dist loadfile "$@" test/vllm
