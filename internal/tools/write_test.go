package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteCreatesAndUpdates(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	in := args{"file_path": "new/dir/a.txt", "content": "one\ntwo"}
	r := b.run(t, "write_file", in)
	wantSame(t, "text", resultText(r), "Created new/dir/a.txt: 2 lines, 7 bytes.")
	if d := r.Display.(writeDisplay); d.Type != "create" || d.FilePath != b.dir+"/new/dir/a.txt" || d.Content != "one\ntwo" {
		t.Errorf("display: %+v", d)
	}
	in["content"] = "one\n2\n"
	r = b.run(t, "write_file", in) // what was written counts as read
	wantSame(t, "text", resultText(r), "Updated new/dir/a.txt: 2 lines, 6 bytes (before: 2 lines, 7 bytes).")
	if d := r.Display.(writeDisplay); d.Type != "update" || len(d.StructuredPatch) != 1 || d.OriginalFile == nil || *d.OriginalFile != "one\ntwo" {
		t.Errorf("display: %+v", d)
	}
	wantSame(t, "file", b.get(t, "new/dir/a.txt"), "one\n2\n")
	wantText(t, b.ok(t, "write_file", in), "nothing changed")
	b.ok(t, "write_file", args{"file_path": "empty", "content": ""})
	wantSame(t, "empty file", b.get(t, "empty"), "")
	b.fails(t, "write_file", args{"file_path": "a"}, "content is missing")
	b.fails(t, "write_file", args{"file_path": "new", "content": "x"}, "directory")
	b.fails(t, "write_file", args{"file_path": "empty/x", "content": "x"}, "writing empty/x")
	b.fails(t, "write_file", args{"file_path": "/etc/x", "content": "x"}, "outside", b.dir)
	wantNoLeftovers(t, b.dir)
}

func TestWriteNeedsAReadBefore(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.txt", "precious\n")
	b.fails(t, "write_file", args{"file_path": "a.txt", "content": "x"}, "has not been read", "read_file")
	wantSame(t, "file", b.get(t, "a.txt"), "precious\n")
}

func TestWriteKeepsTheFormOfAFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, content, want string }{
		"CRLF":                    {"a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"},
		"CRLF given":              {"a\r\n", "x\r\ny\n", "x\r\ny\n"},
		"mixed":                   {"a\r\nb\n", "x\ny\n", "x\ny\n"},
		"LF":                      {"a\n", "x\r\n", "x\r\n"},
		"mark":                    {"\xef\xbb\xbfa\n", "x\n", "\xef\xbb\xbfx\n"},
		"mark given too":          {"\xef\xbb\xbfa\n", "\ufeffx\n", "\xef\xbb\xbfx\n"},
		"mark given for a plain":  {"a\n", "\ufeffx\n", "\ufeffx\n"},
		"UTF-16":                  {"\xff\xfea\x00\r\x00\n\x00", "é\n", "\xff\xfe\xe9\x00\r\x00\n\x00"},
		"emptied":                 {"a\r\n", "", ""},
		"no line ends before":     {"a", "x\n", "x\n"},
		"not UTF-8, wholly given": {"\xe9\n", "é\n", "é\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolBench(t)
			b.put(t, "f", c.old)
			b.ok(t, "read_file", args{"file_path": "f"})
			b.ok(t, "write_file", args{"file_path": "f", "content": c.content})
			wantSame(t, "file", b.get(t, "f"), c.want)
		})
	}
}

func TestWriteGoesThroughLinksAndKeepsThem(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "real/a.txt", "one\n")
	mustSymlink(t, "real/a.txt", filepath.Join(b.dir, "soft"))
	if err := os.Link(filepath.Join(b.dir, "real/a.txt"), filepath.Join(b.dir, "hard")); err != nil {
		t.Skip(err)
	}
	b.ok(t, "read_file", args{"path": "soft"})
	b.ok(t, "write_file", args{"file_path": "soft", "content": "two\n"})
	if target, err := os.Readlink(filepath.Join(b.dir, "soft")); err != nil || target != "real/a.txt" {
		t.Errorf("the symlink is now %q, %v", target, err)
	}
	for _, name := range []string{"real/a.txt", "hard", "soft"} {
		wantSame(t, name, b.get(t, name), "two\n")
	}
	b.ok(t, "read_file", args{"path": "hard"})
	b.ok(t, "edit", args{"file_path": "hard", "old_string": "two\n", "new_string": "3\n"})
	wantSame(t, "other name", b.get(t, "real/a.txt"), "3\n")
	mustSymlink(t, "real/new.txt", filepath.Join(b.dir, "dangling"))
	b.ok(t, "write_file", args{"file_path": "dangling", "content": "made\n"})
	wantSame(t, "target of a dangling link", b.get(t, "real/new.txt"), "made\n")
}

func TestWriteRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	makeFIFO(t, filepath.Join(b.dir, "fifo"))
	b.fails(t, "write_file", args{"file_path": "fifo", "content": "x"}, "named pipe")
	b.fails(t, "edit", args{"file_path": "fifo", "old_string": "x", "new_string": "y"}, "named pipe")
	b.fails(t, "read_file", args{"file_path": "fifo"}, "named pipe")
}

func TestWriteStopsWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "f.txt", "old\n")
	b.ok(t, "read_file", args{"path": "f.txt"})
	ctx, cancel := testContext(t)
	cancel()
	r := b.tools["write_file"].Run(ctx, &Call{Input: []byte(`{"file_path":"f.txt","content":"new\n"}`)})
	if !r.IsError || b.get(t, "f.txt") != "old\n" {
		t.Errorf("written after the end: %s", resultText(r))
	}
}

func TestDescriptionsStateTheLimits(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	for name, words := range map[string][]string{
		"read_file": {"2000 lines", "256 KB", "2000 characters", "5 MB", "32 MB", "20 pages"}, "write_file": {"64 MB", "read_file"},
		"edit": {"exactly once", "64 MB"}, "glob": {"1000 files"}, "grep_search": {"250 lines", "2000 characters"}, "list_directory": {"1000"},
	} {
		spec := b.tools[name].Spec()
		if len(spec.Description) < 100 || len(spec.Description) > 3000 || strings.Contains(spec.Description, "{{") {
			t.Errorf("%s: description of %d bytes", name, len(spec.Description))
		}
		wantText(t, spec.Description, words...)
		if !strings.Contains(string(spec.Schema), `"type":"object"`) {
			t.Errorf("%s: schema %s", name, spec.Schema)
		}
		if writes := name == "edit" || name == "write_file"; spec.ReadOnly == writes {
			t.Errorf("%s: ReadOnly is %v", name, spec.ReadOnly)
		}
	}
}
