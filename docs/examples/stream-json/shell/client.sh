#!/bin/sh
# A small client in plain shell, with jq: client.sh PROMPT...
# Each prompt is a turn of one conversation. Prints what the model says, and asks
# on the terminal before a tool does what has to be asked about.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkfifo "$tmp/in" "$tmp/out"
"${AGENT:-agent}" --input-format stream-json --output-format stream-json --permission-prompt-tool stdio <"$tmp/in" >"$tmp/out" &
exec 3>"$tmp/in" 4<"$tmp/out" # 3: to the program, 4: from it

get() { # FILTER: that part of the line
	printf '%s\n' "$line" | jq -r "$1"
}

# ask answers the question in $line with what the user types.
ask() {
	printf 'May it run %s? [y/N] ' "$(get '.request | "\(.tool_name) \(.input)"')"
	answer='{"behavior":"deny","message":"The user said no."}'
	if read -r reply && [ "$reply" = y ]; then
		answer='{"behavior":"allow"}'
	fi
	printf '\n'
	printf '%s\n' "$line" | jq -c --argjson answer "$answer" \
		'{type: "control_response", response: {subtype: "success", request_id, response: $answer}}' >&3
}

for prompt in "$@"; do
	printf '> %s\n' "$prompt"
	jq -cn --arg text "$prompt" '{type: "user", message: {role: "user", content: $text}}' >&3
	while IFS= read -r line <&4; do
		case $(get '"\(.type) \(.subtype // .request.subtype // "")"') in
		"control_request can_use_tool") ask ;;
		assistant*) get '.message.content[] | if .type == "text" then .text elif .type == "tool_use" then "[\(.name)]" else empty end' ;;
		result*) # the turn is over
			[ "$(get .is_error)" = false ] || get '.errors[]?, .result // empty' >&2
			break
			;;
		esac
	done
done
exec 3>&- # no more input: the program ends
wait $!
