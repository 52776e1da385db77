package tools

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReplacementKeepsAttributesAndOwner(t *testing.T) {
	t.Parallel()
	b := newToolBench(t)
	path := b.put(t, "f.txt", "old\n")
	if err := unix.Setxattr(path, "user.agent.test", []byte("kept"), 0); err != nil {
		t.Skipf("no extended attributes here: %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	before := statOf(t, path)
	b.ok(t, "read_file", args{"path": "f.txt"})
	b.ok(t, "write_file", args{"file_path": "f.txt", "content": "new\n"})
	value := make([]byte, 16)
	n, err := unix.Getxattr(path, "user.agent.test", value)
	if err != nil || string(value[:n]) != "kept" {
		t.Errorf("attribute: %q, %v", value[:max(n, 0)], err)
	}
	after := statOf(t, path)
	if after.Mode != before.Mode || after.Uid != before.Uid || after.Gid != before.Gid {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if after.Ino == before.Ino {
		t.Error("the file was not replaced")
	}
}

func TestReplacementKeepsAForeignOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of others")
	}
	b := newToolBench(t)
	path := b.put(t, "f.txt", "old\n")
	if err := os.Chown(path, 12345, 23456); err != nil {
		t.Skip(err)
	}
	b.ok(t, "read_file", args{"path": "f.txt"})
	b.ok(t, "write_file", args{"file_path": "f.txt", "content": "new\n"})
	if st := statOf(t, path); st.Uid != 12345 || st.Gid != 23456 {
		t.Errorf("owner is now %d:%d", st.Uid, st.Gid)
	}
}

func statOf(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Clean(path), &st); err != nil {
		t.Fatal(err)
	}
	return st
}
