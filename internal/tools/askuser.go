package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

// Limits of ask_user; its description states them.
const (
	askMaxQuestions = 4
	askMaxOptions   = 6
)

//go:embed askuser.md
var askUserDescription string

const askUserSchema = `{"type":"object","properties":{
"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{
"question":{"type":"string","description":"The whole question."},
"header":{"type":"string","description":"A label of a few words."},
"options":{"type":"array","maxItems":6,"items":{"type":"object","properties":{
"label":{"type":"string","description":"The answer, in a few words."},
"description":{"type":"string","description":"What choosing it means."},
"preview":{"type":"string","description":"What to show while it is looked at, such as a sketch or code."}},
"required":["label"]}},
"multiSelect":{"type":"boolean","description":"Whether several options can be chosen."}},
"required":["question"]}}},
"required":["questions"]}`

type askUserInput struct {
	Questions []struct {
		Question string `json:"question" required:"true"`
		Header   string `json:"header"`
		Options  []struct {
			Label       string `json:"label" required:"true"`
			Description string `json:"description"`
			Preview     string `json:"preview"`
		} `json:"options"`
		MultiSelect bool `json:"multiSelect" alias:"multi_select"`
	} `json:"questions" required:"true"`
}

// AskUserDisplay is the Display of an answered ask_user call.
type AskUserDisplay struct {
	Questions []policy.UserQuestion `json:"questions"`
	Answers   map[string]string     `json:"answers"` // by the question's text
}

// askUserTool implements ask_user.
type askUserTool struct {
	asker policy.Asker
	spec  Spec
}

// NewAskUser returns the tool ask_user, which puts its questions to asker.
func NewAskUser(asker policy.Asker) Tool {
	return &askUserTool{asker: asker, spec: Spec{
		Name: "ask_user", Description: askUserDescription, Schema: schema(askUserSchema), Class: policy.ClassInteract,
		input: reflect.TypeFor[askUserInput](),
	}}
}

// Spec implements Tool.
func (t *askUserTool) Spec() Spec { return t.spec }

// Run implements Tool. There is no time limit but ctx: a person may take long.
func (t *askUserTool) Run(ctx context.Context, call *Call) Result {
	var in askUserInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	questions, err := in.list()
	if err != nil {
		return failed(err)
	}
	answer, err := t.asker.Ask(ctx, policy.AskUser{ToolUseID: call.ID, Agent: call.Agent, Questions: questions})
	switch {
	case errors.Is(err, policy.ErrNoUser):
		return Fail("Nobody is there to answer. Decide yourself and say what you assumed, or end with the question in your answer. Don't ask again.")
	case err != nil && ctx.Err() != nil:
		return Fail("The questions were not answered: " + context.Cause(ctx).Error())
	case err != nil:
		return Fail("The questions could not be asked: " + err.Error() + ". Decide yourself, or end with the question in your answer.")
	case !answer.Allow:
		return declined(answer)
	}
	return answered(questions, answer.Answers)
}

// list checks the input.
func (in *askUserInput) list() ([]policy.UserQuestion, error) {
	if n := len(in.Questions); n < 1 || n > askMaxQuestions {
		return nil, fmt.Errorf("%d questions: ask one to %d", n, askMaxQuestions)
	}
	seen := map[string]bool{}
	list := make([]policy.UserQuestion, len(in.Questions))
	for i, q := range in.Questions {
		if strings.TrimSpace(q.Question) == "" {
			return nil, fmt.Errorf("questions[%d].question is empty", i)
		}
		if seen[q.Question] { // answers come by the question's text
			return nil, fmt.Errorf("questions[%d] is asked twice", i)
		}
		seen[q.Question] = true
		if len(q.Options) > askMaxOptions {
			return nil, fmt.Errorf("questions[%d] has %d options: at most %d", i, len(q.Options), askMaxOptions)
		}
		list[i] = policy.UserQuestion{Question: q.Question, Header: q.Header, MultiSelect: q.MultiSelect}
		for j, o := range q.Options {
			if strings.TrimSpace(o.Label) == "" {
				return nil, fmt.Errorf("questions[%d].options[%d].label is empty", i, j)
			}
			list[i].Options = append(list[i].Options, policy.UserOption{Label: o.Label, Description: o.Description, Preview: o.Preview})
		}
	}
	return list, nil
}

func declined(a policy.Answer) Result {
	text := "The user declined to answer."
	if a.Message != "" {
		text += " They say: " + a.Message
	}
	return Fail(text)
}

// answered tells the model each question with its answer. A question without
// one is named as that; nothing is made up.
func answered(questions []policy.UserQuestion, answers map[string]string) Result {
	var b strings.Builder
	given := make(map[string]string, len(answers))
	for _, q := range questions {
		text, ok := answers[q.Question]
		if ok = ok && strings.TrimSpace(text) != ""; ok {
			given[q.Question] = text
		} else {
			text = "(not answered)"
		}
		fmt.Fprintf(&b, "Question: %s\nAnswer: %s\n\n", q.Question, text)
	}
	if len(given) == 0 {
		return Fail("The user answered none of the questions. Decide yourself and say what you assumed, or end with the question in your answer.")
	}
	r := Text(strings.TrimSpace(b.String()))
	r.Display = AskUserDisplay{Questions: questions, Answers: given}
	return r
}
