package tools

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestChangedFileIsRefusedAndTheChangeShown(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.txt", "one\ntwo\nthree\n")
	b.ok(t, "read_file", args{"path": "a.txt"})
	b.put(t, "a.txt", "one\n2\nthree\n")
	edit := args{"file_path": "a.txt", "old_string": "three", "new_string": "3"}
	b.fails(t, "edit", edit, "has changed since it was read", "nothing was written", "-two", "+2")
	wantSame(t, "file", b.get(t, "a.txt"), "one\n2\nthree\n")
	b.ok(t, "edit", edit) // the change was shown, so now it is known
	wantSame(t, "file", b.get(t, "a.txt"), "one\n2\n3\n")

	long := strings.Repeat("long line of text\n", 5000)
	b.put(t, "long.txt", long)
	b.ok(t, "read_file", args{"path": "long.txt"})
	b.put(t, "long.txt", strings.ToUpper(long))
	write := args{"file_path": "long.txt", "content": "short\n"}
	for range 2 {
		b.fails(t, "write_file", write, "has changed since it was read", "Read it again")
	}
	b.ok(t, "read_file", args{"path": "long.txt", "limit": 3})
	b.ok(t, "write_file", write)
}

func TestStateBelongsToOneConversation(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "a.txt", "one\n")
	b.ok(t, "read_file", args{"path": "a.txt"})
	other := openToolBench(t, b.dir)
	other.fails(t, "write_file", args{"file_path": "a.txt", "content": "x"}, "has not been read")
	fork := b.state.Fork()
	b.ok(t, "write_file", args{"file_path": "a.txt", "content": "two\n"})
	if err := fork.check(nil, b.dir+"/a.txt", "a.txt", []byte("one\n")); err != nil {
		t.Errorf("the fork forgot: %v", err)
	}
	if err := fork.check(nil, b.dir+"/a.txt", "a.txt", []byte("two\n")); err == nil {
		t.Error("the fork knows what came later")
	}
}

func TestStateKeepsBoundedMemory(t *testing.T) {
	t.Parallel()
	s := NewFileState()
	content := bytes.Repeat([]byte("x"), keepFileBytes)
	for i := range 500 {
		s.note(fmt.Sprint(i), content)
		s.note("same", content)
	}
	if s.kept > keepAllBytes || len(s.age) > keepAllBytes/keepFileBytes {
		t.Errorf("%d bytes of %d contents are kept", s.kept, len(s.age))
	}
	for i := range 500 {
		if err := s.check(nil, fmt.Sprint(i), "f", content); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoByteIsLostInMemory plays two agents and a person who all change one
// content, in random order, 10,000 times: whatever was written stays.
func TestNoByteIsLostInMemory(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	content := []byte("start\n")
	var written []string
	agents := [2]*FileState{NewFileState(), NewFileState()}
	var known [2][]byte
	refused := 0
	for i := range 10_000 {
		mark := fmt.Sprintf("mark %d", i)
		who := rng.IntN(3)
		if who == 2 {
			content = append(bytes.Clone(content), mark+"\n"...)
			written = append(written, mark)
		} else if rng.IntN(2) == 0 || known[who] == nil {
			agents[who].note("f", content)
			known[who] = content
		} else if err := agents[who].check(nil, "f", "f", content); err != nil {
			refused++
			if bytes.Equal(content, known[who]) {
				t.Fatalf("refused though unchanged: %v", err)
			}
			known[who] = nil
		} else {
			if !bytes.Equal(content, known[who]) {
				t.Fatal("a change was not noticed")
			}
			next, _, err := applyEdit(content, "start\n", "start\n"+mark+"\n", false)
			if err != nil {
				t.Fatal(err)
			}
			content = next
			agents[who].note("f", content)
			known[who] = content
			written = append(written, mark)
		}
		if i%500 == 499 { // a fresh file, to keep it short
			for _, m := range written {
				if !bytes.Contains(content, []byte(m+"\n")) {
					t.Fatalf("%q was lost", m)
				}
			}
			content, written = []byte("start\n"), nil
		}
	}
	if refused == 0 {
		t.Error("nothing was ever refused")
	}
}

// TestNoByteIsLostBetweenAgents lets two agents, each as if in a process of its
// own, edit one file at the same time.
func TestNoByteIsLostBetweenAgents(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	b.put(t, "f.txt", "start\n")
	const each = 150
	var wg sync.WaitGroup
	for agent := range 2 {
		own := openToolBench(t, b.dir)
		wg.Go(func() { // ends after its edits
			for i := range each {
				edit := args{"file_path": "f.txt", "old_string": "start\n", "new_string": fmt.Sprintf("start\nmark %d-%d\n", agent, i)}
				for tries := 0; own.run(t, "edit", edit).IsError; tries++ {
					if tries == 1000 {
						t.Error("an edit never succeeded")
						return
					}
					own.run(t, "read_file", args{"path": "f.txt"})
				}
			}
		})
	}
	wg.Wait()
	content := b.get(t, "f.txt")
	for agent := range 2 {
		for i := range each {
			if m := fmt.Sprintf("mark %d-%d\n", agent, i); strings.Count(content, m) != 1 {
				t.Errorf("%q is there %d times", m, strings.Count(content, m))
			}
		}
	}
	wantNoLeftovers(t, b.dir)
}

// TestNoByteIsLostToAnEdit has somebody who knows nothing of us save the file,
// as editors do, at a random moment while it is read and edited (row 41).
func TestNoByteIsLostToAnEdit(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	path := b.put(t, "f.txt", "start\n")
	lost := 0
	for i := range 400 {
		theirs, ours := fmt.Sprintf("theirs %d\n", i), fmt.Sprintf("ours %d\n", i)
		var base []byte
		var wg sync.WaitGroup
		begin := make(chan struct{})
		wg.Go(func() { // ends after one save
			<-begin
			for range rand.IntN(4000) {
				_ = base
			}
			base, _ = os.ReadFile(path)
			tmp := filepath.Join(b.dir, "editor-save")
			if os.WriteFile(tmp, append(bytes.Clone(base), theirs...), 0o644) == nil {
				_ = os.Rename(tmp, path)
			}
		})
		if i%2 == 0 {
			close(begin)
		}
		b.run(t, "read_file", args{"path": "f.txt"})
		if i%2 == 1 {
			close(begin)
		}
		r := b.run(t, "edit", args{"file_path": "f.txt", "old_string": "start\n", "new_string": "start\n" + ours})
		wg.Wait()
		content := b.get(t, "f.txt")
		if !strings.Contains(content, theirs) {
			t.Fatalf("%q was lost; the edit said %q", theirs, resultText(r))
		}
		if has := strings.Contains(content, ours); r.IsError && has {
			t.Fatalf("an edit was made that was refused: %s", resultText(r))
		} else if !r.IsError && !has {
			if bytes.Contains(base, []byte(ours)) {
				t.Fatalf("%q was lost", ours)
			}
			lost++ // they saved what they had read before our edit
		}
	}
	t.Logf("%d of 400 edits were overwritten by the other side", lost)
	wantNoLeftovers(t, b.dir)
}

func TestChangeDuringTheReplacementIsKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"written in place": func(p string) error { return os.WriteFile(p, []byte("theirs\n"), 0o644) },
		"replaced": func(p string) error {
			return errors.Join(os.WriteFile(p+"~", []byte("theirs\n"), 0o644), os.Rename(p+"~", p))
		},
		"same size": func(p string) error { return os.WriteFile(p, []byte("thei\n"), 0o644) },
		"removed":   os.Remove,
		"turned into a link": func(p string) error {
			return errors.Join(os.Remove(p), os.WriteFile(p+"2", []byte("x"), 0o644), os.Symlink(p+"2", p))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newToolBench(t)
			path := b.put(t, "f.txt", "ours\n")
			at, err := b.roots.Resolve("f.txt")
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			_, err = b.roots.rewrite(t.Context(), at, func([]byte, bool) ([]byte, error) {
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				want, _ = os.ReadFile(path)
				return []byte("new\n"), nil
			})
			var changed *changedError
			if !errors.As(err, &changed) {
				t.Fatalf("got %v, want a changedError", err)
			}
			if got, _ := os.ReadFile(path); !bytes.Equal(got, want) {
				t.Errorf("the file is now %q, was %q", got, want)
			}
			wantNoLeftovers(t, b.dir)
		})
	}
}

func TestChangeAfterTheLastCheckIsPutBack(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	path := b.put(t, "f.txt", "old\n")
	at, err := b.roots.Resolve("f.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := openParent(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.close()
	file := target{dir: dir, name: "f.txt"}
	if _, _, err := file.load(); err != nil {
		t.Fatal(err)
	}
	tmp, err := file.writeTemp([]byte("new\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := exchange(dir.file, tmp, tmp); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("files can't be exchanged here")
	}
	if err := os.WriteFile(path, []byte("theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var changed *changedError
	if err := file.swap(tmp, []byte("old\n"), []byte("new\n")); !errors.As(err, &changed) || string(changed.now) != "theirs\n" {
		t.Fatalf("got %v, want a changedError", err)
	}
	wantSame(t, "file", b.get(t, "f.txt"), "theirs\n")
}

// wantNoLeftovers checks that no temporary file is left in dir.
func wantNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, ".agent-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
