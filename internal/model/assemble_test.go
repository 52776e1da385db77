package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

func sig(s string) model.Signature { return model.Signature{Provider: "p", Value: s} }

func TestAssemblerBuildsBlocks(t *testing.T) {
	t.Parallel()
	badEnd := model.Delta{Kind: model.DeltaBlockEnd, Index: 0, Invalid: "no JSON"}
	signedCall := model.Delta{Kind: model.DeltaToolStart, Index: 0, ID: "c", Name: "read", Sig: sig("s")}
	tests := []struct {
		name   string
		deltas []model.Delta
		want   []model.Block
	}{
		{"nothing", []model.Delta{finish}, nil},
		{"text in pieces", []model.Delta{text(0, "Hel"), text(0, "lo"), finish}, []model.Block{model.Text{Text: "Hello"}}},
		{"an open block is not there yet", []model.Delta{text(0, "Hel")}, nil},
		{"blocks close each other", []model.Delta{thinking(0, "hm"), text(1, "a"), text(2, "b"), finish}, []model.Block{model.Thinking{Text: "hm"}, model.Text{Text: "a"}, model.Text{Text: "b"}}},
		{"kind alone opens a new block", []model.Delta{thinking(0, "hm"), text(0, "a"), finish}, []model.Block{model.Thinking{Text: "hm"}, model.Text{Text: "a"}}},
		{"signature on thinking", []model.Delta{thinking(0, "hm"), signature(0, "s"), text(1, "a"), finish}, []model.Block{model.Thinking{Text: "hm", Sig: sig("s")}, model.Text{Text: "a"}}},
		{"signature opens a text block", []model.Delta{signature(0, "s"), finish}, []model.Block{model.Text{Sig: sig("s")}}},
		{"signature before its text", []model.Delta{signature(0, "s"), text(0, "a"), finish}, []model.Block{model.Text{Text: "a", Sig: sig("s")}}},
		{"last signature wins", []model.Delta{text(0, "a"), signature(0, "s"), signature(0, "t"), finish}, []model.Block{model.Text{Text: "a", Sig: sig("t")}}},
		{"redacted", []model.Delta{redacted(0, "xyz"), redacted(1, "abc"), finish}, []model.Block{model.Thinking{Redacted: "xyz"}, model.Thinking{Redacted: "abc"}}},
		{"call", []model.Delta{signedCall, toolInput(0, `{"a":`), toolInput(0, `1} `), blockEnd(0), finish}, []model.Block{model.ToolUse{ID: "c", Name: "read", Input: json.RawMessage(`{"a":1}`), Sig: sig("s")}}},
		{"calls close each other", []model.Delta{toolStart(0, "c", "read"), toolStart(1, "d", "ls"), toolInput(1, `{}`), finish}, []model.Block{
			model.ToolUse{ID: "c", Name: "read", Input: json.RawMessage(`{}`)}, model.ToolUse{ID: "d", Name: "ls", Input: json.RawMessage(`{}`)},
		}},
		{"call with broken input", []model.Delta{toolStart(0, "c", "read"), toolInput(0, `{"a":`), finish}, []model.Block{model.ToolUse{ID: "c", Name: "read", Input: json.RawMessage(`{}`), Invalid: `{"a":`}}},
		{"call whose input is no object", []model.Delta{toolStart(0, "c", "read"), toolInput(0, `[1]`), finish}, []model.Block{model.ToolUse{ID: "c", Name: "read", Input: json.RawMessage(`{}`), Invalid: `[1]`}}},
		{"adapter found the input broken", []model.Delta{toolStart(0, "c", "read"), toolInput(0, `{"a":1}`), badEnd, finish}, []model.Block{model.ToolUse{ID: "c", Name: "read", Input: json.RawMessage(`{}`), Invalid: "no JSON"}}},
		{"stray input does not get into the next block", []model.Delta{toolInput(0, `{"a":1}`), text(0, "a"), toolInput(0, "b"), finish}, []model.Block{model.Text{Text: "a"}}},
		{"stray end does not spoil the next call", []model.Delta{badEnd, toolStart(0, "c", "read"), finish}, []model.Block{model.ToolUse{ID: "c", Name: "read", Input: json.RawMessage(`{}`)}}},
		{"restart voids all", []model.Delta{text(0, "a"), text(1, "b"), {Kind: model.DeltaRestart}, text(0, "c"), finish}, []model.Block{model.Text{Text: "c"}}},
		{"pings and retries add nothing", []model.Delta{{Kind: model.DeltaPing}, text(0, "a"), {Kind: model.DeltaRetry}, text(0, "b"), finish}, []model.Block{model.Text{Text: "ab"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var a model.Assembler
			var completed []model.Block
			for _, d := range tt.deltas {
				if d.Kind == model.DeltaRestart {
					completed = nil
				}
				i, b := a.Add(d)
				if (i < 0) != (b == nil) {
					t.Errorf("Add returned index %d with block %v", i, b)
				}
				if b != nil {
					completed = append(completed, b)
				}
			}
			if diff := cmp.Diff(tt.want, a.Blocks()); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(a.Blocks(), completed); diff != "" {
				t.Errorf("blocks as Add returned them (-blocks +returned):\n%s", diff)
			}
		})
	}
}

func TestAssemblerKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var a model.Assembler
	a.Add(model.Delta{Kind: model.DeltaUsage, Usage: &model.Usage{InputTokens: 1}})
	a.Add(text(0, "a"))
	if a.Stop() != "" || a.Usage().InputTokens != 1 {
		t.Errorf("before the end: stop %q, usage %+v", a.Stop(), a.Usage())
	}
	a.Add(model.Delta{Kind: model.DeltaFinish, Stop: model.StopMaxTokens, ID: "resp", Name: "m-1", Usage: &model.Usage{InputTokens: 1, OutputTokens: 2}})
	id, name := a.Response()
	if a.Stop() != model.StopMaxTokens || a.Usage().OutputTokens != 2 || id != "resp" || name != "m-1" {
		t.Errorf("at the end: stop %q, usage %+v, response %q %q", a.Stop(), a.Usage(), id, name)
	}
}

func TestUsageSums(t *testing.T) {
	t.Parallel()
	u := model.Usage{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ThinkingTokens: 1}
	if got, want := u.Add(u), (model.Usage{InputTokens: 2, OutputTokens: 4, CacheReadTokens: 6, CacheWriteTokens: 8, ThinkingTokens: 2}); got != want {
		t.Errorf("sum %+v, want %+v", got, want)
	}
	if u.Total() != 10 {
		t.Errorf("total %d, want 10", u.Total())
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*model.Error{
		"gemini: 429 rate_limit: slow down": {Kind: model.ErrRateLimit, Provider: "gemini", Status: 429, Message: "slow down"},
		"gemini: network: reset":            {Kind: model.ErrNetwork, Provider: "gemini", Message: "reset"},
		"configuration: no key":             {Kind: model.ErrConfigured, Message: "no key"},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
}

func FuzzAssemblerInputIsAlwaysAnObject(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":1}`, `{"a":`, "[]", "null", `{"a":1}{"b":2}`, "\xff", strings.Repeat("[", 20000), `{"":2` + strings.Repeat("0", 309) + "}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, input string) {
		var a model.Assembler
		a.Add(toolStart(0, "c", "t"))
		a.Add(toolInput(0, input))
		_, b := a.Add(blockEnd(0))
		use := b.(model.ToolUse)
		var object map[string]json.RawMessage // a number may be larger than Go's are
		if err := json.Unmarshal(use.Input, &object); err != nil || object == nil {
			t.Errorf("input %q became %q: %v", input, use.Input, err)
		}
		if use.Invalid == "" && strings.TrimSpace(input) != "" && string(use.Input) != strings.TrimSpace(input) {
			t.Errorf("input %q became %q", input, use.Input)
		}
	})
}
