package session

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentcli/agent/internal/streamjson"
)

func TestMirrorFramesFit(t *testing.T) {
	t.Parallel()
	f := &Facts{MaxFrame: 1000}
	short := json.RawMessage(`{"a":"` + strings.Repeat("x", 300) + `"}`)
	long := json.RawMessage(`{"a":"` + strings.Repeat("x", 2000) + `"}`)
	out := &sink{}
	for _, m := range f.MirrorFrames("/p", []json.RawMessage{short, short, short, long, short}) {
		if !streamjson.Fits(m, f.MaxFrame) {
			t.Errorf("a frame of %d bytes", streamjson.Size(m))
		}
		_ = out.Send(m)
	}
	n := 0
	for _, m := range decode(t, out.lines) {
		if m["type"] != "transcript_mirror" || m["filePath"] != "/p" {
			t.Errorf("%v", m)
		}
		n += len(m["entries"].([]any))
	}
	if n != 4 || len(out.lines) != 3 {
		t.Errorf("%d entries in %d frames", n, len(out.lines))
	}
}
