package tools

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeTodos(list *TodoList, input string) Result {
	return NewTodoWrite(list).Run(context.Background(), &Call{Input: json.RawMessage(input)})
}

func TestTodoWriteReplacesTheList(t *testing.T) {
	t.Parallel()
	list := &TodoList{}
	first := writeTodos(list, `{"todos":[{"content":" a ","status":"in_progress","activeForm":"doing a","id":"1"},{"content":"b","status":"pending"}]}`)
	want := []Todo{{Content: "a", Status: TodoInProgress, ActiveForm: "doing a", ID: "1"}, {Content: "b", Status: TodoPending}}
	if diff := cmp.Diff(want, list.Snapshot()); diff != "" || first.IsError {
		t.Error(diff, shown(first))
	}
	if got := shown(first); !strings.Contains(got, "2 of 2 steps are open. Go on with: a") {
		t.Errorf("got %q", got)
	}
	second := writeTodos(list, `{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"cancelled"}]}`)
	if diff := cmp.Diff(TodoDisplay{OldTodos: want, NewTodos: list.Snapshot()}, second.Display); diff != "" {
		t.Error(diff)
	}
	if got := shown(second); !strings.Contains(got, "every step is done") {
		t.Errorf("got %q", got)
	}
	if r := writeTodos(list, `{"todos":[{"content":"c","status":"pending"}]}`); !strings.Contains(shown(r), "none is in_progress") {
		t.Errorf("got %q", shown(r))
	}
	if r := writeTodos(list, `{"todos":[]}`); r.IsError || len(list.Snapshot()) != 0 {
		t.Errorf("emptying: %q", shown(r))
	}
}

func TestTodoDisplayHasListsEvenWhenEmpty(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(writeTodos(&TodoList{}, `{"todos":[]}`).Display)
	if err != nil || string(got) != `{"oldTodos":[],"newTodos":[]}` {
		t.Errorf("%s %v", got, err)
	}
}

func TestTodoWriteRefusesBadListsAndKeepsTheOldOne(t *testing.T) {
	t.Parallel()
	list := &TodoList{}
	writeTodos(list, `{"todos":[{"content":"keep","status":"pending"}]}`)
	for input, want := range map[string]string{
		`{}`: "todos is missing",
		`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`: "more than one step is in_progress",
		`{"todos":[{"content":"a","status":"done"}]}`:                                               "must be pending, in_progress, completed or cancelled",
		`{"todos":[{"content":"a"}]}`:                                                               "status is missing",
		`{"todos":[{"content":" ","status":"pending"}]}`:                                            "todos[0].content is empty",
		`{"todos":"x"}`: "todos must be a list",
		`{"todos":[` + strings.Repeat(`{"content":"a","status":"pending"},`, 200) + `{"content":"a","status":"pending"}]}`: "at most 200",
		`{"todos":[{"content":"` + strings.Repeat("x", 3000) + `","status":"pending"}]}`:                                   "be brief",
	} {
		if r := writeTodos(list, input); !r.IsError || !strings.Contains(shown(r), want) {
			t.Errorf("%.60s gave %q", input, shown(r))
		}
	}
	if got := list.Snapshot(); len(got) != 1 || got[0].Content != "keep" {
		t.Errorf("the list is now %v", got)
	}
}

func TestTodoListIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	list := &TodoList{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				writeTodos(list, `{"todos":[{"content":"a","status":"pending"},{"content":"b","status":"pending"}]}`)
				if n := len(list.Snapshot()); n != 0 && n != 2 {
					t.Errorf("half a list: %d", n)
				}
			}
		})
	}
	wg.Wait()
}
