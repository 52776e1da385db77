package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// sdkEnv marks a session of a Claude Agent SDK.
const sdkEnv = "CLAUDE_CODE_ENTRYPOINT=sdk-py"

// TestHostEnvLimits: variables of the environment that users of the Claude Agent
// SDKs know limit what tools do, and do nothing in a person's shell.
func TestHostEnvLimits(t *testing.T) {
	t.Parallel()
	slow := shell(1, "sleep 30; echo whole")
	asking := call(1, "run_shell_command", map[string]any{"command": "sleep 30; echo whole", "timeout": 60_000})
	quick := shell(1, "echo whole")
	long := call(1, "mcp__good__echo", map[string]any{"text": strings.Repeat("0123456789", 50) + "MIDDLE" + strings.Repeat("0123456789", 50)})
	never := call(1, "mcp__good__never", map[string]any{})
	behind := call(1, "run_shell_command", map[string]any{"command": "echo whole", "run_in_background": true})
	for _, c := range []struct {
		name, steps string
		env         []string
		want        string // in the tool's result
		not         string
	}{
		{"BASH_DEFAULT_TIMEOUT_MS", slow, []string{sdkEnv, "BASH_DEFAULT_TIMEOUT_MS=200"}, "timed out after 200ms", "whole"},
		{"a BASH_DEFAULT_TIMEOUT_MS beyond BASH_MAX_TIMEOUT_MS", slow, []string{sdkEnv, "BASH_DEFAULT_TIMEOUT_MS=900000", "BASH_MAX_TIMEOUT_MS=300"}, "timed out after 300ms", "whole"},
		{"BASH_MAX_TIMEOUT_MS", asking, []string{sdkEnv, "BASH_MAX_TIMEOUT_MS=200"}, "at most 200 ms", "whole"},
		{"a person's shell", quick, []string{"BASH_DEFAULT_TIMEOUT_MS=1", "BASH_MAX_TIMEOUT_MS=1"}, "whole", "timed out"},
		{"MAX_MCP_OUTPUT_TOKENS", long, []string{sdkEnv, "MAX_MCP_OUTPUT_TOKENS=100"}, "bytes in the middle are not shown", "MIDDLE"},
		{"MAX_MCP_OUTPUT_TOKENS, enough", long, []string{sdkEnv, "MAX_MCP_OUTPUT_TOKENS=1000"}, "MIDDLE", "not shown"},
		{"MCP_TOOL_TIMEOUT", never, []string{"MCP_TOOL_TIMEOUT=200"}, "did not answer within 200ms", ""},
		{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", behind, []string{sdkEnv, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"}, "run_in_background is not available here", "whole"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			args := append([]string{"--permission-mode=bypassPermissions", mcpFlag(map[string]any{"good": userServer(t, "good", mark(), p.dir)}),
				p.scripted(c.steps + say("done"))}, bothWays...)
			proc, _ := p.run(testkit.Spec{Args: args, Stdin: userLine("go") + "\n", Env: c.env})
			results := toolResults(frames(t, proc))
			if len(results) != 1 {
				t.Fatalf("%d results: %s%s", len(results), proc.Output(), proc.Stderr())
			}
			text := results[0].text
			if !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("the result is %q", text)
			}
		})
	}
}

// TestHostEnvReachesTheAPI: the token and the name of an SDK's user are in the
// requests that the model's API gets, and what background tasks need is not
// offered where they are turned off.
func TestHostEnvReachesTheAPI(t *testing.T) {
	t.Parallel()
	token, app := "CLAUDE_CODE_OAUTH_TOKEN=tok", "CLAUDE_AGENT_SDK_CLIENT_APP=my-app/1.2"
	auth := func(a reached) string { return a.header.Get("Authorization") + " " + a.header.Get("X-Api-Key") }
	agent := func(a reached) string {
		name, _, _ := strings.Cut(a.header.Get("User-Agent"), "/")
		_, app, _ := strings.Cut(a.header.Get("User-Agent"), " ")
		return name + " " + app
	}
	background := func(a reached) string {
		tools := fmt.Sprint(a.body["tools"])
		return fmt.Sprint(strings.Contains(tools, "run_in_background"), strings.Contains(tools, "TaskStop"), strings.Contains(tools, "TaskOutput"))
	}
	for _, c := range []struct {
		name string
		env  []string
		get  func(reached) string
		want string
	}{
		{"the token", []string{sdkEnv, token}, auth, "Bearer tok "},
		{"a key wins", []string{sdkEnv, token, "ANTHROPIC_API_KEY=key"}, auth, " key"},
		{"a token of the API's own wins", []string{sdkEnv, token, "ANTHROPIC_AUTH_TOKEN=own"}, auth, "Bearer own "},
		{"a person's shell", []string{token, "ANTHROPIC_API_KEY=key"}, auth, " key"},
		{"the app", []string{sdkEnv, app, "ANTHROPIC_API_KEY=key"}, agent, "agent my-app/1.2"},
		{"an app that no header can hold", []string{sdkEnv, app + "\nX-Evil: 1", "ANTHROPIC_API_KEY=key"}, func(a reached) string { return a.header.Get("X-Evil") }, ""},
		{"background tasks", []string{sdkEnv, "ANTHROPIC_API_KEY=key"}, background, "true true true"},
		{"no background tasks", []string{sdkEnv, "ANTHROPIC_API_KEY=key", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1"}, background, "false false false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			url, got := capture(t)
			proc, _ := p.run(testkit.Spec{
				Args: append([]string{"--model", "claude-sonnet-4-5"}, bothWays...), Stdin: userLine("hi") + "\n",
				Env: append([]string{"ANTHROPIC_BASE_URL=" + url}, c.env...),
			})
			select {
			case a := <-got:
				if v := c.get(a); v != c.want {
					t.Errorf("%q, want %q", v, c.want)
				}
			default:
				t.Errorf("no request: %s%s", proc.Output(), proc.Stderr())
			}
		})
	}
}
