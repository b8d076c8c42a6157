#!/usr/bin/env bash
# Tests a plug-in for a serving engine against the engine's own classes, on the CPU: lowlp.vllm with vLLM's source, or
# lowlp.sglang with SGLang's wheel, without compiled code for GPUs. The engine and what its modules import are installed
# once, into build/vllm-tools (500 MB) or build/sglang-tools (400 MB). Where they cannot be, says so and is skipped.
#   tools/dev/test-engine.sh vllm|sglang [arguments of pytest]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
exec </dev/null
engine=${1:-}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
case $engine in
vllm) version=0.33.0 ;;
sglang) version=0.5.23 ;;
*)
  echo "error: usage: tools/dev/test-engine.sh vllm|sglang [arguments of pytest]; got '$engine'" >&2
  exit 2
  ;;
esac
shift
tools=build/$engine-tools
requirements=$here/requirements-$engine.txt

install() {
  rm -rf "$tools"
  .venv/bin/python -m venv "$tools"
  # What .venv has is seen from there, and not installed again.
  site=$("$tools/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  .venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$site/of-venv.pth"
  echo "$root/build/python_packages" >"$site/lowlp-build-tree.pth"
  "$tools/bin/python" -m pip install --quiet --no-deps --no-compile --requirement "$requirements" || return 1
  if [ "$engine" = vllm ]; then
    # Nothing is compiled; its version would be 0.33.0+empty, which is not the one that was asked for.
    VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$version "$tools/bin/python" -m pip install --quiet --no-deps \
      --no-build-isolation --no-binary vllm "vllm==$version" || return 1
  else
    "$tools/bin/python" -m pip install --quiet --no-deps --no-compile --only-binary :all: "sglang==$version" || return 1
  fi
  cp "$requirements" "$tools/requirements-installed.txt"
}

if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
  echo "error: .venv has no PyTorch, which $engine needs; see tools/dev/setup.sh" >&2
  exit 1
fi
if ! cmp -s "$requirements" "$tools/requirements-installed.txt"; then
  echo "==> installing $engine $version without code for GPUs ($(grep -c '==' "$requirements") packages, pinned in tools/dev/requirements-$engine.txt)"
  if ! install; then
    echo "==> skipped: $engine $version or a package that it imports cannot be installed here (above); nothing was tested"
    exit 0
  fi
fi
# Nothing here may ask a hub for a model, or tell anybody that it ran.
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# The groups of processes that vLLM opens stay on this machine.
export VLLM_HOST_IP=127.0.0.1
exec "$tools/bin/python" -m pytest -n "$(nproc)" --dist loadfile "$@" "test/$engine"
