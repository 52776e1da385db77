package scripted

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/model"
)

// talk holds a conversation and writes it down.
type talk struct {
	t    *testing.T
	p    model.Provider
	req  model.Request
	open []model.ToolUse
	out  strings.Builder
}

func (k *talk) user(text string) {
	fmt.Fprintf(&k.out, "user: %s\n", text)
	k.say(&model.Message{Role: model.RoleUser, Blocks: []model.Block{model.Text{Text: text}}})
}

func (k *talk) result(text string) {
	fmt.Fprintf(&k.out, "result: %s\n", text)
	m := &model.Message{Role: model.RoleUser}
	for _, use := range k.open {
		m.Blocks = append(m.Blocks, model.ToolResult{ToolUseID: use.ID, Name: use.Name, Blocks: []model.Block{model.Text{Text: text}}})
	}
	k.say(m)
}

// say sends the history with m; a failed request leaves no trace in it.
func (k *talk) say(m *model.Message) {
	history := append(k.req.Messages[:len(k.req.Messages):len(k.req.Messages)], m)
	req := model.Request{Model: "m", Messages: history}
	var asm model.Assembler
	err := k.p.Stream(k.t.Context(), &req, func(d model.Delta) { asm.Add(d) })
	var e *model.Error
	if err != nil && !errors.As(err, &e) {
		k.t.Fatal(err)
	}
	if err != nil {
		asm.Add(model.Delta{Kind: model.DeltaFinish})
	}
	k.open = nil
	for _, b := range asm.Blocks() {
		switch b := b.(type) {
		case model.Text:
			fmt.Fprintf(&k.out, "text: %s\n", b.Text)
		case model.Thinking:
			fmt.Fprintf(&k.out, "thinking: %s\n", b.Text)
		case model.ToolUse:
			k.open = append(k.open, b)
			fmt.Fprintf(&k.out, "call: %s %s\n", b.Name, b.Input)
		}
	}
	if err != nil {
		fmt.Fprintf(&k.out, "error: %s\n", e.Kind)
		return
	}
	if s := asm.Stop(); s != model.StopEndTurn && s != model.StopToolUse {
		fmt.Fprintf(&k.out, "stop: %s\n", s)
	}
	k.req.Messages = append(history, &model.Message{Role: model.RoleAssistant, Blocks: asm.Blocks()})
}

// TestExamplesOfTheDocumentation plays each script of the documentation and
// compares the conversation with the one printed below it.
func TestExamplesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../../docs/model-scripts.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```jsonc\n(.*?)```\n\n```transcript\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if scripts := strings.Count(string(doc), "```jsonc"); len(found) != scripts || scripts < 6 {
		t.Errorf("%d scripts, %d of them with a transcript", scripts, len(found))
	}
	for i, m := range found {
		k := &talk{t: t, p: New(parse(t, m[1]), Options{})}
		for _, line := range strings.Split(m[2], "\n") {
			if text, ok := strings.CutPrefix(line, "user: "); ok {
				k.user(text)
			}
			if text, ok := strings.CutPrefix(line, "result: "); ok {
				k.result(text)
			}
		}
		if d := cmp.Diff(m[2], k.out.String()); d != "" {
			t.Errorf("example %d (-documented +played):\n%s", i+1, d)
		}
	}
}
