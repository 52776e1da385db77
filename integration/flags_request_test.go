package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// reached is what reached a model's API.
type reached struct {
	header http.Header
	body   map[string]any
}

// capture serves an API that refuses every request, and passes them on.
func capture(t *testing.T) (url string, got <-chan reached) {
	t.Helper()
	requests := make(chan reached, 16)
	url = local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := reached{header: r.Header.Clone()}
		if err := json.NewDecoder(r.Body).Decode(&a.body); err == nil {
			requests <- a
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"type":"error","error":{"type":"invalid_request_error","message":"not today"}}`)
	}))
	return url, requests
}

// TestFlagsReachTheModel: thinking, effort, betas and model, by flag and by the
// environment of an SDK, are in the request that the API gets.
func TestFlagsReachTheModel(t *testing.T) {
	t.Parallel()
	at := func(body map[string]any, path ...string) any {
		var v any = body
		for _, key := range path {
			m, _ := v.(map[string]any)
			v = m[key]
		}
		return v
	}
	thinking := func(a reached) any { return at(a.body, "thinking", "budget_tokens") }
	sdk := "CLAUDE_CODE_ENTRYPOINT=sdk-py"
	for _, c := range []struct {
		name string
		args []string
		env  []string
		get  func(reached) any
		want any
	}{
		{"--max-thinking-tokens", []string{"--max-thinking-tokens", "2048"}, nil, thinking, 2048.0},
		{"--max-thinking-tokens=", []string{"--max-thinking-tokens=4096"}, nil, thinking, 4096.0},
		{"--thinking disabled", []string{"--thinking", "disabled", "--max-thinking-tokens=4096"}, nil, thinking, nil},
		{"MAX_THINKING_TOKENS", nil, []string{sdk, "MAX_THINKING_TOKENS=2048"}, thinking, 2048.0},
		{"MAX_THINKING_TOKENS in a person's shell", nil, []string{"MAX_THINKING_TOKENS=2048"}, thinking, nil},
		{"the flag wins over MAX_THINKING_TOKENS", []string{"--max-thinking-tokens=4096"}, []string{sdk, "MAX_THINKING_TOKENS=2048"}, thinking, 4096.0},
		{"--effort", []string{"--model=claude-sonnet-5-5", "--effort", "low"}, nil, func(a reached) any { return at(a.body, "output_config", "effort") }, "low"},
		{"--betas", []string{"--betas", "one,two", "--betas=three"}, nil, func(a reached) any { return a.header.Get("anthropic-beta") }, "one,two,three"},
		{"ANTHROPIC_MODEL", nil, []string{sdk, "ANTHROPIC_MODEL=claude-of-mine"}, func(a reached) any { return a.body["model"] }, "claude-of-mine"},
		{"--model default", []string{"--model=default"}, []string{sdk, "ANTHROPIC_MODEL=claude-of-mine"}, func(a reached) any { return a.body["model"] }, "claude-of-mine"},
		{"an alias", []string{"--model", "haiku"}, []string{sdk}, func(a reached) any { return a.body["model"] }, "claude-haiku-5-5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			url, got := capture(t)
			args := slices.Concat(bothWays, c.args)
			if !strings.Contains(strings.Join(c.env, " "), "ANTHROPIC_MODEL") {
				args = append([]string{"--model", "claude-sonnet-4-5"}, args...)
			}
			proc, _ := p.run(testkit.Spec{
				Args: args, Stdin: userLine("hi") + "\n",
				Env: append([]string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + url}, c.env...),
			})
			select {
			case a := <-got:
				if v := c.get(a); v != c.want {
					raw, _ := json.Marshal(map[string]any{"thinking": a.body["thinking"], "output_config": a.body["output_config"], "model": a.body["model"]})
					t.Errorf("%v, want %v: %s", v, c.want, raw)
				}
			default:
				t.Errorf("no request: %s%s", proc.Output(), proc.Stderr())
			}
		})
	}
}

// TestPermissionPromptToolStdio: with --permission-prompt-tool stdio the host is
// asked even if it never sent initialize, and its word counts.
func TestPermissionPromptToolStdio(t *testing.T) {
	t.Parallel()
	for _, behavior := range []string{"allow", "deny"} {
		for _, dialect := range []string{"native", "claude", "qwen"} {
			t.Run(dialect+" "+behavior, func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				model := p.scripted(shell(1, "echo made > made.txt") + say("done"))
				proc := p.start(testkit.Spec{
					Args: append([]string{model, "--permission-prompt-tool", "stdio", "--dialect=" + dialect}, bothWays...), HoldStdin: true,
				})
				if err := proc.Send(userLine("go")); err != nil {
					t.Fatal(err)
				}
				question, next, err := proc.Await(0, 20*time.Second, func(l testkit.Line) bool {
					return json.Valid(l.Text) && lineType(l) == "control_request"
				})
				if err != nil {
					t.Fatal(err)
				}
				var q struct {
					ID string `json:"request_id"`
				}
				if err := json.Unmarshal(question.Text, &q); err != nil {
					t.Fatal(err)
				}
				answer := fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"behavior":%q,"message":"no"}}}`, q.ID, behavior)
				if err := proc.Send(answer); err != nil {
					t.Fatal(err)
				}
				if _, _, err := proc.Await(next, 20*time.Second, func(l testkit.Line) bool { return lineType(l) == "result" }); err != nil {
					t.Fatal(err)
				}
				if made := p.has("made.txt"); made != (behavior == "allow") {
					t.Errorf("the command ran: %t", made)
				}
				proc.CloseStdin()
				if exit, err := proc.Wait(20 * time.Second); err != nil || exit.Code != 0 {
					t.Errorf("exit code %d, %v", exit.Code, err)
				}
			})
		}
	}
}

// lineType is the type of a line.
func lineType(l testkit.Line) string {
	var m struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(l.Text, &m) // no type then
	return m.Type
}
