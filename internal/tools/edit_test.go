package tools

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestApplyEditFindsAndReplaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, old, new string
		all            bool
		want           string
	}{
		"exact":                             {"a b c", "b", "x", false, "a x c"},
		"whole file":                        {"abc", "abc", "", false, ""},
		"all":                               {"a b a b", "a", "xx", true, "xx b xx b"},
		"all, overlapping":                  {"aaaa", "aa", "b", true, "bb"},
		"no final newline":                  {"x\ny", "y", "z", false, "x\nz"},
		"CRLF file, LF given":               {"one\r\ntwo\r\nthree\r\n", "one\ntwo\n", "1\n2\n", false, "1\r\n2\r\nthree\r\n"},
		"CRLF file, new lines in one line":  {"one\r\ntwo\r\n", "two", "2\n3", false, "one\r\n2\r\n3\r\n"},
		"CRLF file, starts with line end":   {"one\r\ntwo\r\n", "\ntwo", "\n2\n3", false, "one\r\n2\r\n3\r\n"},
		"CRLF file, line end removed":       {"one\r\ntwo\r\n", "\ntwo", "two", false, "onetwo\r\n"},
		"LF file, CRLF given":               {"one\ntwo\n", "one\r\ntwo", "1\r\n2", false, "1\n2\n"},
		"CRLF given as CRLF":                {"one\r\ntwo\r\n", "one\r\ntwo", "1\r\n2", false, "1\r\n2\r\n"},
		"mixed line ends elsewhere":         {"a\nb\r\nc\nd\r\n", "c\nd", "x\ny", false, "a\nb\r\nx\ny\r\n"},
		"mixed, region is CRLF":             {"a\nb\r\nc\r\nd\n", "b\nc", "x\ny", false, "a\nx\r\ny\r\nd\n"},
		"bytes that are not UTF-8":          {"\xff\xfa key = 1 \xe9\x00", "key = 1", "key = 2", false, "\xff\xfa key = 2 \xe9\x00"},
		"UTF-8 byte order mark":             {"\xef\xbb\xbfabc", "abc", "x", false, "\xef\xbb\xbfx"},
		"indentation, tabs for blanks":      {"{\n\tif x {\n\t\ty()\n\t}\n}\n", "  if x {\n    y()\n  }\n", "  if x {\n    z()\n    w()\n  }\n", false, "{\n\tif x {\n\t\tz()\n\t\tw()\n\t}\n}\n"},
		"indentation missing":               {"a:\n    b:\n        c\n", "b:\n    c", "b:\n    c\n    d", false, "a:\n    b:\n        c\n        d\n"},
		"less indentation than any":         {"        x\n        y\n", "    x\n    y", "    x\nz", false, "        x\n    z\n"},
		"trailing blanks are kept":          {"a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", false, "a  \nB\nc\n"},
		"trailing blanks, CRLF":             {"a  \r\nb\r\nc\r\n", "a\nb\n", "a\nB\nX\n", false, "a  \r\nB\r\nX\r\nc\r\n"},
		"no final newline, one expected":    {"  a\n  b", "a\nb\n", "a\nc\n", false, "  a\n  c"},
		"lines deleted":                     {"x\n  a\n  b\ny\n", "a\nb\n", "", false, "x\ny\n"},
		"line appended":                     {"  a\n  b\n", "a\nb", "a\nb\nc", false, "  a\n  b\n  c\n"},
		"blank lines differ only in blanks": {"a\n   \nb\n", "a\n\nb", "a\n\nc", false, "a\n   \nc\n"},
		"all, ignoring blanks":              {" a\n b\n-\n a\n b\n", "a\nb", "c", true, " c\n-\n c\n"},
		"exact wins over ignoring blanks":   {"  a\na\n", "\na", "\nb", false, "  a\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := applyEdit([]byte(c.text), c.old, c.new, c.all)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "result", string(got), c.want)
		})
	}
}

func TestApplyEditRefusesToGuess(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, old, new, want string }{
		"twice":                 {"x\na\nb\na\n", "a", "c", "found 2 times, at lines 2, 4"},
		"overlapping":           {"aaa", "aa", "b", "found 2 times"},
		"empty":                 {"a", "", "b", "old_string is empty"},
		"same":                  {"a", "a", "a", "nothing to change"},
		"almost":                {"one\ntwo\nthree\n", "one\ntwo\nthee\n", "x", `line 3 is "three" where old_string has "thee"`},
		"first line is missing": {"one\n", "two", "x", "not even its first line"},
		"line numbers":          {"one\ntwo\n", "     1\tone\n     2\ttwo", "x", "line numbers"},
		"replacement character": {"\xff", "\ufffd", "x", "U+FFFD"},
		"escaped line end":      {"a\nb\n", `a\nb`, "x", `two characters`},
		"made before":           {"abc changed thing\n", "abc original thing", "abc changed thing", "already there, at line 1"},
		"other indentation":     {"    a\n  b\n", "\ta\n\tb", "x", "indented differently"},
		"words in other order":  {"a b\n", "b a", "x", "not found"},
		"blanks within a line":  {"a  b\n", "a b", "x", "not found"},
		"the file ends":         {"a\nb\n", "b\nc", "x", "the file ends"},
		"only blanks to change": {"a \nb\n", "a\nb\n", "a \nb\n", "nothing to change"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := applyEdit([]byte(c.text), c.old, c.new, false)
			if err == nil {
				t.Fatalf("got %q, want an error", got)
			}
			wantText(t, err.Error(), c.want)
		})
	}
}

// TestEditChangesOnlyWhatWasAsked edits files of every form, from outside, and
// compares the bytes around the change (users.md row 39).
func TestEditChangesOnlyWhatWasAsked(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("filler line\n", 20000)
	bodies := map[string]string{
		"LF": "head\nkey = 1\ntail\n", "CRLF": "head\r\nkey = 1\r\ntail\r\n", "mixed": "head\nkey = 1\r\ntail\n\r\n\r",
		"no final newline": "head\nkey = 1", "CR only": "head\rkey = 1\rtail\r", "one line": "key = 1", "trailing blanks": "head  \n\tkey = 1 \t\ntail \n",
		"GBK": "\xc4\xe3\xba\xc3\nkey = 1\n\xca\xc0\xbd\xe7\n", "cp1252": "caf\xe9\nkey = 1\n\x80uro\n", "Shift_JIS": "\x93\xfa\x96{\nkey = 1\n\x8c\xea\n",
		"some NULs": "head of the file, a line of text\nkey = 1\nrecord\x00record, and some more text here\n", "stray bytes": "na\xc3\xafve \xff\nkey = 1\n\xc3",
		"control characters": "\x1b[1mbold\x1b[0m text to read\nkey = 1\n\f\n", "long line": strings.Repeat("y", 100_000) + "key = 1" + strings.Repeat("x", 100_000), "large": big + "key = 1\n" + big,
		"U+2028": "a\u2028b\nkey = 1\n", "noncharacter": "\uffff\nkey = 1\n", "emoji": "👩‍👩‍👧\nkey = 1\n",
	}
	forms := map[string]func(string) []byte{
		"plain": func(s string) []byte { return []byte(s) },
	}
	for _, e := range []encoding{encUTF8BOM, encUTF16LE, encUTF16BE, encUTF32LE, encUTF32BE} {
		forms[e.String()] = func(s string) []byte { return append([]byte(e.bom()), e.encode(s)...) }
	}
	b := newToolBench(t)
	n := 0
	for bodyName, body := range bodies {
		for formName, form := range forms {
			if formName != "plain" && !utf8.ValidString(body) {
				continue
			}
			n++
			name := fmt.Sprintf("%d.txt", n)
			p := b.put(t, name, string(form(body)))
			if err := os.Chmod(p, 0o751); err != nil {
				t.Fatal(err)
			}
			in := args{"file_path": name}
			b.ok(t, "read_file", in)
			in["old_string"], in["new_string"] = "key = 1", "key = 22"
			b.ok(t, "edit", in)
			want := string(form(strings.Replace(body, "key = 1", "key = 22", 1)))
			if got := b.get(t, name); got != want {
				t.Errorf("%s, %s: other bytes changed", bodyName, formName)
			}
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o751 {
				t.Errorf("%s, %s: mode is %v, %v", bodyName, formName, info.Mode(), err)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d files were tried", n)
	}
}

func TestEditKeepsBrokenUTF16(t *testing.T) {
	t.Parallel()
	content := []byte("\xff\xfe\x00\xd8a\x00b\x00\x01\xdcz") // lone surrogates, an odd byte
	got, _, err := applyEdit(content, "ab", "c", false)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "result", string(got), "\xff\xfe\x00\xd8c\x00\x01\xdcz")
}

func TestEditTool(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.go", "package a\n\nfunc f() {\n\tx := 1\n\ty := 1\n}\n")
	edit := func(old, new string) args { return args{"file_path": "a.go", "old_string": old, "new_string": new} }
	b.fails(t, "edit", edit("x := 1", "x := 2"), "has not been read", "read_file")
	b.ok(t, "read_file", args{"path": "a.go"})
	wantText(t, b.ok(t, "edit", edit("x := 1", "x := 2")), "1 replacement at line 4", "     4\t\tx := 2", "     6\t}")
	b.fails(t, "edit", edit(":=", "="), "found 2 times, at lines 4, 5", "Nothing was written")
	in := edit(":=", "=")
	in["expected_replacements"] = 3
	b.fails(t, "edit", in, "2 times", "not 3 times")
	in["expected_replacements"] = "2"
	wantText(t, b.ok(t, "edit", in), "2 replacements at lines 4, 5")
	in = edit(" = ", " := ")
	in["allow_multiple"] = true
	b.ok(t, "edit", in)
	wantSame(t, "file", b.get(t, "a.go"), "package a\n\nfunc f() {\n\tx := 2\n\ty := 1\n}\n")
	b.fails(t, "edit", edit("", "x"), "old_string is empty")
	b.fails(t, "edit", edit("x", "x"), "nothing to change")
	b.fails(t, "edit", args{"file_path": "b.go", "old_string": "x", "new_string": "y"}, "no such file", "Did you mean", "a.go")
	b.fails(t, "edit", args{"file_path": ".", "old_string": "x", "new_string": "y"}, "directory")
	b.ok(t, "edit", args{"file_path": "new/c.go", "old_string": "", "new_string": "package c\n"})
	wantSame(t, "new file", b.get(t, "new/c.go"), "package c\n")
	if _, err := os.Stat(b.dir + "/missing"); err == nil {
		t.Error("a directory was made for an edit that failed")
	}
}

func TestEditDisplayHasThePatch(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	b.ok(t, "read_file", args{"path": "a.txt"})
	r := b.run(t, "edit", args{"file_path": "a.txt", "old_string": "5\n", "new_string": "five\nfive and a half\n"})
	d := r.Display.(editDisplay)
	if len(d.StructuredPatch) != 1 || d.OriginalFile == nil || d.FilePath != b.dir+"/a.txt" {
		t.Fatalf("display: %+v", d)
	}
	h := d.StructuredPatch[0]
	wantSame(t, "hunk", fmt.Sprintln(h.OldStart, h.OldLines, h.NewStart, h.NewLines, strings.Join(h.Lines, "|")), "2 7 2 8  2| 3| 4|-5|+five|+five and a half| 6| 7| 8\n")
}

func TestEditRefusesToMixEncodings(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "gbk.txt", "\xc4\xe3\xba\xc3 key\n")
	b.ok(t, "read_file", args{"path": "gbk.txt"})
	b.fails(t, "edit", args{"file_path": "gbk.txt", "old_string": "key", "new_string": "schlüssel"}, "not UTF-8", "GBK", "Nothing was written")
	wantSame(t, "file", b.get(t, "gbk.txt"), "\xc4\xe3\xba\xc3 key\n")
}

// FuzzEdit holds applyEdit to what it promises: what is outside of the spans is
// as it was, what is inside is the new text.
func FuzzEdit(f *testing.F) {
	for _, s := range []struct {
		content, old, new string
		all               bool
	}{
		{"a b c", "b", "x", false}, {"one\r\ntwo\r\n", "one\ntwo", "1\n2", false}, {"\ta\n\tb\n", "a\nb", "c", false}, {"aaa", "a", "aa", true},
		{"\xff\xfea\x00b\x00", "b", "c", false}, {"\xef\xbb\xbfx", "x", "\n", false}, {"\x00\x00\xfe\xff\x00\x00\x00a", "a", "é", false},
		{"a\r\n\r\nb", "\n\n", "\n", false}, {"x\r", "x\r", "y", false}, {"  a\n b\n  a\n", "a", "\n", true}, {"\r\n", "\n", "", true}, {"a \nb", "a\nb\n", "a\nc\n", false},
		{"\n\r\n\r", "\n\r", "0", true},
	} {
		f.Add([]byte(s.content), s.old, s.new, s.all)
	}
	f.Fuzz(func(t *testing.T, content []byte, old, new string, all bool) {
		before := bytes.Clone(content)
		got, info, err := applyEdit(content, old, new, all)
		if !bytes.Equal(before, content) {
			t.Fatal("the input was changed")
		}
		if err != nil {
			if got != nil || err.Error() == "" {
				t.Fatalf("error %q with result %q", err, got)
			}
			return
		}
		if info.count != len(info.spans) || info.count == 0 || !all && info.count != 1 {
			t.Fatalf("%d replacements", info.count)
		}
		enc := detectBOM(content)
		checkSplice(t, content, got, enc, info)
		if enc.width() == 1 && info.how == matchExact && !strings.Contains(info.text, "\r") {
			want := strings.Replace(string(content), old, new, 1)
			if all {
				want = strings.ReplaceAll(string(content[len(enc.bom()):]), old, new)
				want = enc.bom() + want
			}
			if all || !strings.Contains(enc.bom(), old) {
				wantSame(t, "exact result", string(got), want)
			}
		}
	})
}

// checkSplice walks old and new content side by side.
func checkSplice(t *testing.T, content, got []byte, enc encoding, info editInfo) {
	t.Helper()
	n := len(enc.bom())
	if !bytes.HasPrefix(got, content[:n]) {
		t.Fatal("the byte order mark was changed")
	}
	content, got = content[n:], got[n:]
	from := 0
	for i, s := range info.spans {
		at := []int{s.start, s.end}
		if enc.width() > 1 {
			at = enc.offsets(content, at)
		}
		if at[0] < from || at[1] < at[0] || at[1] > len(content) {
			t.Fatalf("span %d is at %v after %d", i, at, from)
		}
		kept, text := content[from:at[0]], enc.encode(s.text)
		if !bytes.HasPrefix(got, kept) || !bytes.HasPrefix(got[len(kept):], text) {
			t.Fatalf("before or in span %d: %q", i, got)
		}
		got = got[len(kept)+len(text):]
		from = at[1]
	}
	if !bytes.Equal(got, content[from:]) {
		t.Fatalf("after the last span: %q, want %q", got, content[from:])
	}
}
