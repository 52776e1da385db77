package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/policy"
)

//go:embed edit.md
var editDescription string

const editSchema = `{"type":"object","properties":{
"file_path":{"type":"string","description":"The file to change: absolute, or relative to the working directory."},
"old_string":{"type":"string","description":"The text to replace, exactly as it is in the file."},
"new_string":{"type":"string","description":"What to put in its place."},
"replace_all":{"type":"boolean","description":"Replace every occurrence. Default: false."}},
"required":["file_path","old_string","new_string"]}`

type editInput struct {
	FilePath   string  `json:"file_path" alias:"path,absolute_path,filePath,filename" required:"true"`
	Old        *string `json:"old_string" alias:"oldString,old_str" required:"true"`
	New        *string `json:"new_string" alias:"newString,new_str" required:"true"`
	ReplaceAll bool    `json:"replace_all" alias:"replaceAll,allow_multiple"`
	Expected   int     `json:"expected_replacements"`
}

// editTool implements edit.
type editTool struct {
	cfg  FileConfig
	spec Spec
}

func newEditTool(c FileConfig) *editTool {
	return &editTool{cfg: c, spec: Spec{
		Name: "edit", Description: editDescription, Schema: schema(editSchema), Class: policy.ClassEdit,
		Targets: []Target{{"file_path", TargetWrite}}, input: reflect.TypeFor[editInput](),
	}}
}

// Spec implements Tool.
func (t *editTool) Spec() Spec { return t.spec }

// editDisplay is the machine-readable form of an edit.
type editDisplay struct {
	FilePath        string  `json:"filePath"`
	OldString       string  `json:"oldString"`
	NewString       string  `json:"newString"`
	OriginalFile    *string `json:"originalFile"` // null when long or not text
	StructuredPatch []hunk  `json:"structuredPatch"`
	UserModified    bool    `json:"userModified"`
	ReplaceAll      bool    `json:"replaceAll"`
}

// Run implements Tool.
func (t *editTool) Run(ctx context.Context, call *Call) Result {
	var in editInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	if *in.Old == *in.New {
		return Fail("old_string and new_string are the same: there is nothing to change")
	}
	if in.Expected < 0 {
		return Fail("expected_replacements must be 1 or more")
	}
	place, err := t.cfg.Roots.With(call.Granted).Resolve(in.FilePath)
	if err != nil {
		return failed(err)
	}
	if *in.Old != "" && !place.Exists {
		return Fail("editing " + quotePath(in.FilePath) + ": no such file or directory" + nearNames(place))
	}
	var info editInfo
	done, err := t.cfg.Roots.rewrite(ctx, place, func(now []byte, exists bool) ([]byte, error) {
		next, i, err := t.change(place, in, now, exists)
		info = i
		return next, err
	})
	if err != nil {
		return failed(rewriteError(t.cfg, place, in.FilePath, "editing", err))
	}
	t.cfg.State.note(place.Path, done.next)
	if done.created {
		return writeResult(place, in.FilePath, *in.New, done)
	}
	return editResult(place, in, done, info)
}

// change makes the new content of the file.
func (t *editTool) change(p Place, in editInput, now []byte, exists bool) ([]byte, editInfo, error) {
	if !exists {
		if *in.Old != "" {
			return nil, editInfo{}, toldError{fmt.Errorf("editing %s: no such file or directory", quotePath(in.FilePath))}
		}
		return []byte(*in.New), editInfo{}, nil
	}
	if err := t.cfg.State.check(t.cfg.Names, p.Path, in.FilePath, now); err != nil {
		return nil, editInfo{}, toldError{err}
	}
	next, info, err := applyEdit(now, *in.Old, *in.New, in.ReplaceAll || in.Expected > 1)
	if err == nil && in.Expected > 0 && info.count != in.Expected {
		err = fmt.Errorf("old_string was found %d times (%s), not %d times as expected", info.count, atLines(info.lines), in.Expected)
	}
	if err == nil {
		err = checkLegacy(now, *in.New)
	}
	if err == nil && len(next) > maxRewriteBytes {
		err = fmt.Errorf("the file would have %d bytes; at most %d can be written", len(next), maxRewriteBytes)
	}
	if err != nil {
		return nil, editInfo{}, toldError{fmt.Errorf("editing %s: %w. Nothing was written", quotePath(in.FilePath), err)}
	}
	return next, info, nil
}

// checkLegacy refuses to put UTF-8 text into a file in another encoding: the
// mixture could be read by nobody.
func checkLegacy(content []byte, text string) error {
	if isASCII(text) || detectBOM(content) != encUTF8 || utf8.Valid(content) {
		return nil
	}
	var sample []byte
	for b := content; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r >= utf8.RuneSelf && n > 1 {
			return nil // UTF-8 with a few stray bytes
		}
		if n == 1 && b[0] >= utf8.RuneSelf && len(sample) < 4<<10 {
			sample = append(sample, b[:min(len(b), 4)]...)
		}
		b = b[n:]
	}
	return fmt.Errorf("the file is not UTF-8 (it looks like %s) and new_string has characters outside of ASCII, which would be written as UTF-8; use a command that knows the file's encoding, such as iconv", guessEncoding(sample))
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// editResult tells what was changed.
func editResult(p Place, in editInput, done rewritten, info editInfo) Result {
	times := "1 replacement"
	if info.count != 1 {
		times = fmt.Sprintf("%d replacements", info.count)
	}
	text := fmt.Sprintf("Edited %s: %s at %s%s.", quotePath(in.FilePath), times, atLines(info.lines), info.how.note())
	if s := info.snippet(); s != "" {
		text += " It now reads:\n" + s
	}
	d := editDisplay{
		FilePath: p.Named, OldString: *in.Old, NewString: *in.New,
		StructuredPatch: info.patch(), ReplaceAll: in.ReplaceAll || in.Expected > 1,
	}
	if len(done.old) <= originalBytes && utf8.Valid(done.old) {
		s := string(done.old)
		d.OriginalFile = &s
	}
	r := Text(text)
	r.Display = d
	return r
}

// atLines says "line 3" or "lines 3, 8, 12".
func atLines(lines []int) string {
	const most = 20
	var b strings.Builder
	b.WriteString("line")
	if len(lines) != 1 {
		b.WriteByte('s')
	}
	for i, n := range lines {
		if i == most {
			fmt.Fprintf(&b, ", ... (%d more)", len(lines)-most)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", n)
	}
	return b.String()
}

var errNoChange = errors.New("the file already reads like that: there is nothing to change")
