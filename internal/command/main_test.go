package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// session is all parts of an Env, in memory.
type session struct {
	model, mode string
	cleared     bool
	ran         []string // shell commands
	files       map[string]string
}

func (s *session) Model() string    { return s.model }
func (s *session) Models() []string { return []string{"one", "two"} }
func (s *session) SetModel(_ context.Context, name string) error {
	if name == "none" {
		return errors.New("no model none")
	}
	s.model = name
	return nil
}
func (s *session) Mode() string    { return s.mode }
func (s *session) Modes() []string { return []string{"default", "plan"} }
func (s *session) SetMode(mode string) error {
	if mode != "default" && mode != "plan" {
		return fmt.Errorf("unknown mode %q", mode)
	}
	s.mode = mode
	return nil
}
func (s *session) Rules() []Rule               { return []Rule{{"deny", "Read(.env)", "user settings"}} }
func (s *session) Clear(context.Context) error { s.cleared = true; return nil }
func (s *session) Compact(_ context.Context, instructions string) (Compacted, error) {
	if instructions == "fail" {
		return Compacted{}, errors.New("the model is away")
	}
	return Compacted{Before: 900, After: 40}, nil
}
func (s *session) ContextUse(context.Context) (ContextUse, error) {
	return ContextUse{Window: 1000, Parts: []Part{{"system prompt", 100}, {"messages", 150}}}, nil
}
func (s *session) Usage() Used {
	return Used{Turns: 2, Duration: 3 * time.Second, Models: []ModelUse{{Model: "one", Requests: 3, Input: 10, Output: 5, Cost: 0.5, Priced: true}}}
}
func (s *session) Servers() []Server {
	return []Server{{Name: "calc", Status: "connected", Type: "stdio", Tools: 2}, {Name: "web", Status: "failed", Type: "http", Error: "refused\nthere"}}
}
func (s *session) Agents() []Item { return []Item{{"general", "does anything"}} }
func (s *session) Tools() []Item  { return []Item{{"read_file", "Reads"}} }
func (s *session) Hooks() []Hook  { return []Hook{{Event: "Stop", Does: "the host"}} }
func (s *session) Status() []Item {
	return []Item{{"session", "id-1"}, {"model", s.model}}
}
func (s *session) TranscriptPath() string { return "/t/id-1.jsonl" }
func (s *session) RunShell(_ context.Context, command string) (string, error) {
	if strings.Contains(command, "forbidden") {
		return "", errors.New("denied by the rule x")
	}
	s.ran = append(s.ran, command)
	return "out $1 {{args}}\n", nil
}
func (s *session) ReadFile(_ context.Context, path string) (string, error) {
	if strings.HasPrefix(path, "/etc") {
		return "", errors.New("outside of the allowed directories")
	}
	text, ok := s.files[path]
	if !ok {
		return "", fs.ErrNotExist
	}
	return text, nil
}
func (s *session) FindFiles(_ context.Context, typed string, limit int) []string {
	var found []string
	for _, p := range []string{"main.go", "map.go"} {
		if strings.HasPrefix(p, typed) && len(found) < limit {
			found = append(found, p)
		}
	}
	return found
}

func newSession() (*session, Env) {
	s := &session{model: "one", mode: "default", files: map[string]string{"a.txt": "text of a !`rm`"}}
	return s, Env{
		Models: s, Modes: s, Rules: s, Conversation: s, Compactor: s, Context: s, Usage: s, Servers: s,
		Agents: s, Tools: s, Hooks: s, Status: s, Transcript: s, Files: s, Shell: s,
	}
}
