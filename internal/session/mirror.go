package session

import (
	"encoding/json"

	"github.com/agentcli/agent/internal/streamjson"
)

// MirrorFrames are the frames with records that were added to a transcript, for
// hosts that keep a copy of it (--session-mirror). Records that are too long
// for a frame together get several; one that is too long alone is left out. It
// may be called from any goroutine.
func (f *Facts) MirrorFrames(path string, records []json.RawMessage) []streamjson.Message {
	limit := f.MaxFrame
	if limit == 0 {
		limit = streamjson.MaxFrame
	}
	room := limit - len(path)*6 - 100 // the frame itself, its path escaped
	var out []streamjson.Message
	for len(records) > 0 {
		n, size := 0, 0
		for n < len(records) && size+len(records[n])+1 <= room {
			size += len(records[n]) + 1
			n++
		}
		if n == 0 {
			records = records[1:]
			continue
		}
		out = append(out, &streamjson.Unknown{Type: "transcript_mirror", Raw: encode(struct {
			Type    string            `json:"type"`
			Path    string            `json:"filePath"`
			Entries []json.RawMessage `json:"entries"`
		}{"transcript_mirror", path, records[:n]})})
		records = records[n:]
	}
	return out
}
