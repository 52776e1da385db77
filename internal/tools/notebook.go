package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/agentcli/agent/internal/policy"
)

//go:embed notebook.md
var notebookDescription string

const notebookSchema = `{"type":"object","properties":{
"notebook_path":{"type":"string","description":"The notebook to change: absolute, or relative to the working directory."},
"cell_id":{"type":"string","description":"The cell: its id, or cell-N counted from 0. With insert: the cell to insert behind; none: at the start."},
"new_source":{"type":"string","description":"The new source of the cell. Not needed with delete."},
"cell_type":{"type":"string","enum":["code","markdown","raw"],"description":"The type of the cell. Needed with insert; with replace the default is to keep it."},
"edit_mode":{"type":"string","enum":["replace","insert","delete"],"description":"Default: replace."}},
"required":["notebook_path"]}`

type notebookInput struct {
	Path   string  `json:"notebook_path" alias:"file_path,path,notebookPath" required:"true"`
	CellID string  `json:"cell_id" alias:"cellId,cell"`
	Source *string `json:"new_source" alias:"newSource,source"`
	Type   string  `json:"cell_type" alias:"cellType"`
	Mode   string  `json:"edit_mode" alias:"editMode,mode"`
}

// notebookTool implements notebook_edit.
type notebookTool struct {
	cfg  FileConfig
	spec Spec
}

func newNotebookTool(c FileConfig) *notebookTool {
	return &notebookTool{cfg: c, spec: Spec{
		Name: "notebook_edit", Description: strings.TrimSpace(notebookDescription), Schema: schema(notebookSchema), Class: policy.ClassEdit,
		Targets: []Target{{"notebook_path", TargetWrite}}, input: reflect.TypeFor[notebookInput](),
	}}
}

// Spec implements Tool.
func (t *notebookTool) Spec() Spec { return t.spec }

// notebookDisplay is the machine-readable form of an edited notebook.
type notebookDisplay struct {
	NotebookPath string `json:"notebook_path"`
	CellID       string `json:"cell_id,omitempty"`
	CellType     string `json:"cell_type,omitempty"`
	EditMode     string `json:"edit_mode"`
	NewSource    string `json:"new_source"`
}

// Run implements Tool.
func (t *notebookTool) Run(ctx context.Context, call *Call) Result {
	var in notebookInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	if err := in.check(); err != nil {
		return failed(err)
	}
	place, err := t.cfg.Roots.With(call.Granted).Resolve(in.Path)
	if err != nil {
		return failed(err)
	}
	if !place.Exists {
		return Fail("editing " + quotePath(in.Path) + ": no such file or directory" + nearNames(place))
	}
	var at cellPlace
	done, err := t.cfg.Roots.rewrite(ctx, place, func(now []byte, exists bool) ([]byte, error) {
		if !exists {
			return nil, toldError{fmt.Errorf("editing %s: no such file or directory", quotePath(in.Path))}
		}
		if err := t.cfg.State.check(t.cfg.Names, place.Path, in.Path, now); err != nil {
			return nil, toldError{err}
		}
		next, where, err := editNotebook(now, in)
		if err == nil && len(next) > maxRewriteBytes {
			err = fmt.Errorf("the file would have %d bytes; at most %d can be written", len(next), maxRewriteBytes)
		}
		if err != nil {
			return nil, toldError{fmt.Errorf("editing %s: %w. Nothing was written", quotePath(in.Path), err)}
		}
		at = where
		return next, nil
	})
	if err != nil {
		return failed(rewriteError(t.cfg, place, in.Path, "editing", err))
	}
	t.cfg.State.note(place.Path, done.next)
	return in.result(place, at)
}

// check finds what makes no sense, and fills in defaults.
func (in *notebookInput) check() error {
	switch in.Type {
	case "", "code", "markdown", "raw":
	default:
		return fmt.Errorf("cell_type is %q: use one of code, markdown, raw", in.Type)
	}
	switch in.Mode {
	case "":
		in.Mode = "replace"
	case "replace", "insert", "delete":
	default:
		return fmt.Errorf("edit_mode is %q: use one of replace, insert, delete", in.Mode)
	}
	switch {
	case in.Mode != "delete" && in.Source == nil:
		return fmt.Errorf("new_source is missing: edit_mode %s needs it", in.Mode)
	case in.Mode != "insert" && in.CellID == "":
		return fmt.Errorf("cell_id is missing: edit_mode %s needs it", in.Mode)
	case in.Mode == "insert" && in.Type == "":
		return fmt.Errorf("cell_type is missing: edit_mode insert needs it")
	}
	return nil
}

// cellPlace is the cell that an edit was about.
type cellPlace struct {
	index int
	id    string // empty: it has none
	kind  string
}

func (in *notebookInput) result(p Place, at cellPlace) Result {
	name := fmt.Sprintf("cell-%d", at.index)
	if at.id != "" {
		name = fmt.Sprintf("cell %q (cell-%d)", at.id, at.index)
	}
	verb := map[string]string{"replace": "Replaced the source of", "insert": "Inserted", "delete": "Deleted"}[in.Mode]
	d := notebookDisplay{NotebookPath: p.Named, CellID: at.id, CellType: at.kind, EditMode: in.Mode}
	if in.Source != nil {
		d.NewSource = *in.Source
	}
	r := Text(fmt.Sprintf("%s %s in %s.", verb, name, quotePath(in.Path)))
	r.Display = d
	return r
}

// jsonString encodes a string the way notebooks do: nothing escaped that need
// not be.
func jsonString(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string can always be encoded
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
