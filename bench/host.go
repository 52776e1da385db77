package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// dialect is a protocol that hosts speak, with the flags and variables that
// their SDKs give.
type dialect struct {
	name string
	args []string
	env  []string
	init string // the request that initializes
}

var dialects = []dialect{
	{"native", nil, nil, `{"subtype":"initialize","hooks":null}`},
	{
		"claude", []string{"--verbose", "--system-prompt", ""}, []string{"CLAUDE_CODE_ENTRYPOINT=sdk-py", "CLAUDE_AGENT_SDK_VERSION=0.1.0"},
		`{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0"]}]},"agents":{"a":{"description":"d","prompt":"p"}}}`,
	},
	{"qwen", []string{"--channel=SDK"}, nil, `{"subtype":"initialize","hooks":null,"agents":[]}`},
}

// hosted is the program as a host spawns it, with its stdin open.
func (b *bench) hosted(d dialect, p provider, args ...string) testkit.Spec {
	all := slices.Concat([]string{"--model", p.model, "--input-format", "stream-json", "--output-format", "stream-json"}, d.args, args)
	s := b.spec(b.agent, slices.Concat(b.env, p.env(b.url), d.env), all...)
	s.HoldStdin = true
	return s
}

// echo is the floor of what a host drives: a bare JSON echo that can also
// stream an answer.
func (b *bench) echo(p provider) testkit.Spec {
	s := b.spec(b.floor("stream"), b.env, p.name, b.url, "--stdin")
	s.HoldStdin = true
	return s
}

// talk is a conversation with a program that a host drives.
type talk struct {
	proc *testkit.Proc
	at   int // lines that were looked at
	ids  int
}

func newTalk(s testkit.Spec) (*talk, error) {
	proc, err := testkit.Start(s)
	return &talk{proc: proc}, err
}

// end closes stdin and waits for a good end.
func (t *talk) end(s testkit.Spec) error {
	t.proc.CloseStdin()
	exit, err := t.proc.Wait(limit)
	if err != nil {
		return err
	}
	return sample{proc: t.proc, Exit: exit}.check(s)
}

// await waits for the next line that has text in it.
func (t *talk) await(text string) ([]byte, error) {
	want := []byte(text)
	line, at, err := t.proc.Await(t.at, limit, func(l testkit.Line) bool { return bytes.Contains(l.Text, want) })
	t.at = at
	if err != nil {
		return nil, fmt.Errorf("waiting for %s: %w", text, err)
	}
	return line.Text, nil
}

// user sends a user's text.
func (t *talk) user(text string) error {
	return t.proc.Send(fmt.Sprintf(`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`, text))
}

// trip sends a request and returns the time until its answer is read.
func (t *talk) trip(request string) (time.Duration, error) {
	t.ids++
	id := fmt.Sprintf("req_%d", t.ids)
	line := fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":%s}`, id, request)
	begin := time.Now()
	if err := t.proc.Send(line); err != nil {
		return 0, err
	}
	got, err := t.await(`{"type":"control_response"`)
	took := time.Since(begin)
	if err == nil && !(bytes.Contains(got, []byte(id)) && bytes.Contains(got, []byte(`"success"`))) {
		err = fmt.Errorf("the answer to %s is %.300s", line, got)
	}
	return took, err
}

// initialize measures the time from the spawn until a host's first request is
// answered. A server that never answers must not delay it.
func initialize(b *bench) ([]row, error) {
	p := providers[1]
	var rows []row
	measure := func(name string, d dialect, args ...string) error {
		var ours, floor []time.Duration
		for i := range b.runs(25) + 1 {
			a, err := b.initOnce(b.hosted(d, p, args...), d.init)
			if err != nil {
				return err
			}
			f, err := b.initOnce(b.echo(p), d.init)
			if err != nil {
				return err
			}
			if i > 0 { // the first does not count
				ours, floor = append(ours, a), append(floor, f)
			}
		}
		r := against("spawn to initialize answered, "+name, ours, floor, 0)
		r.target, r.verdict = "<= 15 ms", judge(median(ours) <= 15*time.Millisecond)
		rows = append(rows, r)
		return nil
	}
	for _, d := range dialects {
		if err := measure(d.name, d); err != nil {
			return nil, err
		}
	}
	err := measure("silent server", dialects[0], "--mcp-config", `{"mcpServers":{"s":{"command":"sleep","args":["60"]}}}`)
	return rows, err
}

func (b *bench) initOnce(s testkit.Spec, request string) (time.Duration, error) {
	begin := time.Now()
	t, err := newTalk(s)
	if err != nil {
		return 0, err
	}
	if _, err := t.trip(request); err != nil {
		return 0, fmt.Errorf("%w; stderr: %s", err, t.proc.Stderr())
	}
	took := time.Since(begin)
	return took, t.end(s)
}

// plain is the request that round trips are measured with: there is little to
// do for it.
const plain = `{"subtype":"mcp_server_status"}`

// others show what requests cost that there is more to do for: two lines that
// leave, a long answer, a decision about a command.
var others = []struct{ name, body string }{
	{"set_permission_mode", `{"subtype":"set_permission_mode","mode":"default"}`},
	{"supported_commands", `{"subtype":"supported_commands"}`},
	{"can_use_tool", `{"subtype":"can_use_tool","tool_name":"run_shell_command","input":{"command":"git status"},"tool_use_id":"t1"}`},
}

// control measures round trips over stdin and stdout beside a bare JSON echo,
// when nothing else goes on and while an answer streams.
func control(b *bench) ([]row, error) {
	p := providers[1]
	specs := [2]testkit.Spec{b.hosted(dialects[0], p, "--include-partial-messages"), b.echo(p)}
	var talks [2]*talk
	for i, s := range specs {
		t, err := newTalk(s)
		if err != nil {
			return nil, err
		}
		talks[i] = t
		if _, err := t.trip(dialects[0].init); err != nil {
			return nil, err
		}
	}
	idle, err := idleTrips(talks, b.runs(1000))
	if err != nil {
		return nil, err
	}
	busy, err := busyTrips(talks, b.runs(20))
	if err != nil {
		return nil, err
	}
	for i, t := range talks {
		if err := t.end(specs[i]); err != nil {
			return nil, err
		}
	}
	return append(idle, busy...), nil
}

// idleTrips has the two take turns, trip by trip.
func idleTrips(talks [2]*talk, n int) ([]row, error) {
	took, err := alternate(talks, plain, 3*n)
	if err != nil {
		return nil, err
	}
	rows := tripRows("control round trip, idle", took)
	for _, r := range others {
		if took, err = alternate(talks, r.body, n); err != nil {
			return nil, err
		}
		rows = append(rows, micros("  of "+r.name+", p50", took, 50, 0))
	}
	return rows, nil
}

func alternate(talks [2]*talk, request string, n int) (took [2][]time.Duration, err error) {
	for range n {
		for i, t := range talks {
			d, err := t.trip(request)
			if err != nil {
				return took, err
			}
			took[i] = append(took[i], d)
		}
	}
	return took, nil
}

// busyTrips makes round trips while 20,000 deltas stream, the two in turns.
func busyTrips(talks [2]*talk, streams int) ([]row, error) {
	var all [2][]time.Duration
	for range streams {
		for i, t := range talks {
			took, err := t.tripsInStream()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], took...)
		}
	}
	rows := tripRows("control round trip in 20,000 deltas", all)
	return append(rows, row{name: "  round trips that were made", figure: fmt.Sprint(len(all[0])), floor: fmt.Sprint(len(all[1]))}), nil
}

// tripsInStream asks one thing after the other from the first delta on to the
// last. Trips whose answer came when the stream was over do not count.
func (t *talk) tripsInStream() ([]time.Duration, error) {
	if err := t.user(streamPrompt(mainCount)); err != nil {
		return nil, err
	}
	if _, err := t.await("content_block_delta"); err != nil {
		return nil, err
	}
	var out []time.Duration
	for {
		from := t.at
		took, err := t.trip(plain)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(t.proc.Lines()[from:t.at], isResult) {
			return out, nil
		}
		out = append(out, took)
	}
}

func isResult(l testkit.Line) bool { return bytes.HasPrefix(l.Text, []byte(`{"type":"result"`)) }

// tripRows are the middle and the slowest hundredth of ours and the floor's.
func tripRows(name string, took [2][]time.Duration) []row {
	return []row{micros(name+", p50", took, 50, 3), micros(name+", p99", took, 99, 3)}
}

func micros(name string, took [2][]time.Duration, percent int, limit float64) row {
	a, f := percentile(took[0], percent), percentile(took[1], percent)
	r := row{name: name, figure: us(a), floor: us(f)}
	if f == 0 {
		return r
	}
	ratio := float64(a) / float64(f)
	r.ratio = fmt.Sprintf("%.2f", ratio)
	if limit > 0 {
		r.target, r.verdict = fmt.Sprintf("<= %gx", limit), judge(ratio <= limit)
	}
	return r
}

func us(d time.Duration) string { return fmt.Sprintf("%.1f us", float64(d)/1e3) }

// memoryFolder is a folder whose files are in memory, where making a file
// durable costs nothing; "" where there is none.
func memoryFolder() string {
	const dir = "/dev/shm"
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return ""
	}
	return dir
}

const userTurns = 20

// turns measures what a host's turns cost in one process: the time from the end
// of the model's answer to the arrival of the next request, when the host sends
// the next text as soon as it reads the result. The transcript lies in memory,
// so that no disk is in it.
func turns(b *bench) ([]row, error) {
	home, err := os.MkdirTemp(memoryFolder(), "agent-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	var rows []row
	for _, p := range providers {
		for _, d := range dialects {
			if d.name != "native" && p.name != "anthropic" {
				continue
			}
			s := b.hosted(d, p)
			s.Env = append(s.Env, "AGENT_HOME="+home, "CLAUDE_CONFIG_DIR="+home)
			ours, floor, err := b.turnSeries(s, b.echo(p), d.init)
			if err != nil {
				return nil, err
			}
			r := against(fmt.Sprintf("time per turn of %d, %s, %s", userTurns, d.name, p.name), ours, floor, 0)
			r.target, r.verdict = "<= 2 ms", judge(median(ours) <= 2*time.Millisecond)
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (b *bench) turnSeries(ours, floor testkit.Spec, init string) (a, f []time.Duration, err error) {
	for range b.runs(10) {
		g, err := b.turnGaps(ours, init, userTurns)
		if err != nil {
			return nil, nil, err
		}
		a = append(a, g...)
		if g, err = b.turnGaps(floor, init, userTurns); err != nil {
			return nil, nil, err
		}
		f = append(f, g...)
	}
	return a, f, nil
}

// turnGaps runs n turns in one process.
func (b *bench) turnGaps(s testkit.Spec, init string, n int) ([]time.Duration, error) {
	if err := b.log.skip(); err != nil {
		return nil, err
	}
	t, err := newTalk(s)
	if err != nil {
		return nil, err
	}
	if _, err := t.trip(init); err != nil {
		return nil, err
	}
	for range n {
		if err := t.user("hi"); err != nil {
			return nil, err
		}
		if _, err := t.await(`{"type":"result"`); err != nil {
			return nil, err
		}
	}
	if err := t.end(s); err != nil {
		return nil, err
	}
	list, err := b.log.next(n)
	if err != nil {
		return nil, err
	}
	if len(list) != n {
		return nil, fmt.Errorf("%d requests instead of %d", len(list), n)
	}
	var out []time.Duration
	for i := range n - 1 {
		out = append(out, list[i+1].Time.Sub(list[i].end()))
	}
	return out, nil
}
