package integration

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentcli/agent/internal/testkit"
)

// impatient cuts silent streams early, so that tests need not wait.
const impatient = `{"network": {"idleTimeoutMs": 400, "retryBudgetMs": 20000}}`

var streamFaults = []httpFault{
	{
		name:   "reset in the middle, then the same again",
		script: `{"emit": [{"text": "The answer ", "by": "word"}, {"fault": "reset", "first": 1}, {"text": "is 42.", "by": "word"}]}`,
		text:   "The answer is 42.", terminal: "completed", requests: 2, retries: []string{"server_error"},
	}, {
		name:   "connection closed in the middle, then another answer",
		script: `{"emit": [{"text": "I was about to"}, {"fault": "drop"}]} {"emit": [{"text": "Something else."}]}`,
		text:   "Something else.", terminal: "completed", requests: 2, retries: []string{"server_error"},
	}, {
		name:   "end without a finish marker",
		script: `{"emit": [{"text": "half "}, {"fault": "cut", "first": 1}, {"text": "and half"}]}`,
		text:   "half and half", terminal: "completed", requests: 2, retries: []string{"server_error"},
	}, {
		name:     "never a finish marker",
		script:   `{"use": "always", "emit": [{"text": "half"}, {"fault": "cut"}]}`,
		terminal: "api_error", code: 1, requests: 3, retries: []string{"server_error", "server_error"}, says: []string{"incomplete", "gave up after 3 attempts"},
	}, {
		name:   "a garbage line",
		script: `{"emit": [{"text": "a"}, {"fault": "garbage", "first": 1}, {"text": "b"}]}`,
		text:   "ab", terminal: "completed", requests: 2, retries: []string{"server_error"},
	}, {
		name:   "a web page instead of an answer, once",
		script: `{"emit": [{"fault": "html"}]} {"emit": [{"text": "here"}]}`,
		text:   "here", terminal: "completed", requests: 2, retries: []string{"server_error"},
	}, {
		name:     "a sign-in page for ever",
		script:   `{"use": "always", "emit": [{"fault": "html"}]}`,
		terminal: "api_error", code: 1, requests: 3, retries: []string{"server_error", "server_error"}, says: []string{"web page", "base URL"},
	}, {
		name:   "characters and lines split between writes",
		script: `{"wire": {"bytes": 1}, "emit": [{"thinking": "äöü"}, {"text": "héllo 世界 🎉 ", "by": "word"}, {"text": "e\u0301nd"}]}`,
		text:   "héllo 世界 🎉 e\u0301nd", terminal: "completed", requests: 1,
	}, {
		name:   "lines that end in CR",
		script: `{"wire": {"newline": "cr"}, "emit": [{"text": "one two", "by": "word"}]}`,
		text:   "one two", terminal: "completed", requests: 1,
	}, {
		name:   "lines that end in CR LF, byte by byte",
		script: `{"wire": {"newline": "crlf", "bytes": 1}, "emit": [{"text": "one two", "by": "word"}]}`,
		text:   "one two", terminal: "completed", requests: 1,
	}, {
		name: "only comments for longer than the idle limit", settings: impatient,
		script: `{"emit": [{"ping": "still here", "repeat": 12, "every_ms": 100}, {"text": "here"}]}`,
		text:   "here", terminal: "completed", requests: 1, min: 1100 * time.Millisecond,
	}, {
		name: "a slow drip", settings: impatient,
		script: `{"wire": {"bytes": 8, "every_ms": 25}, "emit": [{"text": "slow but sure"}]}`,
		text:   "slow but sure", terminal: "completed", requests: 1, min: 500 * time.Millisecond, max: 30 * time.Second,
	}, {
		name:     "empty answers for ever",
		script:   `{"use": "always", "emit": [{"fault": "empty"}]}`,
		terminal: "api_error", code: 1, requests: 3, retries: []string{"server_error", "server_error"}, says: []string{"empty_response"},
	}, {
		name:   "an empty answer, once",
		script: `{"emit": [{"fault": "empty"}]} {"emit": [{"text": "here"}]}`,
		text:   "here", terminal: "completed", requests: 2, retries: []string{"server_error"},
	},
}

// TestFaultF17_BrokenStreams plays each fault of a stream to each adapter.
func TestFaultF17_BrokenStreams(t *testing.T) {
	t.Parallel()
	for _, f := range streamFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			eachProvider(t, f.run)
		})
	}
}

// TestFaultF18_SilentStreamsAreCutAndRetried stalls at each point of an answer: the
// request is repeated, and nothing is said twice.
func TestFaultF18_SilentStreamsAreCutAndRetried(t *testing.T) {
	t.Parallel()
	for name, stall := range map[string]string{
		"before the headers":        `{"fault": "stall", "first": 1}`,
		"after the headers":         `{"headers": true, "first": 1}, {"fault": "stall", "first": 1}`,
		"in the middle":             `{"text": "I was about "}, {"fault": "stall", "first": 1}`,
		"in the middle of an event": `{"text": "I was about "}, {"raw": "data: {\"mid", "first": 1}, {"fault": "stall", "first": 1}`,
	} {
		text := "to say it."
		if strings.Contains(stall, "about") {
			text = "I was about " + text
		}
		f := httpFault{
			name: name, settings: impatient, script: `{"emit": [` + stall + `, {"text": "to say it."}]}`,
			text: text, terminal: "completed", requests: 2, retries: []string{"server_error"}, min: 400 * time.Millisecond, max: 12 * time.Second,
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachProvider(t, f.run)
		})
	}
}

// TestUsersRow15_TheThirdStallIsFinal checks that a dead server costs three times
// the idle limit and not more.
func TestUsersRow15_TheThirdStallIsFinal(t *testing.T) {
	t.Parallel()
	f := httpFault{
		settings: impatient, script: `{"use": "always", "emit": [{"text": "half"}, {"fault": "stall"}]}`,
		terminal: "api_error", code: 1, requests: 3, retries: []string{"server_error", "server_error"},
		says: []string{"stream_stalled", "400ms"}, min: 1200 * time.Millisecond, max: 12 * time.Second,
	}
	eachProvider(t, f.run)
}

// TestFaultF18_AStallAtConnectIsCut has a listener whose queue is full, so that
// no connection comes about, and one that takes connections and stays silent.
func TestFaultF18_AStallAtConnectIsCut(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(testing.TB) string{
		"no connection":    func(t testing.TB) string { return "http://" + fullListener(t) },
		"no answer":        func(t testing.TB) string { return "http://" + silentListener(t) },
		"no TLS handshake": func(t testing.TB) string { return "https://" + silentListener(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := where(t)
			f := httpFault{
				terminal: "api_error", code: 1, retries: []string{"server_error", "server_error"}, says: []string{"stream_stalled"},
			}
			eachProvider(t, func(t *testing.T, pr provider) {
				p := newPlace(t)
				p.settings(impatient)
				a := p.ask("hi", pr.model, pr.env(at))
				f.check(t, a)
				if a.exit.Wall > 12*time.Second {
					t.Errorf("took %s", a.exit.Wall)
				}
			})
		})
	}
}

// silentListener takes connections into its queue and never looks at them.
func silentListener(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String()
}

// fullListener has no room for another connection.
func fullListener(t testing.TB) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: sa.(*unix.SockaddrInet4).Port}).String()
	for range 8 { // until one finds no room
		c, err := net.DialTimeout("tcp", addr, 150*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("this system's listeners always have room")
	return ""
}

// vendorServer answers the nth request, from 1, by hand.
func vendorServer(t testing.TB, serve func(w http.ResponseWriter, n int)) (url string, seen *atomic.Int32) {
	seen = new(atomic.Int32)
	return local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a client that is gone shows when answering
		w.Header().Set("Content-Type", "text/event-stream")
		serve(w, int(seen.Add(1)))
	})), seen
}

// TestFaultF17_OneEventWithoutEndIsGivenUp sends an event of up to 100 MB of a
// gigabyte: it is refused at the limit, and memory stays bounded.
func TestFaultF17_OneEventWithoutEndIsGivenUp(t *testing.T) {
	t.Parallel()
	piece := bytes.Repeat([]byte("x"), 1<<20)
	eachProvider(t, func(t *testing.T, pr provider) {
		base, seen := vendorServer(t, func(w http.ResponseWriter, n int) {
			_, err := io.WriteString(w, `data: {"text":"`)
			for i := 0; i < 1024 && err == nil; i++ {
				_, err = w.Write(piece)
			}
		})
		p := newPlace(t)
		a := p.ask("hi", pr.model, pr.env(base))
		if a.exit.Code != 1 || a.result.String("terminal_reason") != "api_error" || seen.Load() > 3 {
			t.Errorf("exit %d, %d requests: %v", a.exit.Code, seen.Load(), a.result)
		}
		mentions(t, "the error", a.result.String("result"), "larger than 64 MiB")
		t.Logf("peak memory %d MiB", a.exit.MaxRSS>>20)
		if a.exit.MaxRSS > 400<<20 {
			t.Errorf("peak memory %d MiB", a.exit.MaxRSS>>20)
		}
	})
}

// TestFaultF17_AGzipBombIsGivenUp answers with a megabyte that unpacks to one
// line of a gigabyte.
func TestFaultF17_AGzipBombIsGivenUp(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	_, _ = io.WriteString(z, `data: {"text":"`)
	for range 300 {
		_, _ = z.Write(piece) // a bytes.Buffer takes everything
	}
	_ = z.Close()
	eachProvider(t, func(t *testing.T, pr provider) {
		base, seen := vendorServer(t, func(w http.ResponseWriter, _ int) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		})
		p := newPlace(t)
		a := p.ask("hi", pr.model, pr.env(base))
		if a.exit.Code != 1 || a.result.String("terminal_reason") != "api_error" || seen.Load() > 3 {
			t.Errorf("exit %d, %d requests: %v", a.exit.Code, seen.Load(), a.result)
		}
		t.Logf("peak memory %d MiB", a.exit.MaxRSS>>20)
		if a.exit.MaxRSS > 400<<20 {
			t.Errorf("peak memory %d MiB", a.exit.MaxRSS>>20)
		}
	})
}

// TestFaultF17_OddButGoodAnswers are answers that differ from the usual and
// are good all the same.
func TestFaultF17_OddButGoodAnswers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(pr provider, w http.ResponseWriter, body string) string{
		"an unknown finish reason": func(_ provider, _ http.ResponseWriter, body string) string {
			body = strings.Replace(body, `"finishReason":"STOP"`, `"finishReason":"NEW_REASON"`, 1)
			body = strings.Replace(body, `"finish_reason":"stop"`, `"finish_reason":"new_reason"`, 1)
			return strings.Replace(body, `"stop_reason":"end_turn"`, `"stop_reason":"new_reason"`, 1)
		},
		"no blank line at the end": func(_ provider, _ http.ResponseWriter, body string) string { return strings.TrimRight(body, "\n") },
		"no content type": func(_ provider, w http.ResponseWriter, body string) string {
			w.Header()["Content-Type"] = nil
			return body
		},
		"unknown events and fields": func(pr provider, _ http.ResponseWriter, body string) string {
			if pr.name == "anthropic" {
				body = "event: new_event\ndata: {\"type\":\"new_event\",\"x\":1}\n\n" + body
			}
			return "id: 7\nretry: 10\n: hello\n\n" + strings.Replace(body, `"usage`, `"new_field":{"a":[1]},"usage`, 1)
		},
		"zero bytes between flushes": func(_ provider, w http.ResponseWriter, body string) string {
			for _, part := range strings.SplitAfter(body, "\n") {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, "")
			}
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachProvider(t, func(t *testing.T, pr provider) {
				base, seen := vendorServer(t, func(w http.ResponseWriter, _ int) {
					_, _ = io.WriteString(w, change(pr, w, answer(pr.name, "fine")))
				})
				p := newPlace(t)
				a := p.ask("hi", pr.model, pr.env(base))
				if a.exit.Code != 0 || a.result.String("result") != "fine" || seen.Load() != 1 {
					t.Errorf("exit %d, %d requests: %v", a.exit.Code, seen.Load(), a.result)
				}
			})
		})
	}
}

// TestFaultF17_TheWrongContentTypeSaysSo has a server that answers with
// something that is no stream.
func TestFaultF17_TheWrongContentTypeSaysSo(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		base, seen := vendorServer(t, func(w http.ResponseWriter, _ int) {
			w.Header().Set("Content-Type", "application/xml")
			_, _ = io.WriteString(w, "<ok/>")
		})
		p := newPlace(t)
		a := p.ask("hi", pr.model, pr.env(base))
		if a.exit.Code != 1 || seen.Load() != 3 {
			t.Errorf("exit %d, %d requests", a.exit.Code, seen.Load())
		}
		mentions(t, "the error", a.result.String("result"), "application/xml", "base URL")
	})
}

// TestFaultF17_DuplicateToolIDsAreToldApart has parallel calls with one id, and
// the same id again in the next answer.
func TestFaultF17_DuplicateToolIDsAreToldApart(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		p.write("a.txt", "first\n")
		p.write("b.txt", "second\n")
		base, log := p.serve(`
			{"emit": [{"tool": "read_file", "id": "dup", "input": {"file_path": "a.txt"}}, {"tool": "read_file", "id": "dup", "input": {"file_path": "b.txt"}}]}
			{"emit": [{"tool": "read_file", "id": "dup", "input": {"file_path": "b.txt"}}]}
			{"emit": [{"text": "done"}]}`)
		a := p.ask("hi", pr.model, pr.env(base))
		refused(t, log)
		ids := map[string]bool{}
		for _, f := range a.kinds("assistant") {
			for _, b := range content(f) {
				if b["type"] == "tool_use" {
					ids[b["id"].(string)] = true
				}
			}
		}
		if a.exit.Code != 0 || len(ids) != 3 {
			t.Errorf("exit %d, ids %v: %v", a.exit.Code, ids, a.result)
		}
	})
}

// content lists the content blocks of a frame.
func content(f testkit.Frame) []map[string]any {
	raw, _ := f.Get("message.content")
	list, _ := raw.([]any)
	var out []map[string]any
	for _, item := range list {
		if b, ok := item.(map[string]any); ok {
			out = append(out, b)
		}
	}
	return out
}

// TestFaultF17_CallsOfABrokenAnswerNeverRun breaks an answer after a whole call
// and has the next attempt call otherwise: the first call is declared void and
// does not run, the second one runs once.
func TestFaultF17_CallsOfABrokenAnswerNeverRun(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(`
			{"emit": [{"text": "First."}, {"tool": "write_file", "id": "call_a", "input": {"file_path": "void.txt", "content": "x"}}, {"text": "And"}, {"fault": "drop"}]}
			{"emit": [{"text": "First."}, {"tool": "write_file", "id": "call_b", "input": {"file_path": "good.txt", "content": "x"}}]}
			{"when": {"tool": "write_file"}, "emit": [{"text": "done"}]}`)
		a := p.ask("hi", pr.model, pr.env(base), "--permission-mode", "auto-edit")
		refused(t, log)
		if a.exit.Code != 0 || a.result.String("result") != "done" || len(requests(t, log)) != 3 {
			t.Errorf("exit %d, %d requests: %v", a.exit.Code, len(requests(t, log)), a.result)
		}
		if p.made("void.txt") || !p.made("good.txt") {
			t.Errorf("void.txt: %v, good.txt: %v", p.made("void.txt"), p.made("good.txt"))
		}
		void := map[string]bool{}
		for _, f := range a.kinds("assistant") {
			list, _ := f["supersedes"].([]any)
			for _, uuid := range list {
				void[uuid.(string)] = true
			}
		}
		for _, f := range a.kinds("assistant") {
			for _, b := range content(f) {
				input, _ := b["input"].(map[string]any)
				if b["type"] == "tool_use" && void[f.String("uuid")] != (input["file_path"] == "void.txt") {
					t.Errorf("superseded: %v: %v", void[f.String("uuid")], b)
				}
			}
		}
	})
}

// TestFaultF17_ARepeatedCallIsNotSaidTwice breaks an answer after a whole call
// (of an API that gives calls no ids, too) and has the next attempt say the same.
func TestFaultF17_ARepeatedCallIsNotSaidTwice(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		p.write("a.txt", "first\n")
		base, log := p.serve(`
			{"emit": [{"text": "See."}, {"tool": "read_file", "input": {"file_path": "a.txt"}}, {"fault": "drop", "first": 1}]}
			{"when": {"tool": "read_file"}, "emit": [{"text": "done"}]}`)
		a := p.ask("hi", pr.model, pr.env(base))
		refused(t, log)
		calls := 0
		for _, f := range a.kinds("assistant") {
			for _, b := range content(f) {
				if b["type"] == "tool_use" {
					calls++
				}
			}
		}
		if a.exit.Code != 0 || len(requests(t, log)) != 3 || calls != 1 {
			t.Errorf("exit %d, %d requests, %d calls told: %v", a.exit.Code, len(requests(t, log)), calls, a.result)
		}
	})
}

// TestFaultF17_BrokenToolArgumentsAreAnswered has a call whose arguments are cut
// off: the model is told, and may call again.
func TestFaultF17_BrokenToolArgumentsAreAnswered(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		if pr.name == "gemini" {
			t.Skip("this API sends arguments as an object, or says that the call is malformed: see the next test")
		}
		p := newPlace(t)
		p.write("a.txt", "first\n")
		base, log := p.serve(`
			{"emit": [{"tool": "read_file", "input_text": "{\"file_path\": a.t"}]}
			{"when": {"tool": "read_file", "result": {"contains": "not a JSON object"}}, "emit": [{"tool": "read_file", "input": {"file_path": "a.txt"}}]}
			{"when": {"tool": "read_file", "result": {"contains": "first"}}, "emit": [{"text": "done"}]}`)
		a := p.ask("hi", pr.model, pr.env(base))
		refused(t, log)
		if a.exit.Code != 0 || a.result.String("result") != "done" {
			t.Errorf("exit %d: %v", a.exit.Code, a.result)
		}
	})
}

// TestFaultF17_CallsThatAreNeverReadableEnd checks that a model which only makes
// unreadable calls is stopped.
func TestFaultF17_CallsThatAreNeverReadableEnd(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(`{"use": "always", "emit": [{"tool": "read_file", "input_text": "{\"file_path\": a.t"}]}`)
		a := p.ask("hi", pr.model, pr.env(base))
		refused(t, log)
		if a.exit.Code != 56 || a.result.String("terminal_reason") != "malformed_tool_use_exhausted" {
			t.Errorf("exit %d: %v", a.exit.Code, a.result)
		}
		if n := len(requests(t, log)); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
	})
}

// TestFaultF15_NobodyAnswersMeansNo checks that what would ask is denied in a
// headless run: the model is told, the result lists it, nothing runs.
func TestFaultF15_NobodyAnswersMeansNo(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		base, log := p.serve(`
			{"emit": [{"tool": "write_file", "input": {"file_path": "x.txt", "content": "x"}}, {"tool": "run_shell_command", "input": {"command": "touch y.txt"}}]}
			{"when": {"tool": "write_file", "result": {"contains": "nobody is there"}}, "emit": [{"text": "I would have written x.txt."}]}`)
		a := p.ask("hi", pr.model, pr.env(base))
		refused(t, log)
		denials, _ := a.result["permission_denials"].([]any)
		if a.exit.Code != 0 || len(denials) != 2 || len(a.kinds("system/permission_denied")) != 2 {
			t.Errorf("exit %d, denials %v", a.exit.Code, denials)
		}
		if a.exit.Wall > 10*time.Second {
			t.Errorf("waited %s for nobody", a.exit.Wall)
		}
		for _, name := range []string{"x.txt", "y.txt"} {
			if p.made(name) {
				t.Errorf("%s was made", name)
			}
		}
	})
}

// TestFaultF17_TheSessionGoesOnAfterABrokenTurn breaks answers at each place and
// checks that the next turn's request is one that the API takes.
func TestFaultF17_TheSessionGoesOnAfterABrokenTurn(t *testing.T) {
	t.Parallel()
	eachProvider(t, func(t *testing.T, pr provider) {
		p := newPlace(t)
		p.write("a.txt", "first\n")
		p.settings(`{"network": {"idleTimeoutMs": 400, "retryBudgetMs": 1}}`)
		base, log := p.serve(`
			{"when": {"user": {"contains": "ok?"}}, "use": "always", "emit": [{"text": "ok"}]}
			{"when": {"user": "half text"}, "use": "always", "emit": [{"thinking": "hm"}, {"text": "I was ab"}, {"fault": "drop"}]}
			{"when": {"user": "half call"}, "use": "always", "emit": [{"text": "See: "}, {"tool": "read_file", "input": {"file_path": "a.txt"}, "by": 4}, {"fault": "reset"}]}
			{"when": {"user": "refused"}, "use": "always", "emit": [{"status": 400}]}
			{"when": {"user": "after tools"}, "emit": [{"tool": "read_file", "input": {"file_path": "a.txt"}}]}
			{"when": {"tool": "read_file"}, "use": "always", "emit": [{"fault": "stall"}]}`)
		stdin := ""
		for _, line := range []string{"half text", "ok? 1", "half call", "ok? 2", "refused", "ok? 3", "after tools", "ok? 4"} {
			stdin += userLine(line) + "\n"
		}
		args := append([]string{"--input-format", "stream-json", "--model", pr.model}, streamJSON...)
		proc, exit := p.run(testkit.Spec{Args: args, Env: pr.env(base), Stdin: stdin})
		list := results(frames(t, proc))
		refusals := 0
		for _, r := range requests(t, log) {
			if r.Error != "" {
				t.Errorf("request %d was refused: %s", r.Seq, r.Error)
				refusals++
			}
		}
		if len(list) != 8 || exit.Code != 0 {
			t.Fatalf("exit %d, %d results\n%.3000s", exit.Code, len(list), proc.Output())
		}
		for i, r := range list {
			if failed := r["is_error"] == true; failed != (i%2 == 0) {
				t.Errorf("turn %d: %v", i, r)
			}
		}
	})
}
