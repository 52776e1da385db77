package integration

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// echo says what it was told, with the number of the model's turn.
const echo = `{"use": "always", "emit": [{"text": "{{turn}}: {{user_text}}"}]}`

// line is a line of stdin.
func line(v map[string]any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

// withOptions is a user line with options for its turn.
func withOptions(text string, options map[string]any) string {
	return line(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}, "options": options})
}

// withContent is a user line with content blocks.
func withContent(blocks ...map[string]any) string {
	blocks = append([]map[string]any{}, blocks...)
	return line(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": blocks}})
}

// talk runs one session with these lines on stdin, which then ends, and checks
// every frame.
func (p *place) talk(lines []string, flags ...string) ([]testkit.Frame, testkit.Exit, *testkit.Proc) {
	p.t.Helper()
	proc, exit := p.run(testkit.Spec{Args: append(flags, bothWays...), Stdin: strings.Join(lines, "\n") + "\n"})
	return frames(p.t, proc), exit, proc
}

// texts are the results' texts; of an error, "error: " and its text.
func texts(list []testkit.Frame) []string {
	var out []string
	for _, r := range results(list) {
		if r["is_error"] == true {
			raw, _ := json.Marshal(r["errors"])
			out = append(out, "error: "+string(raw)+r.String("result"))
			continue
		}
		out = append(out, r.String("result"))
	}
	return out
}

// expect compares results' texts; one that begins with "error: " has to be
// contained only.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d: %q", len(got), len(want), got)
	}
	for i, w := range want {
		part, isError := strings.CutPrefix(w, "error: ")
		if isError && strings.HasPrefix(got[i], "error: ") && strings.Contains(got[i], part) {
			continue
		}
		if got[i] != w {
			t.Errorf("result %d is %q, want %q", i, got[i], w)
		}
	}
}

func TestStreamLinesAreAnsweredInTheirOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	list, exit, proc := p.talk([]string{userLine("a"), userLine("b"), userLine("c")}, p.scripted(echo))
	expect(t, texts(list), "1: a", "2: b", "3: c")
	if exit.Code != 0 || proc.Stderr() != "" {
		t.Errorf("exit code %d, stderr %q", exit.Code, proc.Stderr())
	}
	for i, r := range results(list) {
		if n := number(t, r, "result_index"); n != i {
			t.Errorf("result %d has result_index %d", i, n)
		}
	}
}

// TestStreamLinesQueueWhileATurnRuns sends lines while a tool runs: they wait.
func TestStreamLinesQueueWhileATurnRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(`{"when": {"user": "wait"}, "emit": [{"tool": "run_shell_command",
		"input": {"command": "touch started; until test -e go; do sleep 0.05; done"}}]}` + say("ready"))
	proc := p.start(testkit.Spec{Args: append([]string{model, "--permission-mode=yolo"}, bothWays...), HoldStdin: true})
	send := func(text string) {
		if err := proc.Send(userLine(text)); err != nil {
			t.Fatal(err)
		}
	}
	send("wait")
	eventually(t, 20*time.Second, "the tool runs", func() bool { return p.has("started") })
	send("second")
	send("third")
	p.write("go", "")
	from := 0
	for range 3 {
		var err error
		if _, from, err = proc.Await(from, 20*time.Second, isResult); err != nil {
			t.Fatal(err)
		}
	}
	send("fourth") // the session is still there
	if _, _, err := proc.Await(from, 20*time.Second, isResult); err != nil {
		t.Fatal(err)
	}
	proc.CloseStdin()
	exit, err := proc.Wait(10 * time.Second)
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
	}
	expect(t, texts(frames(t, proc)), "ready", "ready", "ready", "ready")
}

func TestStreamOptionsHoldForTheirLineOnly(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other := p.write("other.jsonc", say("the other model"))
	model := p.scripted(`
{"use": "always", "when": {"user": "hi"}, "emit": [{"text": "the first model"}]}
{"use": "always", "when": {"user": {"contains": "write"}}, "emit": [{"tool": "write_file", "input": {"file_path": "{{user_text}}.txt", "content": "x"}}]}
{"use": "always", "when": {"tool": "write_file"}, "emit": [{"text": "wrote"}]}`)
	list, exit, _ := p.talk([]string{
		withOptions("hi", map[string]any{"model": "scripted/" + other}),
		userLine("hi"),
		withOptions("write1", map[string]any{"permissionMode": "acceptEdits"}),
		userLine("write2"),
		withOptions("write3", map[string]any{"maxTurns": 1, "permissionMode": "yolo"}),
		userLine("hi"),
	}, model)
	expect(t, texts(list), "the other model", "the first model", "wrote", "wrote", "error: maximum number of turns (1)", "the first model")
	if exit.Code != 0 {
		t.Errorf("exit code %d: the last result is no error", exit.Code)
	}
	if !p.has("write1.txt") || p.has("write2.txt") || !p.has("write3.txt") {
		t.Errorf("files 1 and 3 should be there, and not 2: %v %v %v", p.has("write1.txt"), p.has("write2.txt"), p.has("write3.txt"))
	}
	var modes []string
	for _, f := range list {
		if f.Kind() == "system/init" {
			modes = append(modes, f.String("permissionMode"))
		}
	}
	if got := strings.Join(modes, " "); got != "default default auto-edit default yolo default" {
		t.Errorf("the modes of the turns are %s", got)
	}
}

func TestStreamOptionsThatMakeNoSenseAreErrorResults(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	list, exit, _ := p.talk([]string{
		withOptions("a", map[string]any{"modle": "x"}),
		withOptions("b", map[string]any{"permissionMode": "careful"}),
		withOptions("c", map[string]any{"maxTurns": 0}),
		withOptions("d", map[string]any{"maxTurns": "many"}),
		withOptions("e", map[string]any{"model": "nosuch/model"}),
		line(map[string]any{"type": "user", "priority": "soon", "message": map[string]any{"role": "user", "content": "f"}}),
		userLine("g"),
	}, p.scripted(echo))
	expect(t, texts(list), "error: modle", "error: careful", "error: maxTurns", "error: maxTurns", "error: nosuch", "error: soon", "1: g")
	if exit.Code != 0 {
		t.Errorf("exit code %d", exit.Code)
	}
}

func TestStreamImagesReachTheModel(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		url, log := p.serve(say("a dot"))
		tap := newTap(t, url)
		// a PNG of one pixel
		png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
		if _, err := base64.StdEncoding.DecodeString(png); err != nil {
			t.Fatal(err)
		}
		proc, exit := p.run(testkit.Spec{
			Args: append([]string{"--model=" + pr.model}, bothWays...), Env: pr.env(tap.url),
			Stdin: withContent(
				map[string]any{"type": "text", "text": "what is this?"},
				map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": png}},
			),
		})
		expect(t, texts(frames(t, proc)), "a dot")
		if exit.Code != 0 {
			t.Errorf("exit code %d: %s", exit.Code, proc.Stderr())
		}
		refused(t, log)
		mentions(t, "the request", strings.Join(tap.all(), "\n"), png[:len(png)-2], "image/png", "what is this?")
	})
}

func TestStreamBlocksThatMakeNoSenseAreErrorResults(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	image := func(source map[string]any) map[string]any { return map[string]any{"type": "image", "source": source} }
	list, _, _ := p.talk([]string{
		withContent(map[string]any{"type": "tool_result", "tool_use_id": "call_9", "content": "x"}),
		withContent(image(map[string]any{"type": "base64", "media_type": "image/png", "data": "%%%"})),
		withContent(image(map[string]any{"type": "base64", "media_type": "text/html", "data": "aGk="})),
		withContent(map[string]any{"type": "hologram"}),
		withContent(),
		userLine("   "),
		userLine("good"),
	}, p.scripted(echo))
	expect(t, texts(list), "error: call_9", "error: image data", "error: image/...", "error: hologram", "error: empty", "error: empty", "1: good")
}

func TestStreamEndOfInputFinishesTheTurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(shell(1, "sleep 0.3; echo slept") + `{"emit": [{"text": "{{last_tool_result}}"}]}`)
	list, exit, proc := p.talk([]string{userLine("go")}, model, "--permission-mode=yolo")
	if got := texts(list); len(got) != 1 || !strings.HasPrefix(got[0], "slept") || exit.Code != 0 {
		t.Errorf("results %q, exit code %d: %s", got, exit.Code, proc.Stderr())
	}
}

func TestStreamWithoutLinesEndsQuietly(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	proc, exit := p.run(testkit.Spec{Args: append([]string{p.scripted(echo)}, bothWays...)})
	if exit.Code != 0 || proc.Output() != "" || proc.Stderr() != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", exit.Code, proc.Output(), proc.Stderr())
	}
}

func TestStreamControlRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	list, exit, _ := p.talk([]string{
		line(map[string]any{"type": "control_request", "request_id": "r1", "request": map[string]any{"subtype": "no_such_thing"}}),
		userLine("go"),
		line(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success", "request_id": "nobody asked"}}),
		line(map[string]any{"type": "control_cancel_request", "request_id": "r1"}),
		line(map[string]any{"type": "keep_alive"}),
	}, p.scripted(echo))
	expect(t, texts(list), "1: go")
	var answers []string
	for _, f := range list {
		if f.Kind() == "control_response" {
			answers = append(answers, f.String("response.subtype")+" "+f.String("response.request_id")+" "+f.String("response.error"))
		}
	}
	if len(answers) != 1 || !strings.HasPrefix(answers[0], "error r1 ") || !strings.Contains(answers[0], "no_such_thing") {
		t.Errorf("answers: %q", answers)
	}
	if exit.Code != 0 {
		t.Errorf("exit code %d", exit.Code)
	}
}

func TestStreamMalformedLineIsAnErrorResultAndTheSessionGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	list, exit, proc := p.talk([]string{
		userLine("a"), "{\"type\":\"user\",", userLine("b"), `[1,2]`, `{"type":"wish"}`, `{"no":"type"}`, userLine("c"),
	}, p.scripted(echo))
	expect(t, texts(list), "1: a", "error: input", "2: b", "error: input", "error: wish", "error: input", "3: c")
	if exit.Code != 42 {
		t.Errorf("exit code %d, want 42; stderr: %s", exit.Code, proc.Stderr())
	}
}

func TestStreamBlankLinesAndLineEndsAreNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	list, exit, _ := p.talk([]string{"", "  \t", "\r", userLine("a") + "\r", "", userLine("b")}, p.scripted(echo))
	expect(t, texts(list), "1: a", "2: b")
	if exit.Code != 0 {
		t.Errorf("exit code %d", exit.Code)
	}
}

func TestStreamUUIDsNameTheirResults(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const id = "3b241101-e2bb-4255-8caf-4136c566a962"
	list, _, _ := p.talk([]string{line(map[string]any{
		"type": "user", "uuid": id, "message": map[string]any{"role": "user", "content": "a"},
	})}, p.scripted(echo))
	if got := results(list)[0].String("user_message_uuid"); got != id {
		t.Errorf("user_message_uuid is %q", got)
	}
}

func TestStreamLinesThatAreNoQuestionAreKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(`{"when": {"request": 1, "user": "what?"}, "emit": [{"text": "one request"}]}`)
	list, _, _ := p.talk([]string{
		line(map[string]any{"type": "user", "shouldQuery": false, "message": map[string]any{"role": "user", "content": "know this"}}),
		userLine("what?"),
	}, model)
	expect(t, texts(list), "one request")
}

func TestStreamOtherOutputsHaveOneResultPerLine(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	model := p.scripted(echo)
	in := userLine("a") + "\n" + userLine("b") + "\n"
	proc, exit := p.run(testkit.Spec{Args: []string{model, "--input-format=stream-json"}, Stdin: in})
	if proc.Output() != "1: a\n2: b\n" || exit.Code != 0 {
		t.Errorf("text: %q, exit code %d", proc.Output(), exit.Code)
	}
	proc, exit = p.run(testkit.Spec{Args: []string{model, "--input-format=stream-json", "-ojson"}, Stdin: in})
	expect(t, texts(frames(t, proc)), "1: a", "2: b")
	if exit.Code != 0 {
		t.Errorf("exit code %d", exit.Code)
	}
}
