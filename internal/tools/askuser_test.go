package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentcli/agent/internal/policy"
)

// askerFunc is an Asker made of a function.
type askerFunc func(context.Context, policy.Question) (policy.Answer, error)

func (f askerFunc) Ask(ctx context.Context, q policy.Question) (policy.Answer, error) {
	return f(ctx, q)
}

const twoQuestions = `{"questions":[
{"question":"Which database?","header":"DB","options":[{"label":"SQLite","description":"a file"},{"label":"Postgres"}],"multiSelect":false},
{"question":"Which name?"}]}`

func ask(ctx context.Context, a policy.Asker, input string) Result {
	return NewAskUser(a).Run(ctx, &Call{ID: "toolu_1", Input: json.RawMessage(input)})
}

func TestAskUserPutsTheQuestionsAndReturnsTheAnswers(t *testing.T) {
	t.Parallel()
	var put policy.Question
	r := ask(context.Background(), askerFunc(func(_ context.Context, q policy.Question) (policy.Answer, error) {
		put = q
		return policy.Answer{Allow: true, Answers: map[string]string{"Which database?": "SQLite", "not asked": "x"}}, nil
	}), twoQuestions)
	want := policy.AskUser{ToolUseID: "toolu_1", Questions: []policy.UserQuestion{
		{Question: "Which database?", Header: "DB", Options: []policy.UserOption{{Label: "SQLite", Description: "a file"}, {Label: "Postgres"}}},
		{Question: "Which name?"},
	}}
	if diff := cmp.Diff(want, put); diff != "" {
		t.Error(diff)
	}
	if got := shown(r); r.IsError || got != "Question: Which database?\nAnswer: SQLite\n\nQuestion: Which name?\nAnswer: (not answered)" {
		t.Errorf("error %v, got %q", r.IsError, got)
	}
	if diff := cmp.Diff(AskUserDisplay{Questions: want.Questions, Answers: map[string]string{"Which database?": "SQLite"}}, r.Display); diff != "" {
		t.Error(diff)
	}
}

// users.md row 14: an answer is never invented.
func TestAskUserNeverInventsAnAnswer(t *testing.T) {
	t.Parallel()
	say := func(a policy.Answer, err error) policy.Asker {
		return askerFunc(func(context.Context, policy.Question) (policy.Answer, error) { return a, err })
	}
	cases := []struct {
		name  string
		asker policy.Asker
		want  string
	}{
		{"nobody there", policy.Nobody{}, "Nobody is there to answer"},
		{"failed", say(policy.Answer{}, errors.New("pipe closed")), "could not be asked: pipe closed"},
		{"declined", say(policy.Answer{Message: "later"}, nil), "declined to answer. They say: later"},
		{"declined with answers", say(policy.Answer{Answers: map[string]string{"Which name?": "x"}}, nil), "declined to answer"},
		{"allowed without answers", say(policy.Answer{Allow: true}, nil), "answered none"},
		{"blank answers", say(policy.Answer{Allow: true, Answers: map[string]string{"Which name?": " "}}, nil), "answered none"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := ask(context.Background(), c.asker, twoQuestions)
			if got := shown(r); !r.IsError || !strings.Contains(got, c.want) || strings.Contains(got, "Answer:") {
				t.Errorf("error %v, got %q", r.IsError, got)
			}
		})
	}
}

func TestAskUserEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	r := ask(ctx, askerFunc(func(ctx context.Context, _ policy.Question) (policy.Answer, error) {
		<-ctx.Done()
		return policy.Answer{}, ctx.Err()
	}), twoQuestions)
	if got := shown(r); !r.IsError || !strings.Contains(got, "not answered: interrupted") {
		t.Errorf("got %q", got)
	}
}

func TestAskUserRefusesBadQuestions(t *testing.T) {
	t.Parallel()
	asker := askerFunc(func(context.Context, policy.Question) (policy.Answer, error) {
		t.Error("asked")
		return policy.Answer{}, nil
	})
	for input, want := range map[string]string{
		`{}`:               "questions is missing",
		`{"questions":[]}`: "ask one to 4",
		`{"questions":[{"question":"a"},{"question":"b"},{"question":"c"},{"question":"d"},{"question":"e"}]}`: "ask one to 4",
		`{"questions":[{"question":" "}]}`:                                                                      "question is empty",
		`{"questions":[{"question":"a"},{"question":"a"}]}`:                                                     "asked twice",
		`{"questions":[{"question":"a","options":[{"label":""}]}]}`:                                             "label is empty",
		`{"questions":[{"question":"a","options":[` + strings.Repeat(`{"label":"x"},`, 6) + `{"label":"x"}]}]}`: "at most 6",
	} {
		if r := ask(context.Background(), asker, input); !r.IsError || !strings.Contains(shown(r), want) {
			t.Errorf("%s gave %q", input, shown(r))
		}
	}
}
