package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/agentcli/agent/internal/policy"
)

// globFiles is how many files glob returns; its description states it.
const globFiles = 1000

//go:embed glob.md
var globDescription string

const globSchema = `{"type":"object","properties":{
"pattern":{"type":"string","description":"The glob, such as **/*.go."},
"path":{"type":"string","description":"The directory to search in. Default: the working directory."}},
"required":["pattern"]}`

type globInput struct {
	Pattern string `json:"pattern" alias:"glob" required:"true"`
	Path    string `json:"path" alias:"dir_path,directory"`
}

// globTool implements glob.
type globTool struct {
	cfg  FileConfig
	spec Spec
}

func newGlobTool(c FileConfig) *globTool {
	return &globTool{cfg: c, spec: Spec{
		Name: "glob", Description: globDescription, Schema: schema(globSchema),
		Class: policy.ClassRead, ReadOnly: true,
		Targets: []Target{{"path", TargetSearch}, {"pattern", TargetGlob}}, input: reflect.TypeFor[globInput](),
	}}
}

// Spec implements Tool.
func (t *globTool) Spec() Spec { return t.spec }

// globDisplay is the machine-readable form of the files found.
type globDisplay struct {
	DurationMS int64    `json:"durationMs"`
	NumFiles   int      `json:"numFiles"`
	Filenames  []string `json:"filenames"`
	Truncated  bool     `json:"truncated"`
}

// globMatch is one file found.
type globMatch struct {
	path     string
	modified time.Time
}

// Run implements Tool.
func (t *globTool) Run(ctx context.Context, call *Call) Result {
	began := time.Now()
	var in globInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	roots := t.cfg.Roots.With(call.Granted)
	at, pattern, err := t.locate(roots, in)
	if err != nil {
		return failed(err)
	}
	found, err := t.find(ctx, at, pattern)
	if err != nil {
		return failed(pathError("looking for files in", in.Path, err))
	}
	return globResult(found, time.Since(began))
}

// locate returns where to begin and the pattern relative to it. The leading
// directories of the pattern that are no glob are taken to the place, so that
// absolute patterns and "../" work where the roots allow it.
func (t *globTool) locate(roots *Roots, in globInput) (Place, string, error) {
	pattern := filepath.ToSlash(in.Pattern)
	if !doublestar.ValidatePattern(pattern) {
		return Place{}, "", fmt.Errorf("pattern %q is not a glob: brackets or braces don't match", in.Pattern)
	}
	dir, rest := splitGlob(in.Path, pattern)
	at, err := roots.Resolve(dir)
	return at, rest, err
}

// find returns the files that match, newest first.
func (t *globTool) find(ctx context.Context, at Place, pattern string) ([]globMatch, error) {
	f, info, err := at.open()
	if err != nil {
		return nil, err
	}
	f.Close()
	if !info.IsDir() {
		return nil, errors.New("it is not a directory")
	}
	prefix := filepath.ToSlash(t.cfg.Roots.Relative(at.Named))
	var mu sync.Mutex
	var found []globMatch
	_, err = walk(ctx, at, &walkFilter{hidden: true}, t.cfg.Workers, func(v visited) {
		if ok, err := doublestar.Match(pattern, v.rel); err != nil || !ok {
			return
		}
		info, err := v.dir.Lstat(v.name)
		if err != nil {
			return // gone meanwhile
		}
		m := globMatch{path: path.Join(prefix, v.rel), modified: info.ModTime()}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, m)
	})
	slices.SortFunc(found, func(a, b globMatch) int {
		if c := b.modified.Compare(a.modified); c != 0 {
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	return found, err
}

func globResult(found []globMatch, took time.Duration) Result {
	shown := found[:min(len(found), globFiles)]
	d := globDisplay{
		DurationMS: took.Milliseconds(), NumFiles: len(shown), Filenames: make([]string, 0, len(shown)),
		Truncated: len(shown) < len(found),
	}
	var b strings.Builder
	for _, m := range shown {
		d.Filenames = append(d.Filenames, m.path)
		b.WriteString(quotePath(m.path))
		b.WriteByte('\n')
	}
	if len(found) == 0 {
		b.WriteString("No files found.")
	}
	if d.Truncated {
		fmt.Fprintf(&b, "[the newest %d of %d files; use a narrower pattern or path for the others]", len(shown), len(found))
	}
	r := Text(strings.TrimSuffix(b.String(), "\n"))
	r.Display = d
	return r
}
