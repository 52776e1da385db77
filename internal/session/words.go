package session

import (
	"github.com/agentcli/agent/internal/agent"
	"github.com/agentcli/agent/internal/streamjson"
)

// Words returns how the hosts of a dialect expect to read about calls that were
// kept from running.
func Words(d streamjson.Dialect) agent.Words {
	if d != streamjson.Qwen {
		return agent.Words{}
	}
	const cancelled = "[Operation Cancelled] Reason: "
	return agent.Words{
		HostDenied: func(_, message string) string {
			if message == "" {
				message = "User did not allow tool call"
			}
			return cancelled + message
		},
		Unanswered: func(_ string, err error) string { return cancelled + "Error: " + err.Error() },
		Interrupted: func(string) string {
			return cancelled + "User intentionally cancelled. Stop and await further instructions; do not retry."
		},
	}
}
