package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

// listEntries is how many entries list_directory shows; its description states
// it.
const listEntries = 1000

//go:embed list.md
var listDescription string

const listSchema = `{"type":"object","properties":{
"path":{"type":"string","description":"The directory: absolute, or relative to the working directory."},
"ignore":{"type":"array","items":{"type":"string"},"description":"Globs of names to leave out."}},
"required":["path"]}`

type listInput struct {
	Path   string   `json:"path" alias:"dir_path,directory,file_path"`
	Ignore []string `json:"ignore"`
}

// listTool implements list_directory.
type listTool struct {
	cfg  FileConfig
	spec Spec
}

func newListTool(c FileConfig) *listTool {
	return &listTool{cfg: c, spec: Spec{
		Name: "list_directory", Description: listDescription, Schema: schema(listSchema),
		Class: policy.ClassRead, ReadOnly: true,
		Targets: []Target{{"path", TargetSearch}}, input: reflect.TypeFor[listInput](),
	}}
}

// Spec implements Tool.
func (t *listTool) Spec() Spec { return t.spec }

// listDisplay is the machine-readable form of a listing.
type listDisplay struct {
	Path    string      `json:"path"`
	Entries []listEntry `json:"entries"`
	Ignored int         `json:"ignored"`
	Omitted int         `json:"omitted"`
}

type listEntry struct {
	Name string `json:"name"`
	Type string `json:"type"` // directory, file, symlink or other
	Size int64  `json:"size,omitempty"`

	target string // of a symlink
}

// Run implements Tool.
func (t *listTool) Run(ctx context.Context, call *Call) Result {
	var in listInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	if in.Path == "" {
		in.Path = "."
	}
	var own ignoreRules
	for _, g := range in.Ignore {
		if err := own.add(g); err != nil {
			return failed(err)
		}
	}
	at, err := t.cfg.Roots.With(call.Granted).Resolve(in.Path)
	if err != nil {
		return failed(err)
	}
	d, err := list(ctx, at, &own)
	if errors.Is(err, fs.ErrNotExist) && at.rel != "." {
		return Fail(pathError("listing", in.Path, err).Error() + nearNames(at))
	}
	if err != nil {
		return failed(pathError("listing", in.Path, err))
	}
	r := Text(d.describe(in.Path))
	r.Display = d
	return r
}

// list reads a directory.
func list(ctx context.Context, at Place, own *ignoreRules) (listDisplay, error) {
	f, info, err := at.open()
	if err != nil {
		return listDisplay{}, err
	}
	f.Close()
	if !info.IsDir() {
		return listDisplay{}, errors.New("it is a file, not a directory: read it")
	}
	root, err := at.openDir(at.rel, false)
	if err != nil {
		return listDisplay{}, err
	}
	defer root.Close()
	entries, err := readEntries(root)
	if err != nil {
		return listDisplay{}, err
	}
	abs := filepath.ToSlash(at.Path)
	level := levelOf(levelsAbove(at.Path), root, abs, entries)
	d := listDisplay{Path: at.Named, Entries: []listEntry{}}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	for _, e := range entries {
		if err := checkContext(ctx); err != nil {
			return listDisplay{}, err
		}
		isDir := e.IsDir()
		switch {
		case level.match(joinAbs(abs, e.Name()), isDir) == ignored, own.match(e.Name(), isDir) == ignored:
			d.Ignored++
		case len(d.Entries) >= listEntries:
			d.Omitted++
		default:
			d.Entries = append(d.Entries, describeEntry(root, e))
		}
	}
	return d, nil
}

func describeEntry(root *os.Root, e fs.DirEntry) listEntry {
	out := listEntry{Name: e.Name(), Type: "other"}
	switch mode := e.Type(); {
	case mode.IsDir():
		out.Type = "directory"
	case mode&fs.ModeSymlink != 0:
		out.Type = "symlink"
		out.target, _ = root.Readlink(e.Name()) // shown if it can be read
	case mode.IsRegular():
		out.Type = "file"
		if info, err := root.Lstat(e.Name()); err == nil {
			out.Size = info.Size()
		}
	}
	return out
}

func (d listDisplay) describe(path string) string {
	var b strings.Builder
	if len(d.Entries) == 0 && d.Ignored == 0 {
		return quotePath(path) + " is empty."
	}
	for _, e := range d.Entries {
		b.WriteString(quotePath(e.Name))
		switch e.Type {
		case "directory":
			b.WriteByte('/')
		case "file":
			fmt.Fprintf(&b, " (%d bytes)", e.Size)
		case "symlink":
			b.WriteString(" -> " + quotePath(e.target))
		default:
			b.WriteString(" (special file)")
		}
		b.WriteByte('\n')
	}
	if d.Ignored > 0 {
		fmt.Fprintf(&b, "[%d ignored entries are not listed]\n", d.Ignored)
	}
	if d.Omitted > 0 {
		fmt.Fprintf(&b, "[%d more entries are not listed; search by name, or list a directory beneath]\n", d.Omitted)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
