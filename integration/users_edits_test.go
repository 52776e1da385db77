package integration

import (
	"bytes"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/agentcli/agent/internal/testkit"
)

// odd is a file that is easily damaged, with the same edit in each.
type odd struct {
	name    string
	content []byte
}

// The text that is replaced, and by what; both in every odd file's encoding.
const (
	oddOld = "the old words"
	oddNew = "some new words"
)

// oddFiles are files of many encodings, line ends and endings.
func oddFiles() []odd {
	lines := []string{"first line", "caf\u00e9 \u20ac \u4e2d\u6587 \U0001F600", "\tthe old words here ", "last line"}
	ends := map[string]string{"LF": "\n", "CRLF": "\r\n"}
	var out []odd
	add := func(name string, content []byte) { out = append(out, odd{name, content}) }
	for end, sep := range ends {
		text := strings.Join(lines, sep)
		for last, tail := range map[string]string{"": sep, ", no final line end": "", ", blank lines at the end": sep + sep + sep} {
			add("UTF-8 "+end+last, []byte(text+tail))
			add("UTF-8 with BOM "+end+last, []byte("\ufeff"+text+tail))
			add("UTF-16LE "+end+last, utf16Bytes("\ufeff"+text+tail, endian.LittleEndian))
			add("UTF-16BE "+end+last, utf16Bytes("\ufeff"+text+tail, endian.BigEndian))
			add("cp1252 "+end+last, []byte(strings.ReplaceAll(text+tail, lines[1], "caf\xe9 \x80 \xff\xfe")))
			add("GBK "+end+last, []byte(strings.ReplaceAll(text+tail, lines[1], "\xd6\xd0\xce\xc4 \x81\x30\x84\x36")))
		}
	}
	mixed := "first line\r\nsecond\nthird\r\n\tthe old words here\nlast\r\n\rx"
	add("mixed line ends", []byte(mixed))
	add("mixed line ends with BOM", []byte("\ufeff"+mixed))
	add("old Mac line ends", []byte(strings.ReplaceAll(strings.Join(lines, "\r"), "\n", "\r")))
	add("odd white space", []byte("a\u00a0b\u2028c\u0085d\v\f \t \n\tthe old words here \t\n \n"))
	add("combining characters", []byte("e\u0301 \u00e9 \ufb01\nthe old words\n\u0065\u0301"))
	add("escape sequences", []byte("\x1b[31mred\x1b[0m\nthe old words\n\x07\x08"))
	add("half a character", []byte("good\nthe old words\n\xe4\xb8\n"))
	add("one line", []byte("the old words"))
	add("a long line", []byte(strings.Repeat("x", 100_000)+"the old words"+strings.Repeat("y", 100_000)))
	return out
}

func utf16Bytes(s string, order endian.ByteOrder) []byte {
	units := utf16.Encode([]rune(s))
	out := make([]byte, 2*len(units))
	for i, u := range units {
		order.PutUint16(out[2*i:], u)
	}
	return out
}

// edited is what the file has to be after the edit: that text replaced, in the
// file's encoding, and every other byte as it was.
func (o odd) edited() []byte {
	for _, encode := range []func(string) []byte{
		func(s string) []byte { return []byte(s) },
		func(s string) []byte { return utf16Bytes(s, endian.LittleEndian) },
		func(s string) []byte { return utf16Bytes(s, endian.BigEndian) },
	} {
		if bytes.Count(o.content, encode(oddOld)) == 1 {
			return bytes.Replace(o.content, encode(oddOld), encode(oddNew), 1)
		}
	}
	panic("an odd file without the text: " + o.name)
}

// TestUsersRow39_EditsChangeOnlyWhatWasAsked reads and edits many odd files in
// one run: every byte but those of the match stays, and so do modes.
func TestUsersRow39_EditsChangeOnlyWhatWasAsked(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	files := oddFiles()
	if len(files) < 40 {
		t.Fatalf("only %d files", len(files))
	}
	var steps strings.Builder
	for i, f := range files {
		path := filepath.Join(p.dir, fmt.Sprintf("%d.txt", i))
		if err := os.WriteFile(path, f.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, os.FileMode(0o600|i%8)); err != nil {
			t.Fatal(err)
		}
		steps.WriteString(call(2*i+1, "read_file", map[string]any{"file_path": path}))
		steps.WriteString(call(2*i+2, "edit", map[string]any{"file_path": path, "old_string": oddOld, "new_string": oddNew}))
	}
	steps.WriteString(say("done"))
	proc, exit := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=auto-edit", p.scripted(steps.String())}})
	answers := toolResults(frames(t, proc))
	if exit.Code != 0 || len(answers) != 2*len(files) {
		t.Fatalf("exit code %d, %d answers to %d calls: %s", exit.Code, len(answers), 2*len(files), proc.Stderr())
	}
	for i, f := range files {
		path := filepath.Join(p.dir, fmt.Sprintf("%d.txt", i))
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := f.edited(); !bytes.Equal(got, want) {
			t.Errorf("%s: %.200q\nwant %.200q\nanswers: %.300s | %.300s", f.name, got, want, answers[2*i].text, answers[2*i+1].text)
		}
		if info, _ := os.Stat(path); info.Mode().Perm() != os.FileMode(0o600|i%8) {
			t.Errorf("%s: mode %v", f.name, info.Mode())
		}
	}
}

// TestUsersRow39_AnInsertedLineGetsTheFilesLineEnd: what is new in a CRLF file
// is CRLF, and nothing else changes.
func TestUsersRow39_AnInsertedLineGetsTheFilesLineEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a.txt", "one\r\ntwo\r\nthree\r\n")
	steps := call(1, "read_file", map[string]any{"file_path": "a.txt"}) +
		call(2, "edit", map[string]any{"file_path": "a.txt", "old_string": "one\ntwo", "new_string": "one\nand a half\ntwo"}) + say("done")
	p.run(testkit.Spec{Args: []string{"-pgo", "--permission-mode=auto-edit", p.scripted(steps)}})
	if got := p.content("a.txt"); got != "one\r\nand a half\r\ntwo\r\nthree\r\n" {
		t.Errorf("the file is %q", got)
	}
}

// TestUsersRow39_BinaryFilesAreLeftAlone: bytes that are no text are refused,
// not damaged.
func TestUsersRow39_BinaryFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	content := "\x7fELF\x00\x01\x02 the old words \x00\xff\n"
	p.write("a.bin", content)
	steps := call(1, "read_file", map[string]any{"file_path": "a.bin"}) +
		call(2, "edit", map[string]any{"file_path": "a.bin", "old_string": oddOld, "new_string": oddNew}) + say("done")
	proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=auto-edit", p.scripted(steps)}})
	for i, a := range toolResults(frames(t, proc)) {
		if !a.isError {
			t.Errorf("call %d was not refused: %s", i+1, a.text)
		}
	}
	if got := p.content("a.bin"); got != content {
		t.Errorf("the file is %q", got)
	}
}

// TestUsersRow41_AFileThatChangedIsNotOverwritten changes files between the read
// and the edit, the write, and the second edit: nothing is lost, and the model
// is shown what is there now.
func TestUsersRow41_AFileThatChangedIsNotOverwritten(t *testing.T) {
	t.Parallel()
	edit := call(3, "edit", map[string]any{"file_path": "a.txt", "old_string": "one", "new_string": "ONE"})
	write := call(3, "write_file", map[string]any{"file_path": "a.txt", "content": "mine\n"})
	for _, c := range []struct{ name, change, last string }{
		{"edit after an append", "echo theirs >> a.txt", edit},
		{"edit after a change of the same length", "printf 'one\nTWO\n' > a.txt", edit},
		{"edit after a change with the old time", "touch -r a.txt t; printf 'one\nTWO\n' > a.txt; touch -r t a.txt", edit},
		{"edit after a replacement", "printf 'one\ntheirs\n' > b; mv b a.txt", edit},
		{"write after an append", "echo theirs >> a.txt", write},
		{"write after a change with the old time", "touch -r a.txt t; printf 'one\nTWO\n' > a.txt; touch -r t a.txt", write},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write("a.txt", "one\ntwo\n")
			steps := call(1, "read_file", map[string]any{"file_path": "a.txt"}) + shell(2, c.change+"; cp a.txt theirs.txt") + c.last + say("done")
			proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(steps)}})
			answers := toolResults(frames(t, proc))
			if len(answers) != 3 || !answers[2].isError {
				t.Fatalf("not refused: %+v", answers)
			}
			if p.content("a.txt") != p.content("theirs.txt") {
				t.Errorf("the other's change was lost: %q", p.content("a.txt"))
			}
			if text := strings.ToLower(answers[2].text); !strings.Contains(text, "theirs") && !strings.Contains(text, "two") && !strings.Contains(text, "read") {
				t.Errorf("the model is not told how to go on: %s", answers[2].text)
			}
		})
	}
}

// TestUsersRow41_AFileIsReadBeforeItIsChanged: neither edits nor writes go over
// a file that the model has not seen.
func TestUsersRow41_AFileIsReadBeforeItIsChanged(t *testing.T) {
	t.Parallel()
	for name, input := range map[string]map[string]any{
		"edit":       {"file_path": "a.txt", "old_string": "one", "new_string": "ONE"},
		"write_file": {"file_path": "a.txt", "content": "mine"},
	} {
		p := newPlace(t)
		p.write("a.txt", "one\ntwo\n")
		proc, _ := p.run(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=yolo", p.scripted(call(1, name, input) + say("done"))}})
		answers := toolResults(frames(t, proc))
		if len(answers) != 1 || !answers[0].isError || !strings.Contains(answers[0].text, "read_file") || p.content("a.txt") != "one\ntwo\n" {
			raw, _ := json.Marshal(fmt.Sprint(answers))
			t.Errorf("%s: %s, the file is %q", name, raw, p.content("a.txt"))
		}
	}
}

// TestUsersRow41_TwoAgentsLoseNothing lets two runs add to one file at once, by
// reading and editing again and again: each edit that was said to be made is in
// the file.
func TestUsersRow41_TwoAgentsLoseNothing(t *testing.T) {
	t.Parallel()
	rounds := 60
	if soak() {
		rounds = 400
	}
	p := newPlace(t)
	p.write("shared.txt", "HERE\n")
	var procs []*testkit.Proc
	for agent := range 2 {
		var steps strings.Builder
		for i := range rounds {
			steps.WriteString(call(2*i+1, "read_file", map[string]any{"file_path": "shared.txt", "limit": 1_000_000}))
			steps.WriteString(call(2*i+2, "edit", map[string]any{
				"file_path": "shared.txt", "old_string": "HERE\n", "new_string": fmt.Sprintf("agent %d round %d.\nHERE\n", agent, i),
			}))
		}
		path := p.write(fmt.Sprintf("model%d.jsonc", agent), steps.String()+say("done"))
		procs = append(procs, p.start(testkit.Spec{Args: []string{"-pgo", "-ostream-json", "--permission-mode=auto-edit", "--model=scripted/" + path}}))
	}
	var made, refused int
	for agent, proc := range procs {
		if exit, err := proc.Wait(2 * time.Minute); err != nil || exit.Code != 0 {
			t.Fatalf("%v, exit code %d: %s", err, exit.Code, proc.Stderr())
		}
		answers := toolResults(frames(t, proc))
		for i := range rounds {
			if a := answers[2*i+1]; a.isError {
				refused++
				continue
			}
			made++
			if mine := fmt.Sprintf("agent %d round %d.\n", agent, i); strings.Count(p.content("shared.txt"), mine) != 1 {
				t.Errorf("lost: %q", mine)
			}
		}
	}
	t.Logf("%d edits made, %d refused", made, refused)
	if got := strings.Count(p.content("shared.txt"), "\n"); got != made+1 {
		t.Errorf("%d lines in the file, want %d", got, made+1)
	}
}
