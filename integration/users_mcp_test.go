package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// serverState is what an init frame says of an MCP server.
func serverState(f testkit.Frame, name string) string {
	list, _ := f["mcp_servers"].([]any)
	for _, one := range list {
		if m, _ := one.(map[string]any); m["name"] == name {
			state, _ := m["status"].(string)
			return state
		}
	}
	return ""
}

func isInitFrame(f testkit.Frame) bool { return f.Kind() == "system/init" }

// TestUsersRow16_TheFirstTurnHasTheToolsOfSlowServers: the one prompt of a run
// waits until a slow server is there; one that never comes is given up and named
// as what it is, and delays neither initialize nor a later turn.
func TestUsersRow16_TheFirstTurnHasTheToolsOfSlowServers(t *testing.T) {
	t.Parallel()
	t.Run("late", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		steps := call(1, "mcp__late__echo", map[string]any{"text": "hi"}) + `{"emit": [{"text": "{{last_tool_result}}"}]}`
		proc := p.start(testkit.Spec{Args: []string{
			"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(steps), mcpFlag(map[string]any{"late": userServer(t, "late", mark(), p.dir)}),
		}})
		eventually(t, patience, "the server was started", func() bool {
			started, _ := filepath.Glob(filepath.Join(p.dir, "server-*"))
			return len(started) > 0
		})
		if len(proc.Lines()) > 0 {
			t.Errorf("the turn began without the server: %s", proc.Output())
		}
		p.write("go", "")
		exit, err := proc.Wait(patience)
		if err != nil || exit.Code != 0 {
			t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
		}
		list := frames(t, proc)
		if got := serverState(list[0], "late"); got != "connected" || !strings.Contains(fmt.Sprint(list[0]["tools"]), "mcp__late__echo") {
			t.Errorf("the server is %q, the tools are %v", got, list[0]["tools"])
		}
		if got := texts(list); len(got) != 1 || !strings.HasPrefix(got[0], "echo: ") {
			t.Errorf("results: %q", got)
		}
	})
	eachDialect(t, func(t *testing.T, dialect string) {
		p := newPlace(t)
		h := p.host(t, dialect, testkit.Spec{
			Args: []string{p.scripted(say("done")), mcpFlag(map[string]any{"deaf": userServer(t, "deaf", mark(), p.dir), "gone": map[string]any{"command": "no-such-program"}})},
			Env:  []string{"MCP_TIMEOUT=400"},
		})
		h.initialize(nil)
		h.say("one")
		first := h.await("init", isInitFrame)
		if h.result(); serverState(first, "gone") != "failed" {
			t.Errorf("the program that is not there is %q", serverState(first, "gone"))
		}
		n := 0
		eventually(t, patience, "the deaf server has failed", func() bool {
			n++
			id := fmt.Sprintf("status-%d", n)
			h.ask(id, map[string]any{"subtype": "mcp_status"})
			for _, s := range h.answer(id)["response"].(map[string]any)["response"].(map[string]any)["mcpServers"].([]any) {
				if s := s.(map[string]any); s["name"] == "deaf" {
					return s["status"] == "failed"
				}
			}
			return false
		})
		begin := time.Now()
		h.say("two")
		second := h.await("init", isInitFrame)
		h.result()
		if took := time.Since(begin); took > 3*time.Second {
			t.Errorf("the second turn took %s", took)
		}
		if got := serverState(second, "deaf"); got != "failed" {
			t.Errorf("the deaf server is %q", got)
		}
		h.end(0)
	})
}

// TestUsersRow24_NoServerOutlivesUs: servers that do all to live on, behind a
// wrapper, and with children, and commands and sub-agents in the background are
// gone soon after the end, however it comes.
func TestUsersRow24_NoServerOutlivesUs(t *testing.T) {
	t.Parallel()
	onLinux(t)
	tool(t, "setsid")
	ends := map[string]func(h *userHost){
		"end of input":   func(h *userHost) { h.end(0) },
		"SIGTERM":        func(h *userHost) { h.Signal(syscall.SIGTERM) },
		"SIGINT":         func(h *userHost) { h.Signal(syscall.SIGINT) },
		"SIGKILL":        func(h *userHost) { h.Signal(syscall.SIGKILL) },
		"SIGABRT":        func(h *userHost) { h.Signal(syscall.SIGABRT) },
		"the host dies":  func(h *userHost) { h.CloseStdout(); h.CloseStdin() },
		"SIGTERM, twice": func(h *userHost) { h.Signal(syscall.SIGTERM); h.Signal(syscall.SIGTERM) },
	}
	steps := `{"when": {"user": {"contains": "go"}, "turn": 1}, "emit": [
	{"tool": "run_shell_command", "input": {"command": "touch background; setsid sleep 98765", "run_in_background": true}},
	{"tool": "agent", "input": {"description": "work", "prompt": "please", "subagent_type": "worker", "run_in_background": true}}]}
{"when": {"user": {"contains": "please"}, "turn": 1}, "emit": [{"tool": "run_shell_command", "input": {"command": "touch working; until test -e leave; do sleep 0.05; done"}}]}
` + say("done")
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, mark := newPlace(t), mark()
			wrapped := userServer(t, "stubborn", mark, p.dir)
			self := wrapped["command"]
			wrapped["command"], wrapped["args"] = "sh", []string{"-c", fmt.Sprintf("%q; exit 1", self)}
			h := p.host(t, "native", testkit.Spec{
				Args: []string{
					"--permission-mode=yolo", p.scripted(steps), "--agents", `{"worker":{"description":"works","prompt":"You work."}}`,
					mcpFlag(map[string]any{"wild": userServer(t, "stubborn", mark, p.dir), "wrapped": wrapped, "good": userServer(t, "good", mark, p.dir)}),
				},
				Env: []string{mark},
			})
			h.initialize(nil)
			h.say("go")
			h.result()
			eventually(t, patience, "all are there", func() bool {
				servers, _ := filepath.Glob(filepath.Join(p.dir, "server-*"))
				return p.has("background") && p.has("working") && len(servers) >= 3
			})
			if name == "end of input" {
				p.write("leave", "") // a sub-agent's work is waited for
			}
			end(h)
			if name != "end of input" {
				if _, err := h.Wait(patience); err != nil {
					t.Error(err)
				}
			}
			noneLeft(t, mark, 5*time.Second)
		})
	}
}

// TestUsersRow53_ManyToolsCostLittle: of a server with 200 wordy tools the
// first request declares next to nothing; the model finds one by searching, and
// calls it.
func TestUsersRow53_ManyToolsCostLittle(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		url, log := p.serve(call(1, "tool_search", map[string]any{"query": "tool_77_of_many"}) +
			call(2, "mcp__many__tool_77_of_many", map[string]any{"text": "hi"}) + `{"use": "always", "emit": [{"text": "{{last_tool_result}}"}]}`)
		seen := newTap(t, url)
		servers := mcpFlag(map[string]any{"many": userServer(t, "many", mark(), p.dir)})
		proc, exit := p.run(testkit.Spec{
			Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", "--model=" + pr.model, servers}, Env: pr.env(seen.url),
		})
		got := texts(frames(t, proc))
		if exit.Code != 0 || len(got) != 1 || !strings.HasPrefix(got[0], "tool_77_of_many: ") {
			t.Fatalf("exit code %d, results %q\n%s", exit.Code, got, proc.Stderr())
		}
		refused(t, log)
		bodies := seen.all()
		plain := newPlace(t) // the same without the server
		base, _ := plain.serve(say("x"))
		without := newTap(t, base)
		plain.run(testkit.Spec{Args: []string{"-pgo", "--permission-mode=yolo", "--model=" + pr.model}, Env: pr.env(without.url)})
		tokens := (len(bodies[0]) - len(without.all()[0])) / 4
		t.Logf("200 tools cost about %d tokens in the first request", tokens)
		if tokens > 5000 {
			t.Errorf("the server's tools take about %d tokens of the first request, want at most 5000", tokens)
		}
		if strings.Contains(bodies[0], "does a thing that takes many words") || !strings.Contains(bodies[1], "mcp__many__tool_77_of_many") {
			t.Error("a tool is declared before it was found, or not once it was")
		}
	})
}

// TestUsersRow54_BadServersDoNoHarm: a server that floods its stderr works; one
// that speaks an unknown version, and one that dies in a call, end as failed or
// come back; none leaves a process behind.
func TestUsersRow54_BadServersDoNoHarm(t *testing.T) {
	t.Parallel()
	onLinux(t)
	p, mark := newPlace(t), mark()
	steps := call(1, "mcp__noisy__echo", map[string]any{"text": "a"}) + call(2, "mcp__dies__die", map[string]any{"text": "b"}) +
		call(3, "mcp__noisy__echo", map[string]any{"text": "c"}) + say("done") + "\n"
	h := p.host(t, "native", testkit.Spec{
		Args: []string{"--permission-mode=yolo", p.scripted(steps), mcpFlag(map[string]any{
			"noisy": userServer(t, "noisy", mark, p.dir), "dies": userServer(t, "good", mark, p.dir), "stranger": userServer(t, "stranger", mark, p.dir),
			"wild": userServer(t, "stubborn", mark, p.dir),
		})},
		Env: []string{mark},
	})
	h.initialize(nil)
	h.say("go")
	first := h.await("init", isInitFrame)
	for name, want := range map[string]string{"noisy": "connected", "dies": "connected", "stranger": "failed", "wild": "connected"} {
		if got := serverState(first, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	h.result()
	answers := toolResults(h.frames())
	if len(answers) != 3 || answers[0].isError || answers[2].isError || !answers[1].isError || !strings.Contains(answers[1].text, "last words") {
		t.Errorf("answers: %+v", answers)
	}
	// The one that died comes back.
	n := 0
	eventually(t, patience, "the server that died is back", func() bool {
		n++
		id := fmt.Sprintf("status-%d", n)
		h.ask(id, map[string]any{"subtype": "mcp_server_status"})
		return h.answer(id).String("response.response.status.dies") == "connected"
	})
	before := vitalsOf(t, h.PID())
	for i := range 5 {
		id := fmt.Sprintf("again-%d", i)
		h.ask(id, map[string]any{"subtype": "mcp_reconnect", "serverName": "noisy"})
		if f := h.answer(id); f.String("response.subtype") != "success" {
			t.Errorf("reconnecting: %v", f)
		}
	}
	eventually(t, patience, "what the earlier connections held open is closed", func() bool {
		return vitalsOf(t, h.PID()).fds <= before.fds+2
	})
	begin := time.Now()
	h.end(0)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %s", took)
	}
	noneLeft(t, mark, time.Second)
}

// TestUsersRow54_ACallThatNeverEndsIsInterrupted: by an interrupt, and the
// server is still good.
func TestUsersRow54_ACallThatNeverEndsIsInterrupted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	steps := call(1, "mcp__fake__never", map[string]any{}) + `{"when": {"user": {"contains": "again"}}, "emit": [{"tool": "mcp__fake__echo", "input": {"text": "alive"}}]}` + say("done")
	h := p.host(t, "native", testkit.Spec{
		Args: []string{"--permission-mode=yolo", p.scripted(steps), mcpFlag(map[string]any{"fake": userServer(t, "good", mark(), p.dir)})},
	})
	h.initialize(nil)
	h.say("go")
	eventually(t, patience, "the tool was called", func() bool { return p.has("called") })
	h.ask("stop", map[string]any{"subtype": "interrupt"})
	h.result()
	h.say("again")
	h.result()
	list := h.end(0)
	answers := toolResults(list)
	if len(answers) != 2 || !answers[0].isError || answers[1].isError || !strings.Contains(answers[1].text, "alive") {
		raw, _ := json.Marshal(answers)
		t.Errorf("answers: %s", raw)
	}
}

// TestAPersonIsToldWhichServersAreMissing: a run without a host says on stderr
// which servers it does without, and why, once; a host has their status.
func TestAPersonIsToldWhichServersAreMissing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	servers := mcpFlag(map[string]any{"gone": map[string]any{"command": "no-such-program"}})
	proc, exit := p.run(testkit.Spec{Args: []string{"-pgo", p.scripted(say("done")), servers}})
	lines := strings.Split(strings.TrimSpace(string(proc.Stderr())), "\n")
	if exit.Code != 0 || len(lines) != 1 || !strings.HasPrefix(lines[0], `warning: MCP server "gone" is failed`) || !strings.Contains(lines[0], "no-such-program") {
		t.Errorf("exit code %d, stderr %q", exit.Code, lines)
	}
	if got := strings.TrimSpace(string(proc.Output())); got != "done" {
		t.Errorf("stdout %q", got)
	}
	h := p.host(t, "native", testkit.Spec{Args: []string{p.scripted(say("done")), servers}})
	h.initialize(nil)
	h.say("one")
	h.result()
	h.end(0)
	if text := h.Stderr(); len(text) > 0 {
		t.Errorf("a host's stderr: %s", text)
	}
}
