#!/bin/sh
# The main job in one look: demo/run.sh [--check] AGENT. A scripted model drives
# the real loop and the real tools over a copy of demo/project, whose test fails
# before and passes after. No key, no network. With --check it prints one line.
set -eu
check=
if [ "$1" = --check ]; then
	check=yes
	shift
fi
agent=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prompt="The test of this package fails. Find out why, mend it, and show that it passes."
AGENT_HOME=$work/home
export AGENT_HOME
unset AGENT_MODEL || true

say() {
	if [ -z "$check" ]; then
		printf '\n\033[1m== %s\033[0m\n' "$*"
	fi
}
run_agent() { # format
	"$agent" -p "$prompt" --model "scripted/$here/script.jsonc" --permission-mode yolo --output-format "$1" </dev/null
}
test_project() { # name
	(cd "$work/$1" && go test ./... 2>&1)
}

cp -r "$here/project" "$work/one"
cp -r "$here/project" "$work/two"

say "before: go test"
if test_project one >"$work/before"; then
	echo "demo: the test of the untouched project passes: there is nothing to mend" >&2
	exit 1
fi
[ -n "$check" ] || cat "$work/before"

say "agent -p \"$prompt\" --output-format stream-json"
cd "$work/one"
run_agent stream-json >"$work/stream"
[ -n "$check" ] || cat "$work/stream"

say "after: git diff and go test"
diff -u "$here/project/wordcount.go" "$work/one/wordcount.go" >"$work/diff" && {
	echo "demo: the agent changed nothing" >&2
	exit 1
}
[ -n "$check" ] || cat "$work/diff"
test_project one >"$work/after" || {
	cat "$work/after" >&2
	echo "demo: the test still fails" >&2
	exit 1
}
[ -n "$check" ] || cat "$work/after"

say "the same, --output-format text"
cd "$work/two"
run_agent text >"$work/text"
[ -n "$check" ] || cat "$work/text"
test_project two >/dev/null

results=$(grep -c '"type":"result"' "$work/stream")
if [ "$results" != 1 ]; then
	echo "demo: $results result lines, want 1" >&2
	exit 1
fi
[ -z "$check" ] || echo "demo ok: the test failed before and passes after; $(wc -l <"$work/stream") frames, one result"
