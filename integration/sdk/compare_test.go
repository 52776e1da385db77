package sdk

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agentcli/agent/internal/testkit"
)

// compare says how our frames differ from the recorded ones: the sequences are
// brought in line by kind, and pairs compared value by value.
//
//   - KIND            only the recording has this frame
//   - KIND            only we have it
//     ~ KIND.PATH: ...  a value differs
func compare(recorded, ours []testkit.Frame, dir string) []string {
	a, b := comparable(recorded), comparable(ours)
	var out []string
	for _, pair := range align(a, b) {
		switch {
		case pair[1] == nil:
			out = append(out, "- "+kindOf(pair[0]))
		case pair[0] == nil:
			out = append(out, "+ "+kindOf(pair[1]))
		default:
			out = append(out, values("~ "+kindOf(pair[0]), normal("", map[string]any(pair[0]), "/w"), normal("", map[string]any(pair[1]), dir))...)
		}
	}
	return out
}

// comparable are the frames that are compared in order.
func comparable(list []testkit.Frame) []testkit.Frame {
	return slices.DeleteFunc(slices.Clone(list), aside)
}

// align pairs frames of the same kind, as many as possible in order.
func align(a, b []testkit.Frame) [][2]testkit.Frame {
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if same(a[i], b[j]) {
				best[i][j] = best[i+1][j+1] + 1
			}
		}
	}
	var out [][2]testkit.Frame
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && same(a[i], b[j]):
			out = append(out, [2]testkit.Frame{a[i], b[j]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && best[i+1][j] >= best[i][j+1]:
			out = append(out, [2]testkit.Frame{a[i], nil})
			i++
		default:
			out = append(out, [2]testkit.Frame{nil, b[j]})
			j++
		}
	}
	return out
}

// same reports whether two frames are counterparts: of one kind, answers also
// of one id, and what belongs to sub-agents apart from the rest.
func same(a, b testkit.Frame) bool {
	ka, kb := kindOf(a), kindOf(b)
	if a.String("type") == "result" && b.String("type") == "result" {
		return true
	}
	if a.String("type") == "control_response" && b.String("type") == "control_response" {
		return a.String("response.request_id") == b.String("response.request_id")
	}
	return ka == kb && (a["parent_tool_use_id"] == nil) == (b["parent_tool_use_id"] == nil)
}

// varies are names of values that are never the same twice: only that they are
// there is compared.
var varies = []string{
	"uuid", "session_id", "id", "request_id", "duration_ms", "duration_api_ms", "ttft_ms", "cwd", "qwen_code_version", "generatedAt", "pid",
}

// ownLists are lists of what a program has: ours are others.
var ownLists = []string{"tools", "slash_commands", "agents", "commands", "builtinTools", "capabilities"}

// normal replaces what can't be the same.
func normal(key string, v any, dir string) any {
	if v != nil {
		switch {
		case slices.Contains(varies, key):
			if s, ok := v.(string); !ok || !strings.HasPrefix(s, "call_") {
				return "(varies)"
			}
		case slices.Contains(ownLists, key):
			return "(own list)"
		}
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = normal(k, e, dir)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normal("", e, dir)
		}
		return out
	case string:
		return strings.ReplaceAll(v, dir, "/w")
	}
	return v
}

// values says where two values differ.
func values(at string, a, b any) []string {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	ma, oka := a.(map[string]any)
	mb, okb := b.(map[string]any)
	if oka && okb {
		keys := maps.Clone(ma)
		maps.Copy(keys, mb)
		var out []string
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			va, ina := ma[k]
			vb, inb := mb[k]
			switch {
			case !inb:
				out = append(out, fmt.Sprintf("%s.%s: %s, ours has none", at, k, short(va)))
			case !ina:
				out = append(out, fmt.Sprintf("%s.%s: none, ours %s", at, k, short(vb)))
			default:
				out = append(out, values(at+"."+k, va, vb)...)
			}
		}
		return out
	}
	la, oka := a.([]any)
	lb, okb := b.([]any)
	if oka && okb && len(la) == len(lb) {
		var out []string
		for i := range la {
			out = append(out, values(at+"[]", la[i], lb[i])...)
		}
		return out
	}
	return []string{fmt.Sprintf("%s: %s, ours %s", at, short(a), short(b))}
}

func short(v any) string {
	raw, _ := json.Marshal(v)
	return fmt.Sprintf("%.160s", raw)
}

// difference is a row of the table of known differences.
type difference struct {
	In   []string `json:"in"`   // recordings, as patterns
	What string   `json:"what"` // as compare says it; * stands for anything
	Why  string   `json:"why"`
	Free bool     `json:"free"` // lines of what runs side by side: they may come as recorded, too

	used bool
}

type differences struct {
	mu     sync.Mutex // guards the rest
	rows   []difference
	played map[string]bool // by name
}

// readDifferences reads the table of differences from qwen-code. Each row has a
// reason.
func readDifferences(t testing.TB) *differences {
	t.Helper()
	raw, err := os.ReadFile("testdata/qwen-differences.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &differences{played: map[string]bool{}}
	if err := json.Unmarshal(raw, &d.rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.rows {
		if len(r.In) == 0 || r.What == "" || len(r.Why) < 10 {
			t.Errorf("a row without recordings, difference or reason: %+v", r)
		}
	}
	return d
}

// unknown returns what of found no row explains.
func (d *differences) unknown(name string, found []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.played[name] = true
	var out []string
	for _, f := range found {
		explained := false
		for i := range d.rows {
			if d.rows[i].explains(name, f) {
				d.rows[i].used, explained = true, true
			}
		}
		if !explained && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

func (r difference) explains(name, found string) bool {
	for _, in := range r.In {
		if ok, _ := path.Match(in, name); ok {
			return matches(r.What, found)
		}
	}
	return false
}

// matches reports whether a pattern, in which * stands for anything, is a text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for i, part := range parts[1:] {
		if i == len(parts)-2 {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return text == ""
}

// allUsed demands that no row is left over, if all recordings were played: what
// no longer differs leaves the table.
func (d *differences) allUsed(t *testing.T, files []string) {
	t.Helper()
	if len(d.played)+len(launcher) < len(files) {
		return
	}
	for _, r := range d.rows {
		if !r.used && !r.Free && !t.Failed() {
			t.Errorf("nothing differs like this any more; take the row out: %v %s", r.In, r.What)
		}
	}
}
