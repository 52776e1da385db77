package integration

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentcli/agent/internal/testkit"
)

// TestFaultF11_HalfALineAtTheEnd: a line without its end is still a line, and
// one that is cut off is an error result.
func TestFaultF11_HalfALineAtTheEnd(t *testing.T) {
	t.Parallel()
	whole := userLine("last")
	for _, c := range []struct {
		name, stdin string
		want        []string
		code        int
	}{
		{"a whole line without a line end", userLine("first") + "\n" + whole, []string{"1: first", "2: last"}, 0},
		{"half a line", userLine("first") + "\n" + whole[:len(whole)/2], []string{"1: first", "error: input"}, 42},
		{"half a line alone", whole[:len(whole)/2], []string{"error: input"}, 42},
		{"half a character", userLine("first") + "\n" + whole[:strings.Index(whole, "last")] + "\xe2\x82", []string{"1: first", "error: input"}, 42},
		{"one brace", "{", []string{"error: input"}, 42},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			proc, exit := p.run(testkit.Spec{Args: append([]string{p.scripted(echo)}, bothWays...), Stdin: c.stdin})
			expect(t, texts(frames(t, proc)), c.want...)
			if exit.Code != c.code {
				t.Errorf("exit code %d, want %d: %s", exit.Code, c.code, proc.Stderr())
			}
		})
	}
}

// TestFaultF12_GiantLines sends lines of 64 MB and 1 GB: an error result says
// so, memory stays bounded, and the next line is answered.
func TestFaultF12_GiantLines(t *testing.T) {
	t.Parallel()
	onLinux(t)
	for _, mb := range []int{64, 1024} {
		t.Run(fmt.Sprintf("%d MB", mb), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			proc := p.start(testkit.Spec{Args: append([]string{p.scripted(echo)}, bothWays...), HoldStdin: true})
			if err := proc.Send(userLine("before")); err != nil {
				t.Fatal(err)
			}
			_, next, err := proc.Await(0, 20*time.Second, isResult)
			if err != nil {
				t.Fatal(err)
			}
			peak := peakMemory(proc)
			giant(t, proc, mb)
			if err := proc.Send(userLine("after")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, next, err = proc.Await(next, time.Minute, isResult); err != nil {
					t.Fatal(err)
				}
			}
			held := peak() >> 20
			t.Logf("peak of %d MB", held)
			if held > 400 {
				t.Errorf("peak of %d MB", held)
			}
			proc.CloseStdin()
			exit, err := proc.Wait(10 * time.Second)
			if err != nil || exit.Code != 42 {
				t.Errorf("%v, exit code %d", err, exit.Code)
			}
			expect(t, texts(frames(t, proc)), "1: before", "error: 64 MiB", "2: after")
		})
	}
}

// giant writes a user line of mb MiB and a bit.
func giant(t *testing.T, proc *testkit.Proc, mb int) {
	t.Helper()
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	write := func(b []byte) {
		if _, err := proc.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte(`{"type":"user","message":{"role":"user","content":"`))
	for range mb {
		write(chunk)
	}
	write([]byte("\"}}\n"))
}

// TestFaultF12_ALineBelowTheLimitIsTaken: 40 MB are much, and allowed.
func TestFaultF12_ALineBelowTheLimitIsTaken(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	proc := p.start(testkit.Spec{Args: append([]string{p.scripted(say("read it"))}, bothWays...), HoldStdin: true})
	giant(t, proc, 40)
	proc.CloseStdin()
	exit, err := proc.Wait(time.Minute)
	if err != nil || exit.Code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
	}
	expect(t, texts(frames(t, proc)), "read it")
}

// TestFaultF13_OddJSON sends lines with everything that JSON can be made to be;
// after each one the session goes on.
func TestFaultF13_OddJSON(t *testing.T) {
	t.Parallel()
	user := func(content string) string {
		return `{"type":"user","message":{"role":"user","content":` + content + `}}`
	}
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for _, c := range []struct{ name, line, want string }{
		{"invalid UTF-8", user("\"a\xff\xfeb\""), "1: a\uFFFD\uFFFDb"},
		{"escaped NUL", user(`"a\u0000b"`), "1: a\x00b"},
		{"raw NUL", user("\"a\x00b\""), "error: input"},
		{"lone surrogate", user(`"a\ud800b"`), "1: a\uFFFDb"},
		{"surrogate pair", user(`"\ud83d\ude00"`), "1: \U0001F600"},
		{"byte order mark", "\ufeff" + user(`"a"`), "1: a"},
		{"CRLF", user(`"a"`) + "\r", "1: a"},
		{"line separators", user("\"a\u2028b\u2029c\""), "1: a\u2028b\u2029c"},
		{"raw control character", user("\"a\x01b\""), "error: input"},
		{"the type twice", `{"type":"control_request","type":"user","message":{"role":"user","content":"a"}}`, "error: input"},
		{"the message twice", `{"type":"user","message":{"role":"user","content":"a"},"message":{"role":"user","content":"b"}}`, "error: input"},
		{"the content twice", `{"type":"user","message":{"role":"user","content":"a","content":"b"}}`, "error: input"},
		{"another case", `{"Type":"user","message":{"role":"user","content":"a"}}`, "error: input"},
		{"deep nesting", user(deep), "error: input"},
		{"deep nesting where nobody looks", `{"type":"user","message":{"role":"user","content":"a"},"x":` + deep + `}`, ""},
		{"huge number", `{"type":"user","message":{"role":"user","content":"a"},"x":1e999999}`, "1: a"},
		{"long number", `{"type":"user","message":{"role":"user","content":"a"},"x":` + strings.Repeat("9", 100_000) + `}`, "1: a"},
		{"huge number where one counts", `{"type":"user","message":{"role":"user","content":"a"},"options":{"maxTurns":1e99}}`, "error: maxTurns"},
		{"NaN", `{"type":"user","message":{"role":"user","content":"a"},"x":NaN}`, "error: input"},
		{"two values", user(`"a"`) + user(`"b"`), "error: input"},
		{"a string", `"user"`, "error: input"},
		{"null", `null`, "error: input"},
		{"content of no kind", user(`7`), "error: input"},
		{"another role", `{"type":"user","message":{"role":"system","content":"a"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			proc, exit := p.run(testkit.Spec{Args: append([]string{p.scripted(echo)}, bothWays...), Stdin: c.line + "\n" + userLine("next") + "\n"})
			got := texts(frames(t, proc))
			if len(got) != 2 {
				t.Fatalf("%d results, want one per line: %.2000q", len(got), got)
			}
			if !strings.HasSuffix(got[1], ": next") {
				t.Errorf("the next line's result is %q", got[1])
			}
			if c.want != "" {
				expect(t, got[:1], c.want)
			}
			if bad := strings.HasPrefix(got[0], "error: "); bad != (exit.Code == 42) && !strings.Contains(got[0], "maxTurns") {
				t.Errorf("exit code %d after %q", exit.Code, got[0])
			}
		})
	}
}
