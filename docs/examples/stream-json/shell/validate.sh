#!/bin/sh
# A validating client in plain shell, with jq: plays scenarios against the
# program and checks every line that it writes. Needs the model of
# ../with-model.sh. VALIDATE_KEEP=DIR keeps the lines of each scenario there.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# start begins a scenario: a program of its own, in an empty folder.
start() { # NAME FLAGS...
	name=$1 turns=0 turn_failed=
	shift
	mkdir "$tmp/$name"
	mkfifo "$tmp/$name/in" "$tmp/$name/out"
	mkdir "$tmp/$name/work"
	: >"$tmp/$name/lines"
	(cd "$tmp/$name/work" && exec "${AGENT:-agent}" --input-format stream-json --output-format stream-json --permission-prompt-tool stdio "$@" <../in >../out) &
	program=$!
	exec 3>"$tmp/$name/in" 4<"$tmp/$name/out"
}

send() { printf '%s\n' "$1" >&3; }

user() { # TEXT
	turns=$((turns + 1))
	jq -cn --arg text "$1" '{type: "user", message: {role: "user", content: $text}}' >&3
}

# until reads lines up to the one that a filter accepts, which is then in $line.
until_line() { # FILTER
	while IFS= read -r line <&4; do
		printf '%s\n' "$line" >>"$tmp/$name/lines"
		if printf '%s\n' "$line" | jq -e "$1" >/dev/null; then
			return
		fi
	done
	fail "the program ended before a line with $1"
}

result() { until_line '.type == "result"'; }

response() { # ID
	until_line ".type == \"control_response\" and .response.request_id == \"$1\""
}

# answer replies to the can_use_tool question that comes next.
answer() { # JSON
	until_line '.request.subtype? == "can_use_tool"'
	question=$line
	printf '%s\n' "$line" | jq -c --argjson answer "$1" \
		'{type: "control_response", response: {subtype: "success", request_id, response: $answer}}' >&3
}

fail() {
	turn_failed=yes
	echo "FAIL $name: $1"
}

is() { # FILTER of $line that must hold
	printf '%s\n' "$line" | jq -e "$1" >/dev/null || fail "not so: $1 in $line"
}

# finish ends the input and checks what holds for every conversation.
finish() {
	exec 3>&-
	cat <&4 >>"$tmp/$name/lines"
	exec 4<&-
	wait "$program" || fail "exit code $?"
	all "every line is an object with a type" 'all(type == "object" and (.type | type) == "string")'
	all "every frame has a uuid and the session's id" \
		'map(select(.type | startswith("control_") | not)) | all(.uuid) and ([.[].session_id] | unique | length) <= 1'
	all "a result for each user line, and nothing of a turn after it" "
		map(select(.type == \"result\")) | length == $turns"
	all "every tool_use has its tool_result" '
		([.[] | select(.type == "assistant") | .message.content[] | select(.type == "tool_use").id]) as $calls
		| ([.[] | select(.type == "user") | .message.content[]? | select(.type == "tool_result").tool_use_id]) as $results
		| ($calls | sort) == ($results | sort)'
	all "no request is answered twice" '[.[] | select(.type == "control_response").response.request_id] | length == (unique | length)'
	[ -z "${VALIDATE_KEEP:-}" ] || cp "$tmp/$name/lines" "$VALIDATE_KEEP/$name.jsonl"
	if [ -z "$turn_failed" ]; then echo "ok   $name"; else failed=$((failed + 1)); fi
}

all() { # WHAT FILTER over all lines
	jq -es "$2" "$tmp/$name/lines" >/dev/null || fail "$1"
}

note() { cat "$tmp/$name/work/note.txt" 2>/dev/null || echo none; }

start question
user "Hello!"
result
is '.subtype == "success" and .result == "Hello, what can I do for you?"'
finish

start conversation
user "My number is 7."
result
user "What is my number?"
result
is '.result == "Your number is 7."'
finish

start queued # both lines at once; each gets its turn
user "My number is 7."
user "What is my number?"
result
result
is '.result == "Your number is 7."'
finish

start partial --include-partial-messages
user "Hello!"
result
all "the pieces make up the answer" '[.[] | select(.type == "stream_event").event.delta.text? // empty] | add == "Hello, what can I do for you?"'
finish

start initialize
send '{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}'
response i
is '.response.subtype == "success" and .response.response.protocol_version == "1.0" and (.response.response.capabilities.tools | index("read_file"))'
finish

start allow
user "Write a note."
answer '{"behavior":"allow"}'
result
is '.result == "The note is written."'
[ "$(note)" = "Buy milk." ] || fail "the note is $(note)"
finish

start deny
user "Write a note."
answer '{"behavior":"deny","message":"not now"}'
result
is '.result == "I could not write it." and (.permission_denials | length) == 1'
[ "$(note)" = none ] || fail "the note was written"
finish

start changed_input
user "Write a note."
answer '{"behavior":"allow","updatedInput":{"file_path":"note.txt","content":"Buy bread.\n"}}'
result
[ "$(note)" = "Buy bread." ] || fail "the note is $(note)"
finish

start permission_mode
send '{"type":"control_request","request_id":"m","request":{"subtype":"set_permission_mode","mode":"auto-edit"}}'
response m
is '.response.response.mode == "auto-edit"'
user "Write a note." # without a question
result
[ "$(note)" = "Buy milk." ] || fail "the note is $(note)"
all "nothing was asked" 'all(.type != "control_request")'
finish

start model
send '{"type":"control_request","request_id":"m","request":{"subtype":"set_model","model":"anthropic/claude-opus-4-1"}}'
response m
is '.response.response.model | endswith("claude-opus-4-1")'
user "Which model are you?"
result
is '.result == "I am claude-opus-4-1."'
finish

start interrupt --include-partial-messages
user "Recite a poem."
until_line '.event.delta.text? // "" | contains("Roses")'
send '{"type":"control_request","request_id":"x","request":{"subtype":"interrupt"}}'
response x
result
is '.is_error == false and .terminal_reason == "aborted_streaming"'
user "Hello!"
result
is '.subtype == "success"'
finish

start commands
send '{"type":"control_request","request_id":"c","request":{"subtype":"supported_commands"}}'
response c
is '.response.response.commands | index("status")'
user "/status"
result
is '.subtype == "success" and .num_turns == 0'
finish

start unknown_request
send '{"type":"control_request","request_id":"u","request":{"subtype":"make_coffee"}}'
response u
is '.response.subtype == "error" and (.response.error | contains("make_coffee"))'
user "Hello!" # the session goes on
result
finish

start model_error
user "Please fail."
result
is '.is_error and .terminal_reason == "api_error"'
user "Hello!"
result
is '.is_error == false'
finish

[ "$failed" = 0 ] || { echo "$failed failed"; exit 1; }
