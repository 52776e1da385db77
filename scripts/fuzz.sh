#!/bin/sh
# Runs every fuzz target of the module for the time given (default 5s).
set -eu
time=${1:-5s}
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
	dir=$(dirname "$file")
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file" | while read -r target; do
		echo "fuzz $dir $target $time"
		${GO:-go} test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir" >"${TMPDIR:-/tmp}/fuzz.$$" 2>&1 || {
			cat "${TMPDIR:-/tmp}/fuzz.$$"
			rm -f "${TMPDIR:-/tmp}/fuzz.$$"
			exit 1
		}
	done
done
rm -f "${TMPDIR:-/tmp}/fuzz.$$"
