#!/bin/sh
# Runs a command with a model that needs no key: with-model.sh COMMAND...
# The model's server plays model.jsonc; the variables below lead every SDK, and
# agent itself, to it. AGENT is the program to use, else it is looked for.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
AGENT=${AGENT:-$(command -v agent || echo "$here/../../../bin/agent")}

tmp=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT
mkfifo "$tmp/out"
"$AGENT" model serve --script "$here/model.jsonc" >"$tmp/out" &
server=$!
exec 3<"$tmp/out"
IFS= read -r line <&3 # serving model.jsonc (... steps) at http://127.0.0.1:PORT
url=http://${line##*http://}

export AGENT
export ANTHROPIC_BASE_URL="$url" ANTHROPIC_API_KEY=not-needed ANTHROPIC_MODEL=claude-sonnet-4-5
export OPENAI_BASE_URL="$url/v1" OPENAI_API_KEY=no-key OPENAI_MODEL=gpt-5
"$@"
