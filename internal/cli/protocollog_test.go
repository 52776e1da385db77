package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agentcli/agent/internal/streamjson"
)

// TestLinesOfBothDirectionsAreKept, however they come, and the reader gets them
// unchanged.
func TestLinesOfBothDirectionsAreKept(t *testing.T) {
	t.Parallel()
	const text = "{\"a\":1}\n\nno JSON\n{\"b\":\"" + "\u2028" + "\"}\n{\"last\":true}"
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"at once":      func(r io.Reader) io.Reader { return r },
		"byte by byte": iotest.OneByteReader,
		"with the end": iotest.DataErrReader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "lines.jsonl")
			w := &wiring{o: &options{recordProtocol: file}}
			if err := w.buildProtocolLog(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(w.protocol.input(wrap(strings.NewReader(text))))
			if err != nil || string(got) != text {
				t.Errorf("the reader got %q, %v", got, err)
			}
			var out bytes.Buffer
			sent := streamjson.NewWriter(&out, streamjson.WriterOptions{})
			if err := w.protocol.output(sent).Send(&streamjson.KeepAlive{}); err != nil {
				t.Error(err)
			}
			if err := sent.Close(context.Background()); err != nil {
				t.Error(err)
			}
			w.close()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for line := range strings.Lines(string(data)) {
				var l protocolLine
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				kept = append(kept, l.Dir+" "+string(l.Msg)+l.Raw)
			}
			want := []string{`in {"a":1}`, "in ", "in no JSON", "in {\"b\":\"\\u2028\"}", `in {"last":true}`, "out " + strings.TrimSpace(out.String())}
			if !slices.Equal(kept, want) {
				t.Errorf("kept %q, want %q", kept, want)
			}
		})
	}
}
