package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
)

// FileConfig is what the file tools work with.
type FileConfig struct {
	Roots *Roots     // where they may act; required
	State *FileState // what the conversation has read; required
	// Hidden says why the contents of the file at an absolute path may not be
	// shown without a person's word, "" if they may. Searches leave such files
	// out; a call that names one was judged before. It must be safe for
	// concurrent use. nil: nothing is hidden.
	Hidden func(abs string) string
	// Names are those of tools in results; nil: ours.
	Names *Names
	// Workers bounds how many goroutines one search uses; 0: one per CPU, at
	// most 8.
	Workers int
}

// NewFileTools returns read_file, write_file, edit, notebook_edit, glob,
// grep_search and list_directory. They share one FileState, so they belong to one
// conversation; the Roots may be shared by many.
func NewFileTools(c FileConfig) []Tool {
	if c.Workers <= 0 {
		c.Workers = min(runtime.GOMAXPROCS(0), 8)
	}
	return []Tool{
		newReadTool(c), newWriteTool(c), newEditTool(c), newNotebookTool(c),
		newGlobTool(c), newGrepTool(c), newListTool(c),
	}
}

// checkContext returns why ctx ended, in words for the model, or nil.
func checkContext(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return nil
}

// failed is Fail for an error.
func failed(err error) Result { return Fail(err.Error()) }

// schema is a JSON Schema as it is written in the source.
func schema(s string) json.RawMessage { return json.RawMessage(s) }
