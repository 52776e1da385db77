package tools

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentcli/agent/internal/policy"
)

type namedTool struct{ name string }

func (n namedTool) Spec() Spec                        { return Spec{Name: n.name} }
func (n namedTool) Run(context.Context, *Call) Result { return Text(n.name) }

func TestRegistryChangesWhileItIsRead(t *testing.T) {
	r := NewRegistry(namedTool{"read_file"}, namedTool{"edit"})
	if tool, ok := r.Lookup("Read"); !ok || tool.Spec().Name != "read_file" {
		t.Error("an alias is not understood")
	}
	before, version := r.All(), r.Version()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("mcp__s__%d", i)
			r.Add(namedTool{name})
			if _, ok := r.Lookup(name); !ok {
				t.Errorf("%s is not found", name)
			}
			if i%2 == 0 {
				r.Remove(func(s Spec) bool { return s.Name == name })
			}
		})
	}
	wg.Wait()
	if len(before) != 2 || before[0].Spec().Name != "read_file" {
		t.Error("a list that was handed out changed")
	}
	if got := len(r.All()); got != 6 {
		t.Errorf("%d tools, want 6", got)
	}
	if r.Version() == version {
		t.Error("the version is the same after changes")
	}
	if _, ok := r.Lookup("mcp__s__0"); ok {
		t.Error("a removed tool is found")
	}
}

// TestRegistryOrderIsTheSameInEachRun: tools of MCP servers come when they come,
// and a prompt that a provider keeps must not change with that.
func TestRegistryOrderIsTheSameInEachRun(t *testing.T) {
	r := NewRegistry(namedTool{"shell"}, namedTool{"edit"})
	r.Add(remoteTool{"mcp__b__x"}, remoteTool{"mcp__a__x"})
	r.Add(namedTool{"agent"})
	r.Add(remoteTool{"mcp__a__a"}, namedTool{"shell"})
	var got []string
	for _, tool := range r.All() {
		got = append(got, tool.Spec().Name)
	}
	if want := "shell edit agent mcp__a__a mcp__a__x mcp__b__x"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

type remoteTool struct{ name string }

func (r remoteTool) Spec() Spec { return Spec{Name: r.name, Class: policy.ClassMCP, Server: "s"} }

func (remoteTool) Run(context.Context, *Call) Result { return Text("") }
