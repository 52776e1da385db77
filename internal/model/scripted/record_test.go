package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/agentcli/agent/internal/model"
)

// canned is a provider that streams what it is told.
type canned struct {
	deltas []model.Delta
	err    error
}

func (c canned) Stream(_ context.Context, _ *model.Request, emit func(model.Delta)) error {
	for _, d := range c.deltas {
		emit(d)
	}
	return c.err
}

func prompt(text string) *model.Request {
	return &model.Request{Model: "m", Messages: []*model.Message{{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: text}}}}}
}

// collect returns what p streams.
func collect(ctx context.Context, p model.Provider, req *model.Request) (out []model.Delta, err error) {
	err = p.Stream(ctx, req, func(d model.Delta) { out = append(out, d) })
	return out, err
}

// said makes the implicit ends of blocks explicit, as players emit them.
func said(in []model.Delta, failed bool) []model.Delta {
	var out []model.Delta
	open, whole := -1, -1
	end := func() {
		if open >= 0 {
			out = append(out, model.Delta{Kind: model.DeltaBlockEnd, Index: open})
		}
		open = -1
	}
	for _, d := range in {
		switch d.Kind {
		case model.DeltaText, model.DeltaThinking, model.DeltaRedacted, model.DeltaToolStart, model.DeltaSignature:
			if open >= 0 && open != d.Index {
				end()
			}
			open = d.Index
			if d.Kind == model.DeltaRedacted { // one delta is the whole of it
				out = append(out, d)
				whole = open
				end()
				continue
			}
		case model.DeltaBlockEnd:
			if d.Index == whole {
				continue
			}
			open = -1
		case model.DeltaFinish:
			end()
		}
		out = append(out, d)
	}
	if failed { // whether a block of a failed answer ended does not matter
		kept := out[:0]
		for _, d := range out {
			if d.Kind != model.DeltaBlockEnd || d.Invalid != "" {
				kept = append(kept, d)
			}
		}
		out = kept
	}
	return out
}

func genText(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.StringN(0, 12, -1),
		rapid.SampledFrom([]string{"", "a", "\n", "{{turn}}", "{{user.1}}", "<b>&", "\u2028", "\r\n", "日本", "\x00"}),
	).Draw(t, label)
}

func genUsage(t *rapid.T) *model.Usage {
	n := rapid.IntRange(0, 1<<30)
	return &model.Usage{InputTokens: n.Draw(t, "in"), OutputTokens: n.Draw(t, "out"), CacheReadTokens: n.Draw(t, "cr"),
		CacheWriteTokens: n.Draw(t, "cw"), ThinkingTokens: n.Draw(t, "th")}
}

func genSig(t *rapid.T) model.Signature {
	if rapid.Bool().Draw(t, "unsigned") {
		return model.Signature{}
	}
	return model.Signature{Provider: rapid.SampledFrom([]string{"gemini", "anthropic"}).Draw(t, "sig provider"),
		Value: rapid.StringMatching(`[a-z0-9+/]{1,12}`).Draw(t, "sig"), From: rapid.IntRange(0, 3).Draw(t, "from")}
}

// genAnswer draws the deltas of an answer up to its end.
func genAnswer(t *rapid.T) (out []model.Delta) {
	blocks := rapid.IntRange(0, 5).Draw(t, "blocks")
	between := func() {
		if rapid.IntRange(0, 5).Draw(t, "between") == 0 {
			out = append(out, model.Delta{Kind: model.DeltaPing})
		}
		if rapid.IntRange(0, 5).Draw(t, "usage") == 0 {
			out = append(out, model.Delta{Kind: model.DeltaUsage, Usage: genUsage(t)})
		}
	}
	end := func(d model.Delta) {
		d.Kind = model.DeltaBlockEnd
		if d.Invalid != "" || rapid.Bool().Draw(t, "end") {
			out = append(out, d)
		}
	}
	for i := range blocks {
		between()
		switch kind := rapid.SampledFrom([]string{"text", "thinking", "redacted", "tool"}).Draw(t, "kind"); kind {
		case "text", "thinking":
			k := model.DeltaText
			if kind == "thinking" {
				k = model.DeltaThinking
			}
			for range rapid.IntRange(1, 4).Draw(t, "deltas") {
				out = append(out, model.Delta{Kind: k, Index: i, Text: genText(t, "text")})
				between()
				if sig := genSig(t); sig != (model.Signature{}) {
					out = append(out, model.Delta{Kind: model.DeltaSignature, Index: i, Sig: sig})
				}
			}
			end(model.Delta{Index: i})
		case "redacted":
			out = append(out, model.Delta{Kind: model.DeltaRedacted, Index: i, Text: genText(t, "data")})
			end(model.Delta{Index: i})
		case "tool":
			out = append(out, genTool(t, i)...)
		}
	}
	return out
}

func genTool(t *rapid.T, i int) []model.Delta {
	out := []model.Delta{{Kind: model.DeltaToolStart, Index: i, ID: fmt.Sprintf("id%d", i), Name: genText(t, "name"), Sig: genSig(t)}}
	var input string
	switch rapid.IntRange(0, 2).Draw(t, "input kind") {
	case 0:
		b, err := json.Marshal(map[string]string{genText(t, "key"): genText(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		input = string(b)
	case 1:
		input = ` { "a" : [1, 2.50, 1e3] } `
	case 2:
		input = "{" + genText(t, "broken")
	}
	for rest := input; rest != ""; {
		k := rapid.IntRange(1, len(rest)).Draw(t, "cut")
		for k < len(rest) && rest[k]&0xc0 == 0x80 {
			k++
		}
		out = append(out, model.Delta{Kind: model.DeltaToolInput, Index: i, Text: rest[:k]})
		rest = rest[k:]
	}
	return append(out, model.Delta{Kind: model.DeltaBlockEnd, Index: i, Invalid: notObject(input)})
}

func TestRecordingPlaysTheSameDeltas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := canned{deltas: genAnswer(t)}
		if failed := rapid.Bool().Draw(t, "failed"); failed {
			c.err = &model.Error{Kind: rapid.SampledFrom(errorKinds).Draw(t, "error"), Provider: "gemini", Status: rapid.SampledFrom([]int{0, 400, 429, 500, 529}).Draw(t, "status"),
				RetryAfter: time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "retry")), RequestID: "req-1", Message: "because"}
		} else {
			finish := model.Delta{Kind: model.DeltaFinish, Stop: rapid.SampledFrom([]model.StopReason{"", model.StopEndTurn, model.StopToolUse, model.StopRefusal}).Draw(t, "stop"),
				ID: genText(t, "response"), Name: "m-1"}
			if rapid.Bool().Draw(t, "final usage") {
				finish.Usage = genUsage(t)
			}
			c.deltas = append(c.deltas, finish)
		}
		var tape bytes.Buffer
		rec := Record(c, &tape, func(s string) string { return s })
		seen, err := collect(t.Context(), rec, prompt("hi"))
		if !cmp.Equal(seen, c.deltas) || !errors.Is(err, c.err) || rec.Err() != nil {
			t.Fatalf("recording changed the stream: %v, %v", err, rec.Err())
		}
		script, err := Parse("tape", tape.Bytes())
		if err != nil {
			t.Fatalf("%v\n%s", err, tape.String())
		}
		played, err := collect(t.Context(), New(script, Options{}), prompt("hi"))
		failed := c.err != nil
		if d := cmp.Diff(said(c.deltas, failed), said(played, failed)); d != "" {
			t.Fatalf("played differently (-recorded +played):\n%s\n%s", d, tape.String())
		}
		if c.err == nil && err != nil {
			t.Fatalf("%v\n%s", err, tape.String())
		}
		if c.err != nil {
			if d := cmp.Diff(c.err, err); d != "" {
				t.Fatalf("failed differently:\n%s\n%s", d, tape.String())
			}
		}
	})
}

func TestRecordingHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	secret := "sk-ant-api03-" + strings.Repeat("x1", 20)
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIEsecret\nlines\n-----END RSA PRIVATE KEY-----"
	input, err := json.Marshal(map[string]any{"cmd": "curl -H 'Authorization: Bearer abcdef0123456789xyz'", "pem": pem, "password": "hJ7kd93kLsm2Qw"})
	if err != nil {
		t.Fatal(err)
	}
	c := canned{deltas: []model.Delta{
		{Kind: model.DeltaText, Text: "the key is " + secret[:9]}, {Kind: model.DeltaText, Text: secret[9:]},
		{Kind: model.DeltaToolStart, Index: 1, ID: "a", Name: "run"},
		{Kind: model.DeltaToolInput, Index: 1, Text: string(input)},
		{Kind: model.DeltaBlockEnd, Index: 1},
	}, err: &model.Error{Kind: model.ErrAuth, Status: 401, Provider: "x", Message: "bad key " + secret}}
	var tape bytes.Buffer
	if _, err := collect(t.Context(), Record(c, &tape, nil), prompt("use "+secret)); err == nil {
		t.Fatal("the error is lost")
	}
	for _, s := range []string{secret[9:], "MIIEsecret", "abcdef0123456789", "hJ7kd93kLsm2Qw"} {
		if strings.Contains(tape.String(), s) {
			t.Errorf("%q is in the recording:\n%s", s, tape.String())
		}
	}
	if _, err := Parse("tape", tape.Bytes()); err != nil {
		t.Errorf("%v\n%s", err, tape.String())
	}
}

func TestRedactFindsCredentialsAndLeavesCode(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"key AIzaSyA1234567890abcdefghijklmnopqrstuv here":      "key [REDACTED] here",
		"export GITHUB_TOKEN=ghp_abcdefghij0123456789ABCD":      "export GITHUB_TOKEN=[REDACTED]",
		"AWS AKIAIOSFODNN7EXAMPLE.":                             "AWS [REDACTED].",
		"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfi1": "aws_secret_access_key = [REDACTED]",
		"postgres://bob:hunter2@db/x":                           "postgres://bob:[REDACTED]@db/x",
		"Authorization: Basic dXNlcjpwYXNz":                     "Authorization: Basic dXNlcjpwYXNz",
		"Authorization: Basic dXNlcjpwYXNzd29yZDEyMw==":         "Authorization: Basic [REDACTED]",
		"Authorization: Bearer abc123def":                       "Authorization: Bearer [REDACTED]",
		`{"api_key": "q8Zp2LmX0vTn4RsY"}`:                       `{"api_key": "[REDACTED]"}`,
		"jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.sig-_x":          "jwt [REDACTED]",
		"token := strings.TrimSpace(header)":                    "token := strings.TrimSpace(header)",
		"the bearer tokens are checked":                         "the bearer tokens are checked",
		"password: string  // required":                         "password: string  // required",
		"max_tokens: 4096, see http://host:8080/path":           "max_tokens: 4096, see http://host:8080/path",
		"-----BEGIN PRIVATE KEY-----\nabc":                      "[REDACTED]",
		"author = JohnDoe1985Example":                           "author = JohnDoe1985Example",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRecordingNotesWhatWasAsked(t *testing.T) {
	t.Parallel()
	var tape bytes.Buffer
	p := Record(New(parse(t, `{"emit": [{"text": "Hello {{user_text}}", "by": "word"}]}`), Options{}), &tape, nil)
	if _, err := collect(t.Context(), p, prompt("world")); err != nil {
		t.Fatal(err)
	}
	want := `{"note":"turn 1; user: world","emit":[{"text":["Hello ","world"],"signature":""},{"id":"scripted_1","model":"m","usage":{"input":100,"output":4},"stop":"end_turn"}]}` + "\n"
	if d := cmp.Diff(want, tape.String()); d != "" {
		t.Error(d)
	}
}

func TestRecordingAnInterruptedAnswerPlaysAsAStall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var tape bytes.Buffer
	p := Record(New(parse(t, `{"emit": [{"text": "Hel"}, {"fault": "stall"}]}`), Options{}), &tape, nil)
	err := p.Stream(ctx, prompt("hi"), func(model.Delta) { cancel() })
	if !errors.Is(err, context.Canceled) || !strings.Contains(tape.String(), `{"fault":"stall"}`) {
		t.Errorf("%v, %s", err, tape.String())
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestRecordingErrorDoesNotDisturbTheConversation(t *testing.T) {
	t.Parallel()
	p := Record(New(parse(t, `{"use": "always", "emit": [{"text": "x"}]}`), Options{}), failingWriter{}, nil)
	if _, err := collect(t.Context(), p, prompt("hi")); err != nil {
		t.Error(err)
	}
	if p.Err() == nil {
		t.Error("the write error is lost")
	}
}
