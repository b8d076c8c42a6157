#!/usr/bin/env bash
# Runs the tests of a finished build, all stages even if one fails, and ends with the result of each.
#   tools/dev/run-tests.sh [lit] [unit] [python] [gpu]      (default: all, in this order)
# lit, unit and python take all processors; gpu has one process, since its tests share a device.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
[ $# -gt 0 ] || set -- lit unit python gpu
processors=$(nproc)
# Tests start hundreds of processes; each would compile all modules again.
unset PYTHONDONTWRITEBYTECODE
failed=0
report=()

# stage NAME PATTERN COMMAND...: the last line of the output that matches PATTERN stands for the stage.
stage() {
  local name=$1 pattern=$2 log status=0
  shift 2
  log=$(mktemp)
  echo "==> $name"
  "$@" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
  [ "$status" = 0 ] || failed=1
  report+=("$(printf '%-7s %s  %s' "$name" "$([ "$status" = 0 ] && echo ok || echo FAILED)" \
    "$(grep -E "$pattern" "$log" | tail -n 1 | sed 's/^ *//')")")
  rm -f "$log"
}

for wanted in "$@"; do
  case "$wanted" in
    lit) stage lit '^ *(Passed|Failed) *:|Testing Time' /usr/lib/llvm-22/bin/lit --succinct --verbose build/test ;;
    unit)
      stage unit 'tests (passed|failed)' ctest --test-dir build --output-on-failure --no-tests=error -j "$processors" ;;
    python)
      [ ${#report[@]} = 0 ] || printf '%s\n' "==> so far" "${report[@]}"
      # A process has one processor: more threads of BLAS would only wait for each other.
      stage python '^=+ .* =+$' env OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
        .venv/bin/python -m pytest -n "$processors" --dist worksteal test/python test/runtime
      ;;
    gpu) stage gpu '^=+ .* =+$' .venv/bin/python -m pytest -r fE test/gpu ;;
    *) echo "error: unknown stage '$wanted'; allowed: lit, unit, python, gpu" >&2; exit 2 ;;
  esac
done
[ $failed = 0 ] || printf '%s\n' "==> failed" "${report[@]}"
exit $failed
