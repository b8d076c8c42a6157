#!/usr/bin/env bash
# Checks what needs no test: format, Python lint and types, structure, and clang-tidy on the C++ that changed.
#   tools/dev/lint.sh [--fix | --quick]
#     --fix    rewrite what can be: clang-format, ruff
#     --quick  leave out clang-tidy
# "Changed" is against the merge base with origin/main, or against the commit before the last one.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
bin=.venv/bin
failed=0
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "ok      $name"
  else
    failed=1
    echo "FAILED  $name"
    printf '%s\n' "$output"
  fi
}
mapfile -t cpp < <(git ls-files '*.cpp' '*.h' '*.cu')
mapfile -t python < <(git ls-files '*.py')
if [ ${#python[@]} = 0 ]; then
  echo "error: $root is not a git checkout, which says what is ours to check" >&2
  exit 2
fi

if [ "${1:-}" = --fix ]; then
  [ ${#cpp[@]} = 0 ] || clang-format-22 -i "${cpp[@]}"
  $bin/ruff check --quiet --fix "${python[@]}"
  $bin/ruff format "${python[@]}"
  exit
fi

[ ${#cpp[@]} = 0 ] || check clang-format clang-format-22 --dry-run --Werror "${cpp[@]}"
check ruff $bin/ruff check --quiet "${python[@]}"
check ruff-format $bin/ruff format --check --quiet "${python[@]}"
check mypy $bin/mypy
check structure $bin/python tools/dev/check-structure.py

clang_tidy_changed() {
  local base changed=()
  base=$(git merge-base HEAD origin/main 2>/dev/null || git rev-parse --quiet --verify HEAD~1) || return 0
  mapfile -t changed < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp')
  [ ${#changed[@]} -gt 0 ] || return 0
  clang-tidy-22 -p build --quiet "${changed[@]}"
}
if [ "${1:-}" != --quick ]; then
  check clang-tidy clang_tidy_changed
fi
exit $failed
