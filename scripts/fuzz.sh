#!/bin/sh
# Runs every fuzz target of the module for the time given (default 5s), as many
# at once as there are processors, each on one.
set -eu
time=${1:-5s}
cd "$(dirname "$0")/.."
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$(dirname "$file") \1|p" "$file"
done | xargs -P "$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)" -n 2 sh scripts/fuzz1.sh "$time"
