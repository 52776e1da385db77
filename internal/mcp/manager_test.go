package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/sandbox"
	"github.com/agentcli/agent/internal/tools"
)

// rig is a manager with the tools that it reported.
type rig struct {
	*Manager
	t *testing.T

	mu      sync.Mutex
	tools   map[string]tools.Tool
	changed chan struct{}
	states  []string
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{t: t, tools: map[string]tools.Tool{}, changed: make(chan struct{})}
	o.Env = append(o.Env, os.Environ()...)
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.OnTools = func(added []tools.Tool, removed []string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, a := range added {
			r.tools[a.Spec().Name] = a
		}
		for _, n := range removed {
			delete(r.tools, n)
		}
		r.signal()
	}
	o.OnChange = func(server string, state State) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.states = append(r.states, server+" "+string(state))
		r.signal()
	}
	r.Manager = New(o)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// until waits for a condition on what was reported.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		ok, changed := cond(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			r.t.Fatalf("never: %s; states %v", what, r.states)
		}
	}
}

func (r *rig) has(name string) bool { _, ok := r.tools[name]; return ok }

func (r *rig) wait() {
	r.t.Helper()
	if late := r.Wait(context.Background(), 20*time.Second); late != nil {
		r.t.Fatalf("still connecting: %v", late)
	}
}

func (r *rig) status(name string) Status {
	r.t.Helper()
	for _, s := range r.Status() {
		if s.Name == name {
			return s
		}
	}
	r.t.Fatalf("no server %s", name)
	return Status{}
}

func (r *rig) call(ctx context.Context, name, input string) (string, bool) {
	r.t.Helper()
	r.mu.Lock()
	tool := r.tools[name]
	r.mu.Unlock()
	if tool == nil {
		r.t.Fatalf("no tool %s", name)
	}
	return text(tool.Run(ctx, &tools.Call{ID: "toolu_1", Input: json.RawMessage(input)}))
}

func text(res tools.Result) (string, bool) {
	var parts []string
	for _, b := range res.Blocks {
		if t, ok := b.(model.Text); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n"), res.IsError
}

// program returns the configuration of a test server of that kind.
func program(t *testing.T, name, kind string, env ...string) Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Name: name, Type: TypeStdio, Command: exe, Env: map[string]string{"MCP_TEST_SERVER": kind}}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		c.Env[k] = v
	}
	return c
}

func TestServerOverStdio(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Env: []string{"SOME_API_KEY=hunter2", "PLAIN=1"}})
	c := program(t, "ca lc", "good", "OWN=2", "GIVEN_TOKEN=3")
	c.ExcludeTools = []string{"die(x)"}
	r.Add("project", c)
	r.wait()
	ctx := context.Background()
	if got, isErr := r.call(ctx, "mcp__ca_lc__add", `{"a":2,"b":40}`); isErr || !strings.HasPrefix(got, "42\n") ||
		!strings.Contains(got, `"claudecode/toolUseId":"toolu_1"`) || !strings.Contains(got, `"progressToken":1`) {
		t.Errorf("add: %q %v", got, isErr)
	}
	if got, isErr := r.call(ctx, "mcp__ca_lc__fail", `{}`); !isErr || !strings.Contains(got, "it is broken") {
		t.Errorf("fail: %q %v", got, isErr)
	}
	if got, isErr := r.call(ctx, "mcp__ca_lc__add", `{"a":"x"}`); !isErr {
		t.Errorf("bad input: %q", got)
	}
	env, _ := r.call(ctx, "mcp__ca_lc__env", ``)
	for want, there := range map[string]bool{"OWN=2": true, "GIVEN_TOKEN=3": true, "PLAIN=1": true, "hunter2": false} {
		if strings.Contains(env, want) != there {
			t.Errorf("%s in the environment: %v", want, !there)
		}
	}
	if got, _ := r.call(ctx, "mcp__ca_lc__roots", ``); got != "file://"+r.o.Dir {
		t.Errorf("roots: %q", got)
	}
	st := r.status("ca lc")
	if st.State != Connected || st.Info == nil || st.Info.Name != "calc" || st.Instructions != "add well" || st.Scope != "project" || st.Trusted {
		t.Errorf("status %+v", st)
	}
	if strings.Contains(string(st.Config), `"3"`) {
		t.Errorf("a secret is shown: %s", st.Config)
	}
	for _, tool := range st.Tools {
		if tool.Name == "die" {
			t.Error("an excluded tool is there")
		}
	}
	if list, err := r.Resources(ctx, ""); err != nil || len(list) != 1 || list[0].Server != "ca lc" {
		t.Errorf("resources %v %v", list, err)
	}
	if got, isErr := r.call(ctx, "read_mcp_resource", `{"server_name":"ca_lc","uri":"file:///note.txt"}`); isErr || !strings.Contains(got, "hello") {
		t.Errorf("read: %q", got)
	}
	if got, isErr := r.call(ctx, "list_mcp_resources", `{}`); isErr || !strings.Contains(got, "note.txt") {
		t.Errorf("list: %q", got)
	}
	if p := r.Prompts(); len(p) != 1 || p[0].Name != "greet" || !p[0].Arguments[0].Required {
		t.Errorf("prompts %+v", p)
	}
	if b, err := r.GetPrompt(ctx, "ca lc", "greet", map[string]string{"who": "Ann"}); err != nil || len(b) != 1 || b[0] != (model.Text{Text: "greet Ann"}) {
		t.Errorf("prompt %v %v", b, err)
	}
	if _, isErr := r.call(ctx, "mcp__ca_lc__more", ``); isErr {
		t.Error("more failed")
	}
	r.until("the new tool is there", func() bool { return r.has("mcp__ca_lc__extra") })
	if err := complete(ctx)(r.Toggle("ca lc", false)); err != nil {
		t.Fatal(err)
	}
	r.until("the tools are gone", func() bool { return len(r.tools) == 0 })
	if st := r.status("ca lc"); st.State != Disabled {
		t.Errorf("state %s", st.State)
	}
	if err := complete(ctx)(r.Toggle("ca lc", true)); err != nil || !r.has("mcp__ca_lc__add") {
		t.Errorf("on again: %v", err)
	}
	if err := complete(ctx)(r.Reconnect("ca lc")); err != nil {
		t.Error(err)
	}
	if err := complete(ctx)(r.Reconnect("other")); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("unknown server: %v", err)
	}
}

func TestProgressAndCancellation(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	c := program(t, "s", "good")
	r.Add("", c)
	r.wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.mu.Lock()
	slow := r.tools["mcp__s__slow"]
	r.mu.Unlock()
	var progress []string
	res := slow.Run(ctx, &tools.Call{Input: json.RawMessage(`{}`), Progress: func(p tools.Progress) {
		progress = append(progress, p.Text)
		cancel()
	}})
	if got, isErr := text(res); !isErr || !strings.Contains(got, "cancelled") || !slices.Equal(progress, []string{"1/2 half"}) {
		t.Errorf("%q %v %v", got, isErr, progress)
	}
	c.Name, c.Timeout = "t", 50*time.Millisecond
	r.Add("", c)
	r.wait()
	if got, isErr := r.call(context.Background(), "mcp__t__slow", `{}`); !isErr || !strings.Contains(got, "did not answer within 50ms") {
		t.Errorf("timeout: %q", got)
	}
}

func TestServersThatMisbehave(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{ConnectTime: 15 * time.Second})
	r.Add("", program(t, "noisy", "noisy"), program(t, "exit", "exit"), program(t, "flood", "flood"), program(t, "old", "old"), program(t, "future", "future"),
		Config{Name: "missing", Type: TypeStdio, Command: "no-such-program-anywhere"})
	r.wait()
	want := map[string]struct {
		state State
		text  string
	}{
		"noisy": {Connected, ""}, "exit": {Failed, "code 3: no such database"}, "flood": {Failed, "over 16 MiB"},
		"old": {Connected, ""}, "future": {Failed, "2999-01-01"}, "missing": {Failed, "no-such-program-anywhere"},
	}
	for name, w := range want {
		if st := r.status(name); st.State != w.state || !strings.Contains(st.Error, w.text) {
			t.Errorf("%s: %s %q", name, st.State, st.Error)
		}
	}
	if got, isErr := r.call(context.Background(), "mcp__noisy__add", `{"a":1,"b":1}`); isErr {
		t.Error(got)
	}
}

func TestServerThatNeverAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{ConnectTime: 100 * time.Millisecond})
	r.Add("", program(t, "silent", "silent"))
	r.wait()
	if st := r.status("silent"); st.State != Failed || !strings.Contains(st.Error, "not ready within 100ms") {
		t.Errorf("%s %q", st.State, st.Error)
	}
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	begin := time.Now()
	r.Add("", program(t, "silent", "silent"))
	if late := r.Wait(context.Background(), 20*time.Millisecond); !slices.Equal(late, []string{"silent"}) {
		t.Errorf("late: %v", late)
	}
	if st := r.status("silent"); st.State != Connecting {
		t.Errorf("state %s", st.State)
	}
	if _, left, _ := r.connecting(20 * time.Millisecond); left > 0 {
		t.Errorf("the next turn would wait again, for %v", left)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

// noted keeps what was started.
type noted struct {
	sandbox.Runner
	mu   sync.Mutex
	argv []string
}

func (n *noted) Start(ctx context.Context, c sandbox.Command) (sandbox.Process, error) {
	n.mu.Lock()
	n.argv = append(n.argv, strings.Join(c.Argv[1:], " "))
	n.mu.Unlock()
	return n.Runner.Start(ctx, c)
}

func (n *noted) list() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.argv)
}

func TestServersAreHeldBack(t *testing.T) {
	t.Parallel()
	begin := map[string]func(r *rig){"start": func(r *rig) { r.Start() }, "wait": func(*rig) {}}
	for name, begin := range begin {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs := &noted{Runner: sandbox.New()}
			r := newRig(t, Options{Hold: true, Sandbox: runs})
			held := func(name string) Config {
				c := program(t, name, "old")
				c.Args = []string{name}
				return c
			}
			r.Add("", held("a"), held("off"), held("gone"), held("replaced"), held("again"))
			if err := complete(t.Context())(r.Toggle("off", false)); err != nil {
				t.Fatal(err)
			}
			r.Remove("gone")
			other := held("replaced")
			other.Args = []string{"other"}
			r.Add("", other)
			if got := runs.list(); len(got) > 0 || r.status("a").State != Connecting {
				t.Errorf("started: %q, state %s", got, r.status("a").State)
			}
			if err := complete(t.Context())(r.Reconnect("again")); err != nil { // whoever wants one now gets it
				t.Fatal(err)
			}
			if got := runs.list(); !slices.Equal(got, []string{"again"}) {
				t.Errorf("started: %q", got)
			}
			begin(r)
			r.Add("", held("later"))
			r.wait()
			if got := slices.Sorted(slices.Values(runs.list())); !slices.Equal(got, []string{"a", "again", "later", "other"}) {
				t.Errorf("started: %q", got)
			}
			if st := r.status("off"); st.State != Disabled {
				t.Errorf("off: %s", st.State)
			}
		})
	}
}

func TestHeldServersAreClosed(t *testing.T) {
	t.Parallel()
	runs := &noted{Runner: sandbox.New()}
	r := newRig(t, Options{Hold: true, Sandbox: runs})
	r.Add("", program(t, "a", "old"))
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Start(); len(runs.list()) > 0 {
		t.Error("a server was started after the end")
	}
}

func TestServerThatDiesComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.Add("", program(t, "s", "good"))
	r.wait()
	got, isErr := r.call(context.Background(), "mcp__s__die", `{}`)
	if !isErr || !strings.Contains(got, "code 7: last words") {
		t.Errorf("%q", got)
	}
	died := time.Now()
	r.until("disconnected", func() bool { return slices.Contains(r.states, "s disconnected") && len(r.tools) == 0 })
	if d := time.Since(died); d > 2*time.Second {
		t.Errorf("noticed after %v", d)
	}
	r.until("connected again", func() bool { return r.has("mcp__s__add") })
	r.wait()
	if st := r.status("s"); st.State != Connected || st.Error != "" {
		t.Errorf("%+v", st)
	}
}

func TestServerThatKeepsDyingIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.pause = time.Millisecond
	leave := filepath.Join(t.TempDir(), "leave")
	r.Add("", program(t, "s", "brief", "LEAVE="+leave))
	r.wait()
	if st := r.status("s"); st.State != Connected {
		t.Fatalf("%+v", st)
	}
	if err := os.WriteFile(leave, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.until("given up", func() bool { return slices.Contains(r.states, "s failed") })
	if st := r.status("s"); st.State != Failed || !strings.Contains(st.Error, "times in a row") {
		t.Errorf("%+v", st)
	}
	if err := os.Remove(leave); err != nil {
		t.Fatal(err)
	}
	if err := complete(context.Background())(r.Reconnect("s")); err != nil {
		t.Error(err)
	}
}

func TestHeadersStayAtHome(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		got <- req.Header.Get("X-Secret")
		w.WriteHeader(http.StatusTeapot)
	}))
	home := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(func() { home.Close(); other.Close() })
	r := newRig(t, Options{})
	r.Add("", Config{Name: "s", Type: TypeHTTP, URL: home.URL, Headers: map[string]string{"X-Secret": "s3cret"}})
	r.wait()
	if secret := <-got; secret != "" {
		t.Errorf("%q was sent to a stranger", secret)
	}
	if st := r.status("s"); st.State != Failed {
		t.Errorf("%+v", st)
	}
}

func TestServersOnTheNetwork(t *testing.T) {
	t.Parallel()
	var (
		mu   sync.Mutex
		seen http.Header
	)
	note := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			mu.Lock()
			seen = req.Header.Clone()
			mu.Unlock()
			next.ServeHTTP(w, req)
		})
	}
	get := func(*http.Request) *sdk.Server { return newServer() }
	shared := newServer()
	stream := httptest.NewServer(note(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return shared }, nil)))
	sse := httptest.NewServer(note(sdk.NewSSEHandler(get, nil)))
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := tcp.Accept()
		if err != nil {
			return
		}
		_ = newServer().Run(context.Background(), &sdk.IOTransport{Reader: conn, Writer: conn})
	}()
	t.Cleanup(func() {
		for session := range shared.Sessions() { // their clients could not say goodbye
			_ = session.Close()
		}
		stream.Close()
		sse.Close()
		locked.Close()
		_ = tcp.Close()
		<-served
	})
	r := newRig(t, Options{}) // closed before the servers are
	r.Add("",
		Config{Name: "stream", Type: TypeHTTP, URL: stream.URL, Headers: map[string]string{"X-Test": "yes"}},
		Config{Name: "sse", Type: TypeSSE, URL: sse.URL, Headers: map[string]string{"X-Test": "yes"}},
		Config{Name: "either", Type: TypeSSE, URL: stream.URL, anyHTTP: true, Headers: map[string]string{"X-Test": "yes"}},
		Config{Name: "tcp", Type: TypeTCP, Address: tcp.Addr().String()},
		Config{Name: "locked", Type: TypeHTTP, URL: locked.URL},
		Config{Name: "nobody", Type: TypeHTTP, URL: "http://127.0.0.1:1/"},
	)
	r.wait()
	for _, name := range []string{"stream", "sse", "either", "tcp"} {
		if st := r.status(name); st.State != Connected {
			t.Errorf("%s: %s %s", name, st.State, st.Error)
			continue
		}
		if got, isErr := r.call(context.Background(), "mcp__"+name+"__add", `{"a":1,"b":2}`); isErr || !strings.HasPrefix(got, "3") {
			t.Errorf("%s: %q", name, got)
		}
	}
	mu.Lock()
	if seen.Get("X-Test") != "yes" {
		t.Error("no headers")
	}
	mu.Unlock()
	if st := r.status("locked"); st.State != NeedsAuth || !strings.Contains(st.Error, "401") {
		t.Errorf("locked: %s %q", st.State, st.Error)
	}
	if st := r.status("nobody"); st.State != Failed || !strings.Contains(st.Error, "refused") {
		t.Errorf("nobody: %s %q", st.State, st.Error)
	}
	begin := time.Now()
	for _, s := range []*httptest.Server{stream, sse} {
		s.Listener.Close()
		s.CloseClientConnections()
	}
	r.until("the network servers are away", func() bool {
		return slices.Contains(r.states, "stream disconnected") && slices.Contains(r.states, "sse disconnected")
	})
	if d := time.Since(begin); d > 2*time.Second {
		t.Errorf("noticed after %v", d)
	}
}

func TestCallsAndReconnectsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.Add("", program(t, "s", "good"), program(t, "other", "good"))
	r.wait()
	r.mu.Lock()
	add := r.tools["mcp__s__add"]
	r.mu.Unlock()
	ctx := context.Background()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if got, isErr := text(add.Run(ctx, &tools.Call{Input: json.RawMessage(`{"a":1,"b":2}`)})); !isErr && !strings.HasPrefix(got, "3") {
					t.Errorf("%q", got)
				}
			}
		})
		wg.Go(func() { _ = complete(ctx)(r.Reconnect("s")) }) // one of several at once wins
		wg.Go(func() { r.Status() })
	}
	wg.Wait()
	r.wait()
	if got, isErr := r.call(ctx, "mcp__s__add", `{"a":1,"b":2}`); isErr {
		t.Error(got)
	}
	if got, isErr := r.call(ctx, "mcp__other__add", `{"a":1,"b":2}`); isErr {
		t.Error(got)
	}
}

func TestCloseEndsWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.Add("", program(t, "silent", "silent"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Wait(context.Background(), time.Hour)
		if _, err := r.Reconnect("silent"); err == nil {
			t.Error("reconnected to what is closed")
		}
	}()
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
	<-ended
}

func TestSet(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	a, b := program(t, "a", "old"), program(t, "b", "old")
	r.Add("project", program(t, "mine", "old"))
	res := r.Set([]Config{a, b}, map[string]error{"c": &ConfigError{"c", "url", "no"}})
	if !slices.Equal(res.Added, []string{"a", "b"}) || len(res.Removed) != 0 || len(res.Errors) != 1 {
		t.Errorf("%+v", res)
	}
	r.wait()
	b.Args = []string{"x"}
	res = r.Set([]Config{b}, nil)
	if !slices.Equal(res.Added, []string{"b"}) || !slices.Equal(res.Removed, []string{"a"}) {
		t.Errorf("%+v", res)
	}
	if res = r.Set([]Config{b}, nil); len(res.Added)+len(res.Removed) != 0 {
		t.Errorf("%+v", res)
	}
	if got := r.Names(); !slices.Equal(got, []string{"mine", "b"}) {
		t.Errorf("%v", got)
	}
	r.wait()
	r.AddFailed("dynamic", map[string]error{"z": &ConfigError{"z", "url", "no"}})
	if st := r.status("z"); st.State != Failed || !strings.Contains(st.Error, "url: no") {
		t.Errorf("%+v", st)
	}
}

func TestManyToolsAreDeferred(t *testing.T) {
	t.Parallel()
	for deferral, want := range map[Deferral]bool{DeferAuto: false, DeferAlways: true} {
		r := newRig(t, Options{Deferral: deferral})
		r.Add("", program(t, "s", "good"))
		r.wait()
		for _, name := range slices.Sorted(maps.Keys(r.tools)) {
			if s := r.tools[name].Spec(); s.Server != "" && s.Deferred != want {
				t.Errorf("%s %s: deferred %v", deferral, name, s.Deferred)
			}
		}
	}
	m := New(Options{})
	list := make([]*tool, deferTools+1)
	for i := range list {
		list[i] = &tool{}
	}
	if !m.defers(list) || m.defers(list[1:]) {
		t.Error("the limit on the number is not kept")
	}
	if !m.defers([]*tool{{spec: tools.Spec{Schema: make([]byte, deferBytes+1)}}}) {
		t.Error("the limit on the size is not kept")
	}
}

func TestFromHostIsForwarded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.Add("", program(t, "s", "good"))
	r.wait()
	ctx := context.Background()
	for _, c := range []struct{ in, want string }{
		{`{"jsonrpc":"2.0","id":"h1","method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`, `"text":"3"`},
		{`{"jsonrpc":"2.0","id":"h1","method":"initialize","params":{}}`, `"name":"calc"`},
		{`{"jsonrpc":"2.0","id":"h1","method":"ping"}`, `"result":{}`},
		{`{"jsonrpc":"2.0","id":"h1","method":"no/such"}`, `-32601`},
		{`{"jsonrpc":"2.0","id":"h1","method":"tools/call","params":{"name":"none"}}`, `"error"`},
	} {
		got, err := r.FromHost(ctx, "s", json.RawMessage(c.in))
		if err != nil || !strings.Contains(string(got), c.want) || !strings.Contains(string(got), `"id":"h1"`) {
			t.Errorf("%s: %s %v", c.in, got, err)
		}
	}
	if got, err := r.FromHost(ctx, "s", json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); got != nil || err != nil {
		t.Errorf("%s %v", got, err)
	}
	for _, bad := range []string{`{}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, `x`} {
		if _, err := r.FromHost(ctx, "s", json.RawMessage(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if _, err := r.FromHost(ctx, "none", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("%v", err)
	}
}

// complete waits until a change of a server is done.
func complete(ctx context.Context) func(wait func(context.Context) error, err error) error {
	return func(wait func(context.Context) error, err error) error {
		if err != nil || wait == nil {
			return err
		}
		return wait(ctx)
	}
}
