package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/agentcli/agent/internal/policy"
)

// Limits of todo_write.
const (
	todoMax      = 200
	todoMaxChars = 2_000
)

//go:embed todo.md
var todoDescription string

const todoSchema = `{"type":"object","properties":{
"todos":{"type":"array","maxItems":200,"description":"The whole list, in order.","items":{"type":"object","properties":{
"content":{"type":"string","description":"What to do."},
"status":{"type":"string","enum":["pending","in_progress","completed","cancelled"]},
"activeForm":{"type":"string","description":"How it reads while it is being done."},
"id":{"type":"string"}},
"required":["content","status"]}}},
"required":["todos"]}`

// TodoStatus is how far a step is.
type TodoStatus string

// Statuses of steps.
const (
	TodoPending    TodoStatus = "pending"
	TodoInProgress TodoStatus = "in_progress"
	TodoCompleted  TodoStatus = "completed"
	TodoCancelled  TodoStatus = "cancelled"
)

// Todo is one step of the list.
type Todo struct {
	Content    string     `json:"content"`
	Status     TodoStatus `json:"status"`
	ActiveForm string     `json:"activeForm,omitempty"`
	ID         string     `json:"id,omitempty"`
}

// TodoList is the list of one conversation. The zero value is an empty list,
// ready to use by any number of goroutines.
type TodoList struct {
	mu    sync.Mutex
	todos []Todo // never changed in place
}

// Snapshot returns the list as it is now; it must not be changed. It is never
// nil.
func (l *TodoList) Snapshot() []Todo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.todos == nil {
		return []Todo{}
	}
	return l.todos
}

// Replace puts todos in place of the list and returns the list before it. It
// keeps no reference to todos. todo_write calls it; so does who resumes a
// conversation.
func (l *TodoList) Replace(todos []Todo) (before []Todo) {
	todos = slices.Clone(todos)
	if todos == nil {
		todos = []Todo{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before = l.todos; before == nil {
		before = []Todo{}
	}
	l.todos = todos
	return before
}

type todoInput struct {
	Todos []struct {
		Content    string `json:"content" required:"true"`
		Status     string `json:"status" required:"true"`
		ActiveForm string `json:"activeForm" alias:"active_form"`
		ID         string `json:"id"`
	} `json:"todos" required:"true"`
}

// TodoDisplay is the Display of a todo_write Result.
type TodoDisplay struct {
	OldTodos []Todo `json:"oldTodos"`
	NewTodos []Todo `json:"newTodos"`
}

// todoTool implements todo_write.
type todoTool struct {
	list *TodoList
	spec Spec
}

// NewTodoWrite returns the tool todo_write, which keeps its list in l.
func NewTodoWrite(l *TodoList) Tool {
	return &todoTool{list: l, spec: Spec{
		Name: "todo_write", Description: todoDescription, Schema: schema(todoSchema), Class: policy.ClassInternal,
		input: reflect.TypeFor[todoInput](),
	}}
}

// Spec implements Tool.
func (t *todoTool) Spec() Spec { return t.spec }

// Run implements Tool.
func (t *todoTool) Run(_ context.Context, call *Call) Result {
	var in todoInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	todos, err := in.list()
	if err != nil {
		return Fail(err.Error() + ". The list is unchanged")
	}
	before := t.list.Replace(todos)
	result := Text(todoReport(todos))
	result.Display = TodoDisplay{OldTodos: before, NewTodos: todos}
	return result
}

// list checks the input.
func (in *todoInput) list() ([]Todo, error) {
	if len(in.Todos) > todoMax {
		return nil, fmt.Errorf("%d steps are too many: at most %d", len(in.Todos), todoMax)
	}
	todos := make([]Todo, len(in.Todos))
	active := 0
	for i, t := range in.Todos {
		todo := Todo{Content: strings.TrimSpace(t.Content), Status: TodoStatus(t.Status), ActiveForm: t.ActiveForm, ID: t.ID}
		switch todo.Status {
		case TodoInProgress:
			active++
		case TodoPending, TodoCompleted, TodoCancelled:
		default:
			return nil, fmt.Errorf("todos[%d].status is %q: it must be pending, in_progress, completed or cancelled", i, t.Status)
		}
		if todo.Content == "" {
			return nil, fmt.Errorf("todos[%d].content is empty: say what to do", i)
		}
		if len(todo.Content) > todoMaxChars {
			return nil, fmt.Errorf("todos[%d].content is longer than %d bytes: be brief", i, todoMaxChars)
		}
		todos[i] = todo
	}
	if active > 1 {
		return nil, errors.New("more than one step is in_progress: mark the one you are working on, and the others pending or completed")
	}
	return todos, nil
}

// todoReport tells the model where it stands.
func todoReport(todos []Todo) string {
	if len(todos) == 0 {
		return "The list is empty now."
	}
	open, current := 0, ""
	for _, t := range todos {
		switch t.Status {
		case TodoPending:
			open++
		case TodoInProgress:
			open++
			current = t.Content
		}
	}
	switch {
	case open == 0:
		return "The list is saved: every step is done."
	case current == "":
		return fmt.Sprintf("The list is saved: %d of %d steps are open, none is in_progress. Mark the one that you begin with.", open, len(todos))
	}
	return fmt.Sprintf("The list is saved: %d of %d steps are open. Go on with: %s", open, len(todos), current)
}
