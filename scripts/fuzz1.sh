#!/bin/sh
# fuzz1.sh TIME DIR TARGET: one fuzz target.
set -eu
out=$(mktemp)
trap 'rm -f "$out"' EXIT
run() {
	${GO:-go} test -run '^$' -fuzz "^$3\$" -fuzztime "$1" -fuzzminimizetime 3s -parallel 1 "$2" >"$out" 2>&1
}
# The engine now and then reports its own time limit as a failure, without an
# input that fails: that is no finding, and the target runs again.
run "$@" || { grep -q 'context deadline exceeded' "$out" && ! grep -q 'Failing input' "$out" && run "$@"; } || {
	cat "$out"
	echo "FAIL fuzz $2 $3"
	exit 255
}
echo "fuzz $2 $3 $1 ok: $(grep -o 'execs: [0-9]*' "$out" | tail -1)"
