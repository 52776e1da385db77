package sdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// entry is a line of a recording of qwen-code.
type entry struct {
	Dir    string          `json:"dir"` // spawn, in, in-raw, out, eof, kill, guard, exit
	Argv   []string        `json:"argv"`
	Msg    json.RawMessage `json:"msg"`
	Raw    string          `json:"raw"`
	Sig    string          `json:"sig"`
	Code   *int            `json:"code"`
	Signal *string         `json:"signal"`

	frame  testkit.Frame // of in and out
	listed bool          // a frame of a list: nothing is waited for
}

// recording is a conversation with qwen-code.
type recording struct {
	name    string
	entries []entry
}

func readRecording(t testing.TB, name string) recording {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "qwen", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := recording{name: name}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(quickly.ReplaceAll(lines.Bytes(), []byte("sleep 0.2")), &e); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e.Dir == "in" || e.Dir == "out" {
			frames, err := framesOf(e.Msg)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, f := range frames {
				r.entries = append(r.entries, entry{Dir: e.Dir, frame: f, listed: len(frames) > 1})
			}
			continue
		}
		r.entries = append(r.entries, e)
	}
	return r
}

// quickly finds what a command waits for in the recording, longer than a test may.
var quickly = regexp.MustCompile(`\bsleep 20\b`)

// framesOf are the frames of a line: one, or all of a run in a list.
func framesOf(line []byte) ([]testkit.Frame, error) {
	if bytes.HasPrefix(line, []byte("[")) {
		var list []testkit.Frame
		return list, json.Unmarshal(line, &list)
	}
	var f testkit.Frame
	return []testkit.Frame{f}, json.Unmarshal(line, &f)
}

// outs are the frames that qwen-code wrote.
func (r recording) outs() []testkit.Frame {
	var out []testkit.Frame
	for _, e := range r.entries {
		if e.Dir == "out" && e.frame != nil {
			out = append(out, e.frame)
		}
	}
	return out
}

// kindOf is what a frame is, as far as it is compared: its type and what
// distinguishes it within that.
func kindOf(f testkit.Frame) string {
	for _, path := range []string{"event.type", "request.subtype", "response.subtype", "subtype"} {
		if s := f.String(path); s != "" {
			return f.String("type") + "/" + s
		}
	}
	return f.String("type")
}

// aside is traffic that is answered as it comes and not compared in order: the
// handshakes with MCP servers.
func aside(f testkit.Frame) bool { return f.String("request.subtype") == "mcp_message" }

// player plays a recording against the program: the host's lines go in when
// what came before them has come out.
type player struct {
	t    *testing.T
	rec  recording
	dir  string
	proc *testkit.Proc

	counted map[string]int  // of the recording's lines so far, by kind
	asides  map[string]bool // answered, by id
	watched bool            // streams only for the player, which must know how far a text is
	missing []string        // kinds that were waited for in vain
}

// patience is how long a line that the recording has is waited for.
const patience = 30 * time.Second

// play plays the recording and returns the program's frames and its exit code.
func (p *player) play(spec testkit.Spec) ([]testkit.Frame, string) {
	proc, err := testkit.Start(spec)
	if err != nil {
		p.t.Fatal(err)
	}
	p.proc, p.counted, p.asides = proc, map[string]int{}, map[string]bool{}
	p.t.Cleanup(func() { proc.Signal(syscall.SIGKILL) })
	var last testkit.Frame
	for i, e := range p.rec.entries {
		switch e.Dir {
		case "out":
			if !e.listed && kindOf(e.frame) != "stream_event/goal_state" && e.frame.String("error.message") != "CANCELLED" {
				p.counted[waitKind(e.frame)]++
				last = e.frame
			}
			continue
		case "spawn", "exit", "guard":
			continue
		}
		if last != nil {
			p.await(last)
			last = nil
		}
		if text := p.rec.cutText(i); text != "" {
			p.awaitText(text)
		}
		switch e.Dir {
		case "in":
			p.send(e.frame)
		case "in-raw":
			_, _ = proc.Write([]byte(e.Raw))
		case "kill":
			proc.Signal(map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM}[e.Sig])
		case "eof":
			proc.CloseStdin()
		}
	}
	if last != nil && lastUser(p.rec, 0) != `""` { // who asked nothing waits for nothing
		p.await(last)
	}
	proc.CloseStdin()
	exit, err := proc.Wait(60 * time.Second)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, proc.Output())
	}
	var frames []testkit.Frame
	for _, l := range proc.Lines() {
		list, err := framesOf(l.Text)
		if err != nil {
			p.t.Fatalf("%v: %s", err, l.Text)
		}
		frames = append(frames, list...)
	}
	if p.watched {
		frames = slices.DeleteFunc(frames, func(f testkit.Frame) bool { return f.String("type") == "stream_event" })
	}
	return frames, fmt.Sprint(exit.Code)
}

// await waits for as many lines of the kind of f as the recording has so far.
// An answer is waited for by its id, a question by that of its call. (That a
// goal is idle, and that a sub-agent was cancelled, we never say.) What has not
// come when one turn more than the recording's so far is over never comes.
func (p *player) await(f testkit.Frame) {
	p.t.Helper()
	kind, want := waitKind(f), p.counted[waitKind(f)]
	if aside(f) {
		return
	}
	id, call := f.String("response.request_id"), f.String("request.tool_use_id")
	count, results, over := 0, 0, false
	_, _, err := p.proc.Await(0, patience, func(l testkit.Line) bool {
		var got testkit.Frame
		if json.Unmarshal(l.Text, &got) != nil {
			return false
		}
		p.answerAside(got)
		if got.String("type") == "result" {
			results++
		}
		over = results > p.counted["result"]
		switch {
		case over:
			return true
		case id != "":
			return got.String("response.request_id") == id
		case call != "":
			return sameCall(got, f)
		case waitKind(got) == kind:
			count++
		}
		return count == want
	})
	if err != nil || over {
		p.missing = append(p.missing, kind)
	}
}

// cutText is the text that is under way when entry i cuts its turn off: what
// comes of the turn after it ends with it. "" if entry i doesn't do that.
func (r recording) cutText(i int) string {
	if e := r.entries[i]; e.Dir != "kill" && e.frame.String("request.subtype") != "interrupt" {
		return ""
	}
	for _, e := range r.entries[i:] {
		switch {
		case e.Dir != "out":
		case e.frame.String("type") == "result", kindOf(e.frame) == "system/init":
			return ""
		case e.frame.String("type") == "assistant":
			blocks, _ := e.frame.Get("message.content")
			block, _ := blocks.([]any)[0].(map[string]any)
			return testkit.Frame(block).String("text")
		}
	}
	return ""
}

// awaitText waits until a text has been streamed.
func (p *player) awaitText(text string) {
	said := ""
	_, _, err := p.proc.Await(0, patience, func(l testkit.Line) bool {
		var got testkit.Frame
		if json.Unmarshal(l.Text, &got) == nil {
			said += got.String("event.delta.text")
		}
		return strings.HasSuffix(said, text)
	})
	if err != nil {
		p.missing = append(p.missing, "the text "+text)
	}
}

// waitKind is what a frame is waited for as: a result is one, whatever it says.
func waitKind(f testkit.Frame) string {
	if f.String("type") == "result" {
		return "result"
	}
	return kindOf(f)
}

// answerAside answers a message for an MCP server as the recorded server did,
// and a question about a call that nobody was asked about there with a no.
func (p *player) answerAside(got testkit.Frame) {
	id := got.String("request_id")
	if p.asides[id] {
		return
	}
	if got.String("request.subtype") == "can_use_tool" && !slices.ContainsFunc(p.rec.outs(), func(f testkit.Frame) bool { return sameCall(f, got) }) {
		p.asides[id] = true
		_ = p.proc.Send(`{"type":"control_response","response":{"subtype":"success","request_id":"` + id + `","response":{"behavior":"deny","message":"nobody was asked in the recording"}}}`)
	}
	if !aside(got) {
		return
	}
	p.asides[id] = true
	method := got.String("request.message.method")
	reply := map[string]any{"jsonrpc": "2.0", "error": map[string]any{"code": -32601, "message": "Method not found"}}
	for _, e := range p.rec.entries {
		if e.Dir == "out" && aside(e.frame) && e.frame.String("request.message.method") == method {
			for _, in := range p.rec.entries {
				if in.Dir == "in" && in.frame.String("response.request_id") == e.frame.String("request_id") {
					if m, ok := in.frame.Get("response.response.mcp_response"); ok {
						reply = m.(map[string]any)
					}
				}
			}
		}
	}
	reply["id"], _ = got.Get("request.message.id")
	if strings.HasPrefix(method, "notifications/") {
		reply["id"] = 0
	}
	line, _ := json.Marshal(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": id, "response": map[string]any{"mcp_response": reply}}})
	_ = p.proc.Send(string(line))
}

// send writes a line of the host. The answer to a question of the program is
// sent under the id of our question.
func (p *player) send(f testkit.Frame) {
	raw, _ := json.Marshal(f)
	if recorded := f.String("response.request_id"); recorded != "" {
		ours, ok := p.question(recorded)
		if !ok {
			return // an aside, or a question that we did not ask
		}
		raw = bytes.ReplaceAll(raw, []byte(recorded), []byte(ours))
	}
	raw = bytes.ReplaceAll(raw, []byte(`/w/`), []byte(p.dir+"/"))
	// It may have ended, as the recorded one may have: what comes out says so.
	_ = p.proc.Send(string(raw))
}

// question finds our question for one of the recording: the one about the same
// call.
func (p *player) question(recorded string) (string, bool) {
	for _, e := range p.rec.entries {
		if e.Dir != "out" || e.frame.String("request_id") != recorded {
			continue
		}
		for _, l := range p.proc.Lines() {
			var f testkit.Frame
			if json.Unmarshal(l.Text, &f) == nil && sameCall(f, e.frame) {
				return f.String("request_id"), true
			}
		}
	}
	return "", false
}

// sameCall reports whether two frames ask about the same call.
func sameCall(a, b testkit.Frame) bool {
	return a.String("request.subtype") == "can_use_tool" && a.String("request.tool_use_id") == b.String("request.tool_use_id")
}

// modelScript makes the model say what it said in the recording: a step for
// each of its answers.
func (r recording) modelScript(dir string) string {
	var sb strings.Builder
	var step []any
	when := "" // of the first answer of a turn: its user's text
	end := func(more ...any) {
		if step = append(step, more...); len(step) == 0 {
			return
		}
		for _, line := range step {
			raw, _ := json.Marshal(line)
			if sb.Len() == 0 || strings.HasSuffix(sb.String(), "}\n") {
				sb.WriteString(`{` + when + `"emit": [`)
				when = ""
			}
			sb.Write(raw)
			sb.WriteString(", ")
		}
		sb.WriteString("]}\n")
		step = nil
	}
	cut := r.cutTurns()
	turn := -1
	outs := r.outs()
	for i, f := range outs {
		if f["parent_tool_use_id"] != nil {
			continue
		}
		switch kindOf(f) {
		case "system/init":
			turn++
			if when = ""; lastUser(r, turn) != `""` {
				when = `"when": {"user": ` + lastUser(r, turn) + `}, `
			}
		case "assistant":
			blocks, usage, whole := r.said(f)
			if noModel(outs, i) {
				continue
			}
			if strings.HasPrefix(fmt.Sprint(blocks), "[map[status:") {
				sb.WriteString(`{"use": "always", "when": {"user": ` + lastUser(r, turn) + `}, "emit": [{"status": 401, "message": "mock error 401"}]}` + "\n")
				continue
			}
			step = append(step, blocks...)
			if whole {
				end(map[string]any{"usage": usage})
			} else if cut[turn] && lastOfTurn(outs, i) {
				end(map[string]any{"fault": "stall"})
			}
		}
	}
	end()
	if sb.Len() == 0 {
		return `{"use": "always", "emit": [{"text": "nothing was asked in the recording"}]}`
	}
	return strings.ReplaceAll(sb.String(), `/w/`, dir+"/")
}

// lastUser is the user's text of a turn, as a JSON string.
func lastUser(r recording, turn int) string {
	for _, e := range r.entries {
		if e.Dir == "in" && e.frame.String("type") == "user" {
			if turn == 0 {
				raw, _ := json.Marshal(e.frame.String("message.content"))
				return string(raw)
			}
			turn--
		}
	}
	return `""`
}

// said are the emits for an assistant frame, its usage, and whether it is the
// last of its answer.
func (r recording) said(f testkit.Frame) (blocks []any, usage map[string]any, whole bool) {
	content, _ := f.Get("message.content")
	list, _ := content.([]any)
	for _, b := range list {
		m := testkit.Frame(b.(map[string]any))
		switch m.String("type") {
		case "text":
			if text := m.String("text"); strings.HasPrefix(text, "[API Error: 401") {
				blocks = append(blocks, map[string]any{"status": 401})
			} else {
				blocks = append(blocks, map[string]any{"text": deltas(r, text), "literal": true})
			}
		case "thinking":
			blocks = append(blocks, map[string]any{"thinking": deltas(r, m.String("thinking")), "literal": true})
		case "tool_use":
			blocks = append(blocks, map[string]any{"tool": m["name"], "input": m["input"], "id": m["id"], "literal": true})
		}
	}
	number := func(path string) float64 { v, _ := f.Get("message.usage." + path); n, _ := v.(float64); return n }
	in, out, cached := number("input_tokens"), number("output_tokens"), number("cache_read_input_tokens")
	return blocks, map[string]any{"input": in - cached, "output": out, "cache_read": cached}, in+out > 0
}

// deltas cuts a text as the recording has it in its deltas, if it has them.
func deltas(r recording, text string) []string {
	var run []string
	for _, f := range r.outs() {
		switch f.String("event.type") {
		case "content_block_start":
			run = nil
		case "content_block_delta":
			run = append(run, f.String("event.delta.text")+f.String("event.delta.thinking"))
			if strings.Join(run, "") == text {
				return run
			}
		}
	}
	return []string{text}
}

// cutTurns says of which turns the model's answer never ended: those that were
// interrupted or killed.
func (r recording) cutTurns() map[int]bool {
	cut := map[int]bool{}
	turn := -1
	for _, e := range r.entries {
		switch {
		case e.Dir == "out" && kindOf(e.frame) == "system/init":
			turn++
		case e.Dir == "in" && e.frame.String("request.subtype") == "interrupt", e.Dir == "kill":
			cut[max(turn, 0)] = true
		}
	}
	return cut
}

// lastOfTurn reports whether no assistant frame follows in the turn.
func lastOfTurn(outs []testkit.Frame, i int) bool {
	for _, f := range outs[i+1:] {
		switch kindOf(f) {
		case "assistant":
			return false
		case "system/init":
			return true
		}
	}
	return true
}

// noModel reports whether an assistant frame is what a command says: its turn
// asked no model.
func noModel(outs []testkit.Frame, i int) bool {
	none := false
	for _, f := range outs[i+1:] {
		switch kindOf(f) {
		case "system/init":
			return none
		case "result/success", "result/error_during_execution": // the last one: a sub-agent may have one, too
			n, _ := f["num_turns"].(float64)
			none = n == 0
		}
	}
	return none
}

// together are recordings that go on from the one before, in one home.
var together = []string{"resume1", "resume2", "resume3", "resume4", "resume5"}

// launcher are recordings in which the signal hit only a launcher, a process
// that ours has no counterpart of: the same signal to the program itself is
// played from the recordings named -inner.
var launcher = []string{"sigint", "sigterm"}

func TestReplays(t *testing.T) {
	t.Parallel()
	known := readDifferences(t)
	files, err := filepath.Glob("testdata/qwen/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("each", func(t *testing.T) {
		for _, f := range files {
			name := strings.TrimSuffix(filepath.Base(f), ".jsonl")
			if slices.Contains(together[1:], name) || slices.Contains(launcher, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				names := []string{name}
				if name == together[0] {
					names = together
				}
				home := t.TempDir()
				for _, n := range names {
					replay(t, known, n, home)
				}
			})
		}
	})
	known.allUsed(t, files)
}

// replay plays one recording and demands that every difference is known.
func replay(t *testing.T, known *differences, name, root string) {
	t.Helper()
	rec := readRecording(t, name)
	dir, home := filepath.Join(root, "work"), filepath.Join(root, "home")
	for _, d := range []string{dir, home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := rec.modelScript(dir)
	if own, err := os.ReadFile(filepath.Join("testdata", "qwen", name+".script.jsonc")); err == nil {
		script = strings.ReplaceAll(string(own), "/w/", dir+"/")
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + root, "LANG=C.UTF-8"}
	url := serveModel(t, root, env, script)
	p := &player{t: t, rec: rec, dir: dir}
	spec := testkit.Spec{Path: agentPath(t), Dir: dir, HoldStdin: true, Env: append(slices.Clone(env), "OPENAI_BASE_URL="+url+"/v1", "OPENAI_MODEL=m")}
	if name != "noauth" {
		spec.Env = append(spec.Env, "OPENAI_API_KEY=test-key")
	}
	spec.Args = slices.Clone(rec.entries[0].Argv)
	if strings.HasPrefix(name, "prompt-flag") {
		spec.Args = append(spec.Args, "--dialect=qwen") // nothing else says it
	}
	const partial = "--include-partial-messages"
	if len(rec.cutTurns()) > 0 && !slices.Contains(spec.Args, partial) {
		spec.Args, p.watched = append(spec.Args, partial), true
	}
	frames, exit := p.play(spec)
	var found []string
	for _, kind := range p.missing {
		found = append(found, "never "+kind)
	}
	found = append(found, compare(rec.outs(), frames, dir)...)
	if want := rec.exit(); want != "" && exit != want {
		found = append(found, fmt.Sprintf("exit: %s, ours %s", want, exit))
	}
	unknown := known.unknown(name, found)
	for _, d := range unknown {
		t.Errorf("%s: %s", name, d)
	}
	if len(unknown) > 0 && testing.Verbose() {
		t.Logf("script:\n%s\nours:\n%s\nstderr: %s", script, p.proc.Output(), p.proc.Stderr())
	}
}

// exit is the recorded exit code, "" if the program was killed.
func (r recording) exit() string {
	for _, e := range r.entries {
		if e.Dir == "exit" && e.Code != nil {
			return fmt.Sprint(*e.Code)
		}
	}
	return ""
}
