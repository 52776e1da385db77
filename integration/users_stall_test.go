package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// TestUsersRow07_AReaderThatStallsStopsNothing: while nobody reads stdout,
// requests are taken, memory stays bounded, and an interrupt ends a command and
// an answer that floods at once. When somebody reads again, all that was asked
// has its one answer. With AGENT_SOAK the reader stalls for ten minutes.
func TestUsersRow07_AReaderThatStallsStopsNothing(t *testing.T) {
	t.Parallel()
	onLinux(t)
	stalled := 2 * time.Second
	if soak() {
		stalled = 10 * time.Minute
	}
	p, mark, model := newPlace(t), mark(), newFlood(t)
	proc := p.start(testkit.Spec{
		Args: append([]string{"--permission-mode=yolo", "--include-partial-messages", "--model=openai/gpt-test"}, bothWays...),
		Env:  append(providers[1].env(model.url), mark), HoldStdin: true, NoRead: true,
	})
	peak := peakMemory(proc)
	// Sending blocks if the program no longer reads.
	late := time.AfterFunc(stalled+time.Minute, func() { proc.Signal(syscall.SIGKILL) })
	defer late.Stop()
	asked := 0
	send := func(text string) {
		t.Helper()
		if err := proc.Send(text); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(subtype string) {
		t.Helper()
		asked++
		send(line(map[string]any{"type": "control_request", "request_id": fmt.Sprint("h", asked), "request": map[string]any{"subtype": subtype}}))
	}

	for range 2000 { // more answers than a pipe holds
		ask("heartbeat")
	}
	send(userLine("work"))
	eventually(t, patience, "the command runs", func() bool { return p.has("started") })
	command := filepath.Join("/proc", strings.TrimSpace(p.content("pid")))
	ask("interrupt")
	eventually(t, 2*time.Second, "the command is gone", func() bool { _, err := os.Stat(command); return err != nil })

	send(userLine("flood"))
	within(t, patience, "the model is asked", model.begun)
	over := time.After(stalled)
	for stalling := true; stalling; {
		select {
		case <-over:
			stalling = false
		case <-time.After(50 * time.Millisecond):
			ask("heartbeat")
		}
	}
	ask("interrupt")
	within(t, 2*time.Second, "the connection to the model is closed", model.gone)
	if memory := peak() >> 20; memory > 150 {
		t.Errorf("%d MB of memory, want at most 150", memory)
	}

	proc.Read(0)
	proc.CloseStdin()
	exit, err := proc.Wait(time.Minute)
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
	}
	list := frames(t, proc)
	answers := map[string]int{}
	for _, f := range list {
		if id := f.String("response.request_id"); id != "" {
			answers[id]++
			if f.String("response.subtype") != "success" {
				t.Errorf("the response to %s: %v", id, f)
			}
		}
	}
	for i := range asked {
		if id := fmt.Sprint("h", i+1); answers[id] != 1 {
			t.Errorf("%d responses to %s", answers[id], id)
		}
	}
	if n := len(results(list)); n != 2 || len(answers) != asked {
		t.Errorf("%d results and %d responses, want 2 and %d", n, len(answers), asked)
	}
	noneLeft(t, mark, 2*time.Second)
}

// within waits until done is closed.
func within(t *testing.T, limit time.Duration, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("not within %s: %s", limit, what)
	}
}

// flood is a model that answers a prompt with "flood" by text without end, and
// any other by a command that doesn't end.
type flood struct {
	url   string
	begun chan struct{} // closed when the flood has begun
	gone  chan struct{} // closed when its connection is
}

func newFlood(t *testing.T) *flood {
	t.Helper()
	f := &flood{begun: make(chan struct{}), gone: make(chan struct{})}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.url = s.URL
	return f
}

// ServeHTTP speaks the OpenAI format.
func (f *flood) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta, finish string) error {
		_, err := fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-test","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
		return err
	}
	if !strings.Contains(string(body), `"flood"`) {
		arguments := quote(`{"command": "echo $$ > pid; touch started; exec sleep 98766"}`)
		_ = chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"call","type":"function","function":{"name":"run_shell_command","arguments":`+arguments+`}}]}`, `"tool_calls"`)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
		return
	}
	close(f.begun)
	defer close(f.gone)
	delta := `{"role":"assistant","content":` + quote(strings.Repeat("0123456789abcde ", 64)) + `}`
	for chunk(delta, "null") == nil {
	}
}
