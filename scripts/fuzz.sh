#!/bin/sh
# Runs every fuzz target of the module for the time given (default 2s), as many
# at once as there are processors, each on one. Only the module's own code is
# instrumented: what it imports is as it was compiled for the program, and
# guides nothing.
set -eu
time=${1:-2s}
cd "$(dirname "$0")/.."
go=${GO:-go}
bins=$(mktemp -d)
trap 'rm -rf "$bins"' EXIT
list=$(grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$(dirname "$file") \1|p" "$file"
done)
module=$($go list -m)
$go test -c -gcflags="$module/...=-d=libfuzzer" -o "$bins/" $(echo "$list" | cut -d' ' -f1 | sort -u)
export FUZZ_CACHE="$($go env GOCACHE)/fuzz/$module"
echo "$list" | xargs -P "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -n 2 sh scripts/fuzz1.sh "$time" "$bins"
