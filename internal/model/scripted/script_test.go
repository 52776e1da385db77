package scripted

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

func TestParseErrorsSayWhere(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		``:                                      `s:1:1: the script has no steps`,
		"// nothing\n":                          `s:2:1: the script has no steps`,
		`[]`:                                    `s:1:1: a step is an object, not a list`,
		`{}`:                                    `s:1:1: this step has nothing to emit`,
		`{"emit": []}`:                          `s:1:1: this step has nothing to emit`,
		"{\"emit\": [\n  {\"txt\": \"a\"}]}":    `s:2:4: unknown key "txt"; did you mean "text"?`,
		"{\n\"emits\": []}":                     `s:2:1: unknown key "emits"; did you mean "emit"?`,
		`{"emit": [{"text": "a", "xyz": 1}]}`:   `s:1:25: unknown key "xyz"; known here: by,`,
		`{"emit": [{"text": 1}]}`:               `s:1:20: a string or a list of strings is expected here, not a number`,
		`{"emit": [{"text": "a", "text": ""}]`:  `s:1:37: the file ends before the closing '}'`,
		`{"emit": [{"text": "a", "text": ""}]}`: `s:1:25: the key "text" is there twice`,
		`{"emit": [{"zzzzzzzzz": 1}]}`:          `s:1:11: this object does not say what to emit`,
		`{"when": {"user": {"regex": "("}}, "emit": [{"text": ""}]}`: `s:1:29: not a regular expression: missing closing )`,
		`{"when": {"user": {"like": "x"}}, "emit": [{"text": ""}]}`:  `s:1:20: unknown key "like"`,
		`{"use": 0, "emit": [{"text": ""}]}`:                         `s:1:9: "use" is "once", "always" or a number from 1`,
		`{"emit": [{"fault": "boom"}]}`:                              `s:1:21: unknown fault "boom"; it is one of stall,`,
		`{"emit": [{"error": "boom"}]}`:                              `s:1:21: unknown error "boom"; it is one of authentication,`,
		`{"emit": [{"status": 200}]}`:                                `s:1:22: "status" is an HTTP error status`,
		`{"emit": [{"stop": "now"}]}`:                                `s:1:20: unknown stop reason "now"`,
		`{"emit": [{"stop": "end_turn"}, {"text": "more"}]}`:         `s:1:33: nothing can come after the end of the answer`,
		`{"emit": [{"tool": "a", "input": [1]}]}`:                    `s:1:34: "input" is an object, not a list`,
		`{"emit": [{"tool": "a", "input": {}, "input_text": ""}]}`:   `s:1:11: a tool call has "input" or "input_text", not both`,
		`{"emit": [{"text": "{{user.name}}"}]}`:                      `s:1:11: {{user.name}} names a group that the step does not capture`,
		`{"emit": [{"text": "a" "by": 1}]}`:                          `s:1:24: a comma or '}' is expected here, not '"'`,
		`{"emit": [{"text": "a}]}`:                                   `s:1:20: this string is not closed`,
		"{\"emit\": [{\"text\": \"a\nb\"}]}":                         `s:1:20: this string is not closed on its line`,
		"{\"emit\": [{\"text\": \"\xff\"}]}":                         `s:1:20: this string is not valid UTF-8`,
		`{"emit": [{"text": hello}]}`:                                `s:1:20: "hello" is not a JSON value; a text needs double quotes`,
		`{"emit": [{"text": "a"}]} /* x`:                             `s:1:27: this comment is not closed`,
		`{"emit": [{"text": "a"}]} {"script": 1}`:                    `s:1:27: the object with "script" must come first`,
		`{"script": 2}`: `s:1:12: "script" is the version of the format: 1`,
		`{"emit": [{"status": 400, "headers": {"a b": "c"}}]}`: `s:1:39: "a b" cannot be the name of a header`,
		`{"emit": [{"status": 400, "headers": {"a": "c\n"}}]}`: `s:1:44: a header cannot hold control characters`,
		strings.Repeat("[", 1000):                              `s:1:202: nested more than 200 deep`,
	} {
		_, err := Parse("s", []byte(script))
		var at *ParseError
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", clip(script, 80), err, want)
		}
	}
}

func TestParseTakesCommentsTrailingCommasAndSeveralLayouts(t *testing.T) {
	t.Parallel()
	s := parse(t, "\ufeff{\"script\": 1, \"models\": [\"a\"], \"note\": \"n\",}\r\n"+
		`{"emit": [{"text": "one"}]}{"emit": [{"text": "// no comment"},]} // two on a line
/* and
   one more */
{
  "emit": [ // three
    {"tool": "t", "input": {"a": /* x */ [1, 2.0, {"b": null,},], "a": "dup"}},
  ],
}`)
	if s.Steps() != 3 || s.Name() != "test.jsonc" || !cmp.Equal(s.Models(), []string{"a"}) {
		t.Errorf("%d steps, %s, %v", s.Steps(), s.Name(), s.Models())
	}
	if got := s.steps[2].items[0].pieces[0]; got != `{"a":[1,2.0,{"b":null}],"a":"dup"}` {
		t.Errorf("input %s", got)
	}
	if s.steps[1].line != 2 || s.steps[2].line != 5 {
		t.Errorf("lines %d, %d", s.steps[1].line, s.steps[2].line)
	}
}

func TestChunking(t *testing.T) {
	t.Parallel()
	for item, want := range map[string][]string{
		`{"text": "one two  three\nfour "}`:                {"one two  three\nfour "},
		`{"text": "one two  three\nfour ", "by": "word"}`:  {"one ", "two  ", "three\n", "four "},
		`{"text": "日本語", "by": 2}`:                         {"日本", "語"},
		`{"text": ["a", "bc", ""]}`:                        {"a", "bc", ""},
		`{"text": ["a", "bc", ""], "by": "whole"}`:         {"abc"},
		`{"text": ["a b", "c d"], "by": "word"}`:           {"a ", "bc ", "d"},
		`{"text": ["a", "b"], "repeat": 2}`:                {"a", "b", "a", "b"},
		`{"text": "x", "repeat": 600}`:                     strings.Split(strings.Repeat("x", 600), ""),
		`{"tool": "t", "input": {"a": 1}, "by": 3}`:        {`{"a`, `":1`, `}`},
		`{"tool": "t", "input_text": ["{\"a", "\": 1}"]}`:  {`{"a`, `": 1}`},
		`{"text": "{{user_text}} {{turn}}", "by": "word"}`: {"hi ", "you ", "1"},
		`{"text": "{{turn}}", "literal": true}`:            {"{{turn}}"},
		`{"literal": true, "text": "{{turn}} {{other}}"}`:  {"{{turn}} {{other}}"},
	} {
		deltas, err := collect(t.Context(), New(parse(t, `{"emit": [`+item+`]}`), Options{}), prompt("hi you"))
		var got []string
		for _, d := range deltas {
			if d.Kind == model.DeltaText || d.Kind == model.DeltaToolInput {
				got = append(got, d.Text)
			}
		}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %q, %v", item, got, err)
		}
	}
}

func TestPlaceholdersInToolInputsAreEscaped(t *testing.T) {
	t.Parallel()
	p := New(parse(t, `{"emit": [{"tool": "t", "input": {"a": "<{{user_text}}>"}}]}`), Options{})
	var asm model.Assembler
	if err := p.Stream(t.Context(), prompt("say \"x\"\n\\"), func(d model.Delta) { asm.Add(d) }); err != nil {
		t.Fatal(err)
	}
	if use := asm.Blocks()[0].(model.ToolUse); string(use.Input) != `{"a":"<say \"x\"\n\\>"}` || use.Invalid != "" {
		t.Errorf("%s %s", use.Input, use.Invalid)
	}
}

func TestDelaysAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(parse(t, `{"emit": [{"delay_ms": 100}, {"text": "a b c", "by": "word", "every_ms": 10, "delay_ms": 5}, {"fault": "stall", "for_ms": 1000}, {"text": "d"}]}`), Options{})
		began := time.Now()
		var at []time.Duration
		err := p.Stream(t.Context(), prompt("hi"), func(d model.Delta) {
			if d.Kind == model.DeltaText {
				at = append(at, time.Since(began))
			}
		})
		want := []time.Duration{105 * time.Millisecond, 115 * time.Millisecond, 125 * time.Millisecond, 1125 * time.Millisecond}
		if err != nil || !cmp.Equal(at, want) {
			t.Errorf("%v, %v", at, err)
		}
	})
}

// after is a request at the end of the given messages.
func after(messages ...*model.Message) *model.Request {
	return &model.Request{Model: "m-1", System: "You are a test.", Messages: messages}
}

func user(blocks ...model.Block) *model.Message {
	return &model.Message{Role: model.RoleUser, Blocks: blocks}
}
func assistant(blocks ...model.Block) *model.Message {
	return &model.Message{Role: model.RoleAssistant, Blocks: blocks}
}
func say(s string) model.Block { return model.Text{Text: s} }
func use(id, name string) model.Block {
	return model.ToolUse{ID: id, Name: name, Input: []byte("{}")}
}
func result(id, text string) model.Block {
	return model.ToolResult{ToolUseID: id, Blocks: []model.Block{say(text)}}
}

func TestMatching(t *testing.T) {
	t.Parallel()
	first := after(user(say("reminder"), say("fix it")))
	second := after(user(say("fix it")), assistant(use("a", "read"), use("b", "grep")), user(result("a", "file A"), result("b", "hit B")))
	both := after(user(say("fix it")), assistant(use("a", "read")), user(result("a", "file A"), say("and hurry")))
	third := after(user(say("fix it")), assistant(say("done")), user(say("thanks")))
	for _, tc := range []struct {
		when string
		req  *model.Request
		want bool
	}{
		{`{"user": "fix it"}`, first, true},
		{`{"user": "reminder\nfix it"}`, first, true},
		{`{"user": " fix it\n"}`, first, true},
		{`{"user": "fix"}`, first, false},
		{`{"user": {"contains": "fix"}}`, first, true},
		{`{"user": {"regex": "^f.x"}}`, first, true},
		{`{"user": {"regex": "r.*x"}}`, first, true},
		{`{"user": "fix it"}`, second, false},
		{`{"user": "fix it", "tool": "read"}`, second, true},
		{`{"user": "fix", "tool": "read"}`, second, false},
		{`{"tool": "read"}`, second, true},
		{`{"tool": "grep"}`, second, true},
		{`{"tool": "glob"}`, second, false},
		{`{"tool": "read", "result": "file A"}`, second, true},
		{`{"tool": "read", "result": "hit B"}`, second, false},
		{`{"result": {"contains": "B"}}`, second, true},
		{`{"tool": "read"}`, first, false},
		{`{"tool": "read"}`, both, true},
		{`{"user": "and hurry"}`, both, true},
		{`{"user": "thanks"}`, third, true},
		{`{"tool": "read"}`, after(second.Messages[0], second.Messages[1], second.Messages[2], assistant(say("ok")), user(say("more"))), false},
		{`{"turn": 1}`, first, true},
		{`{"turn": 1}`, second, false},
		{`{"turn": 2}`, second, true},
		{`{"request": 1}`, first, true},
		{`{"request": 2}`, first, false},
		{`{"system": {"contains": "test"}}`, first, true},
		{`{"system": {"contains": "prod"}}`, first, false},
		{`{"model": "m-1"}`, first, true},
		{`{"model": "m-1", "turn": 2}`, first, false},
	} {
		_, err := collect(t.Context(), New(parse(t, `{"when": `+tc.when+`, "emit": [{"text": "x"}]}`), Options{}), tc.req)
		if (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.when, err)
		}
	}
}

func TestStepsAreUsedUpInOrder(t *testing.T) {
	t.Parallel()
	p := New(parse(t, `{"emit": [{"text": "1"}]} {"use": 2, "emit": [{"text": "2"}]} {"when": {"user": "x"}, "emit": [{"text": "never"}]} {"use": "always", "emit": [{"text": "3"}]}`), Options{})
	got := ""
	for range 6 {
		deltas, err := collect(t.Context(), p, prompt("hi"))
		if err != nil {
			t.Fatal(err)
		}
		got += deltas[0].Text
	}
	if got != "122333" {
		t.Error(got)
	}
}

func TestRequestWithoutAStepNamesTheUserText(t *testing.T) {
	t.Parallel()
	_, err := collect(t.Context(), New(parse(t, `{"when": {"user": "a"}, "emit": [{"text": "x"}]}`), Options{}), prompt("what is this?"))
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.ErrBadRequest || !strings.Contains(e.Message, `last user text "what is this?"`) || !strings.Contains(e.Message, "test.jsonc") {
		t.Error(err)
	}
}

func TestRequestsThatNoAPITakesAreRefusedInProcess(t *testing.T) {
	t.Parallel()
	for want, req := range map[string]*model.Request{
		"no messages":          after(),
		"must be the user's":   after(assistant(say("x"))),
		"the message is empty": after(user()),
		"the text is empty":    after(user(say(""))),
		"without a result: a":  after(user(say("x")), assistant(use("a", "t"))),
		"without a result: b":  after(user(say("x")), assistant(use("a", "t"), use("b", "t")), user(result("a", "")), assistant(say("y"))),
		"is no open tool call": after(user(say("x")), user(result("a", "y"))),
		"is not unique":        after(user(say("x")), assistant(use("a", "t"), use("a", "t"))),
	} {
		if want == "without a result: b" {
			req.Messages[2].Blocks[0] = result("a", "y")
		}
		_, err := collect(t.Context(), New(parse(t, `{"emit": [{"text": "x"}]}`), Options{}), req)
		var e *model.Error
		if !errors.As(err, &e) || e.Kind != model.ErrBadRequest || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestCallIDsAreUniqueInTheConversation(t *testing.T) {
	t.Parallel()
	p := New(parse(t, `{"emit": [{"tool": "t", "id": "same"}, {"tool": "t", "id": "same"}, {"tool": "t"}, {"tool": "t"}]}`), Options{})
	deltas, err := collect(t.Context(), p, after(user(say("x")), assistant(use("same", "t"), use("call_2_3", "t")), user(result("same", "y"), result("call_2_3", "y"))))
	var ids []string
	for _, d := range deltas {
		if d.Kind == model.DeltaToolStart {
			ids = append(ids, d.ID)
		}
	}
	if want := []string{"same_2", "same_3", "call_2_3_2", "call_2_4"}; err != nil || !cmp.Equal(ids, want) {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestRequestsAreSeenBeforeTheyAreAnswered(t *testing.T) {
	t.Parallel()
	var seen []*model.Request
	p := New(parse(t, `{"emit": [{"text": "x"}]}`), Options{OnRequest: func(r *model.Request) { seen = append(seen, r) }})
	req := prompt("hi")
	err := p.Stream(t.Context(), req, func(model.Delta) {
		if len(seen) != 1 || seen[0] != req {
			t.Error("not seen")
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"emit": [{"text": "a", "by": "word"}]}`,
		`{"script": 1, "models": ["a"]}{"when": {"user": {"regex": "(a)"}, "turn": 2}, "use": "always", "emit": [{"text": "{{user.1}}{{turn}}"}]}`,
		`{"emit": [{"tool": "t", "input": {"a": [1, {}]}, "id": "x", "signature": {"provider": "g", "value": "v", "from": 1}}, {"usage": {"input": 1}}]}`,
		`{"wire": {"bytes": 1, "newline": "cr"}, "emit": [{"status": 429, "retry_after": 1, "headers": {"A": "b"}, "body": {"e": 1}, "first": 1}, {"ping": true}, {"raw": "x"}]}`,
		"// c\n{\"emit\": [/* x */ {\"thinking\": [\"a\", \"b\"],},],} {\"emit\": [{\"stop\": \"\", \"usage\": null}]}",
		`{"emit": [{"error": "quota"}]} {"emit": [{"fault": "garbage"}, {"redacted": "x"}, {"end": true}, {"delay_ms": 0}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f", data)
		if err != nil {
			var at *ParseError
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Message == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		for _, st := range s.steps { // what is parsed can be played
			for i := range st.items {
				it := &st.items[i]
				if it.delay+it.every > 0 || it.repeat > 1000 || it.fault == faultStall {
					return
				}
			}
		}
		p := New(s, Options{})
		for range min(s.Steps(), 5) {
			ended := 0
			err := p.Stream(t.Context(), prompt("a"), func(d model.Delta) {
				if d.Kind == model.DeltaFinish {
					ended++
				}
			})
			var e *model.Error
			if err == nil && ended != 1 || err != nil && !errors.As(err, &e) {
				t.Fatalf("%d ends, %v", ended, err)
			}
		}
	})
}
