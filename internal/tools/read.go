package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"

	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// Limits of read_file; its description states them.
const (
	readLines     = 2000
	readLineChars = 2000
	readBytes     = 256 << 10
	readBytesMax  = 1 << 20 // with an explicit limit
	imageBytes    = 5 << 20
)

//go:embed read.md
var readDescription string

const readSchema = `{"type":"object","properties":{
"file_path":{"type":"string","description":"The file to read: absolute, or relative to the working directory."},
"offset":{"type":"integer","minimum":1,"description":"The first line to read, counted from 1."},
"limit":{"type":"integer","minimum":1,"description":"How many lines to read."},
"pages":{"type":"string","description":"For a PDF: the pages to read, as 3, 2-5 or 10-."}},
"required":["file_path"]}`

type readInput struct {
	FilePath string `json:"file_path" alias:"path,absolute_path,filePath,filename" required:"true"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
	Pages    string `json:"pages"`
}

// readTool implements read_file.
type readTool struct {
	cfg  FileConfig
	spec Spec
}

func newReadTool(c FileConfig) *readTool {
	return &readTool{cfg: c, spec: Spec{
		Name: "read_file", Description: readDescription, Schema: schema(readSchema),
		Class: policy.ClassRead, ReadOnly: true,
		Targets: []Target{{"file_path", TargetRead}}, input: reflect.TypeFor[readInput](),
	}}
}

// Spec implements Tool.
func (t *readTool) Spec() Spec { return t.spec }

// Run implements Tool.
func (t *readTool) Run(ctx context.Context, call *Call) Result {
	var in readInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	if in.Offset < 0 || in.Limit < 0 {
		return Fail("offset and limit must be 1 or more")
	}
	place, err := t.cfg.Roots.With(call.Granted).Resolve(in.FilePath)
	if err != nil {
		return failed(err)
	}
	f, info, err := place.open()
	if err != nil {
		return t.cannotOpen(place, in.FilePath, err)
	}
	defer f.Close()
	if info.IsDir() {
		return Fail(quotePath(in.FilePath) + " is a directory: use " + t.cfg.Names.Tool("list_directory") + " to see what is in it")
	}
	result, err := t.read(ctx, f, info, place, in)
	if err != nil {
		return failed(pathError("reading", in.FilePath, err))
	}
	return result
}

func (t *readTool) cannotOpen(p Place, named string, err error) Result {
	if errors.Is(err, fs.ErrNotExist) {
		return Fail(pathError("reading", named, err).Error() + nearNames(p))
	}
	return failed(pathError("reading", named, err))
}

// read gives the open file in the form that suits its content.
func (t *readTool) read(ctx context.Context, f *os.File, info fs.FileInfo, p Place, in readInput) (Result, error) {
	head := make([]byte, min(info.Size(), sniffBytes))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Result{}, err
	}
	head = head[:n]
	kind, what := sniff(head)
	switch kind {
	case kindImage:
		return readImage(f, head, info, p, what)
	case kindPDF:
		return readPDF(ctx, f, info, p, in.Pages)
	case kindBinary:
		return Fail(fmt.Sprintf("%s is a binary file: %s, %d bytes. It can't be shown as text; use a command that knows the format", quotePath(in.FilePath), what, info.Size())), nil
	}
	if in.Pages != "" {
		return Fail("pages is for PDF files only; use offset and limit"), nil
	}
	return t.readText(ctx, f, head, info.Size(), p, in)
}

// readText shows the lines asked for. The rest of the file is read too, to
// know its length and to recognise later changes, unless it is larger than
// anything this package edits.
func (t *readTool) readText(ctx context.Context, f io.Reader, head []byte, size int64, p Place, in readInput) (Result, error) {
	enc := detectBOM(head)
	whole := size <= maxRewriteBytes
	sum := sha256.New()
	var src io.Reader = bytes.NewReader(head)
	if int64(len(head)) < size {
		src = io.MultiReader(src, io.LimitReader(f, size-int64(len(head))))
	}
	if whole {
		src = io.TeeReader(src, sum)
	}
	if _, err := io.CopyN(io.Discard, src, int64(len(enc.bom()))); err != nil && !errors.Is(err, io.EOF) {
		return Result{}, err
	}
	if enc.width() > 1 {
		src = &wideReader{r: src, enc: enc}
	}
	page := newPage(in.Offset, in.Limit)
	if err := page.fill(ctx, src, size, whole); err != nil {
		return Result{}, err
	}
	if whole {
		t.noteRead(p, head, size, sum.Sum(nil))
	}
	return page.result(p, enc), nil
}

func (t *readTool) noteRead(p Place, head []byte, size int64, sum []byte) {
	print := fingerprint{size: size}
	copy(print.hash[:], sum)
	var content []byte
	if int64(len(head)) == size {
		content = head
	}
	t.cfg.State.notePrint(p.Path, print, content)
}

// imageDisplay is the machine-readable form of a picture that was read.
type imageDisplay struct {
	Type string    `json:"type"`
	File imageFile `json:"file"`
}

type imageFile struct {
	FilePath     string `json:"filePath"`
	Type         string `json:"type"`
	OriginalSize int64  `json:"originalSize"`
}

// readImage gives a picture as it is.
func readImage(f io.Reader, head []byte, info fs.FileInfo, p Place, media string) (Result, error) {
	if info.Size() > imageBytes {
		return Fail(fmt.Sprintf("%s is a picture (%s) of %d bytes; at most %d bytes can be shown. Make a smaller copy of it first", quotePath(p.Named), media, info.Size(), imageBytes)), nil
	}
	data, err := readSized(io.MultiReader(bytes.NewReader(head), io.LimitReader(f, imageBytes)), info.Size())
	if err != nil {
		return Result{}, err
	}
	return Result{
		Blocks:  []model.Block{model.Image{MediaType: media, Data: data}},
		Display: imageDisplay{Type: "image", File: imageFile{FilePath: p.Named, Type: media, OriginalSize: int64(len(data))}},
	}, nil
}
