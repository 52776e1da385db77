#!/bin/sh
# Sets up what tests use besides Go, where that is possible. What is missing is
# said here, and the tests that need it skip in plain sight; with CI=true it is
# demanded.
set -eu
need() {
	if command -v "$1" >/dev/null 2>&1; then
		return
	fi
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		(apt-get -qq update && apt-get -qq -y install "$2") >/dev/null 2>&1 || true
	fi
	if command -v "$1" >/dev/null 2>&1; then
		return
	fi
	echo "NOTE: $1 is not installed: the tests that need it are skipped" >&2
	if [ "${CI:-}" = true ]; then
		echo "CI demands it: install $2" >&2
		exit 1
	fi
}
need rg ripgrep
need git git
need setsid util-linux
need jq jq
need strace strace
need bwrap bubblewrap
need node nodejs
need npm npm
need python3 python3
python3 -m venv --help >/dev/null 2>&1 || echo "NOTE: python3 lacks venv: the tests with Python's SDK are skipped" >&2
