package tools

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/policy"
)

//go:embed write.md
var writeDescription string

const writeSchema = `{"type":"object","properties":{
"file_path":{"type":"string","description":"The file to write: absolute, or relative to the working directory."},
"content":{"type":"string","description":"The whole new content of the file."}},
"required":["file_path","content"]}`

type writeInput struct {
	FilePath string  `json:"file_path" alias:"path,absolute_path,filePath,filename" required:"true"`
	Content  *string `json:"content" alias:"contents,text" required:"true"`
}

// writeTool implements write_file.
type writeTool struct {
	cfg  FileConfig
	spec Spec
}

func newWriteTool(c FileConfig) *writeTool {
	return &writeTool{cfg: c, spec: Spec{
		Name: "write_file", Description: writeDescription, Schema: schema(writeSchema), Class: policy.ClassEdit,
		Targets: []Target{{"file_path", TargetWrite}}, input: reflect.TypeFor[writeInput](),
	}}
}

// Spec implements Tool.
func (t *writeTool) Spec() Spec { return t.spec }

// writeDisplay is the machine-readable form of a file that was written.
type writeDisplay struct {
	Type            string  `json:"type"` // create or update
	FilePath        string  `json:"filePath"`
	Content         string  `json:"content"` // empty when long
	StructuredPatch []hunk  `json:"structuredPatch"`
	OriginalFile    *string `json:"originalFile"` // null when new, long or not text
}

// Run implements Tool.
func (t *writeTool) Run(ctx context.Context, call *Call) Result {
	var in writeInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	if len(*in.Content) > maxRewriteBytes {
		return Fail(fmt.Sprintf("the content has %d bytes; at most %d can be written", len(*in.Content), maxRewriteBytes))
	}
	place, err := t.cfg.Roots.With(call.Granted).Resolve(in.FilePath)
	if err != nil {
		return failed(err)
	}
	done, err := t.cfg.Roots.rewrite(ctx, place, func(now []byte, exists bool) ([]byte, error) {
		if !exists {
			return []byte(*in.Content), nil
		}
		if err := t.cfg.State.check(t.cfg.Names, place.Path, in.FilePath, now); err != nil {
			return nil, toldError{err}
		}
		return keepForm(now, *in.Content), nil
	})
	if err != nil {
		return failed(rewriteError(t.cfg, place, in.FilePath, "writing", err))
	}
	t.cfg.State.note(place.Path, done.next)
	return writeResult(place, in.FilePath, *in.Content, done)
}

// keepForm gives content the line ends and the encoding of the file that it
// replaces: CRLF if that has nothing else, and its byte order mark.
func keepForm(old []byte, content string) []byte {
	enc := detectBOM(old)
	text := string(old)
	if enc.width() > 1 {
		text = enc.decode(old[len(enc.bom()):])
	}
	lines := strings.Count(text, "\n")
	if lines > 0 && strings.Count(text, "\r\n") == lines && !strings.Contains(content, "\r") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	if enc == encUTF8 {
		return []byte(content)
	}
	return append([]byte(enc.bom()), enc.encode(strings.TrimPrefix(content, "\ufeff"))...)
}

// toldError is an error that is written for the model already.
type toldError struct{ error }

// rewriteError puts a failed replacement in words for the model.
func rewriteError(c FileConfig, p Place, named, doing string, err error) error {
	var told toldError
	if errors.As(err, &told) {
		return told.error
	}
	var changed *changedError
	if !errors.As(err, &changed) {
		if errors.Is(err, errIsDir) {
			return fmt.Errorf("%s %s: it is a directory", doing, quotePath(named))
		}
		return pathError(doing, named, err)
	}
	if changed.saved == "" && changed.now != nil {
		if err := c.State.check(c.Names, p.Path, named, changed.now); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s %s: %w. Read it again with %s, then try again", doing, quotePath(named), changed, c.Names.Tool("read_file"))
}

// writeResult tells what was written.
func writeResult(p Place, named, content string, done rewritten) Result {
	d := writeDisplay{Type: "update", FilePath: p.Named, Content: content, StructuredPatch: []hunk{}}
	verb := "Updated"
	if done.created {
		d.Type, verb = "create", "Created"
	} else {
		d.StructuredPatch = diffHunks(done.old, done.next)
		if len(done.old) <= originalBytes && utf8.Valid(done.old) {
			old := string(done.old)
			d.OriginalFile = &old
		}
	}
	if len(content) > originalBytes {
		d.Content = ""
	}
	text := fmt.Sprintf("%s %s: %d lines, %d bytes.", verb, quotePath(named), countLines(done.next), len(done.next))
	if !done.created {
		text = fmt.Sprintf("%s %s: %d lines, %d bytes (before: %d lines, %d bytes).", verb, quotePath(named),
			countLines(done.next), len(done.next), countLines(done.old), len(done.old))
		if bytes.Equal(done.old, done.next) {
			text = quotePath(named) + " already had exactly this content; nothing changed."
		}
	}
	r := Text(text)
	r.Display = d
	return r
}

// countLines counts lines as an editor does: an unfinished last one counts.
func countLines(b []byte) int {
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
