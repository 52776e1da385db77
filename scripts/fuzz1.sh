#!/bin/sh
# fuzz1.sh TIME BINARIES DIR TARGET: one fuzz target. What fails is kept in
# DIR/testdata/fuzz, what is interesting in FUZZ_CACHE.
set -eu
out=$(mktemp)
trap 'rm -f "$out"' EXIT
run() (
	cd "$3"
	"$2/$(basename "$3").test" -test.run '^$' -test.fuzz "^$4\$" -test.fuzztime "$1" -test.fuzzminimizetime 3s -test.parallel 1 \
		-test.fuzzcachedir "$FUZZ_CACHE/${3#./}" >"$out" 2>&1
)
# The engine now and then reports its own time limit as a failure, without an
# input that fails: that is no finding, and the target runs again.
run "$@" || { grep -q 'context deadline exceeded' "$out" && ! grep -q 'Failing input' "$out" && run "$@"; } || {
	cat "$out"
	echo "FAIL fuzz $3 $4"
	exit 255
}
# Without coverage the engine would only guess.
grep -q 'baseline coverage' "$out" || {
	cat "$out"
	echo "FAIL fuzz $3 $4: it ran without coverage"
	exit 255
}
echo "fuzz $3 $4 $1 ok: $(grep -o 'execs: [0-9]*' "$out" | tail -1)"
