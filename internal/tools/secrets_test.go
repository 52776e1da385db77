package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestSecretsAreFoundBeneathADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(sub string, hidden bool, want string) {
		t.Helper()
		if want != "" {
			want = filepath.Join(dir, want)
		}
		got, known := new(SecretTrees).SecretBeneath(filepath.Join(dir, sub), hidden)
		if got != want || !known {
			t.Errorf("SecretBeneath(%s, %v) = %q, %v; want %q", sub, hidden, got, known, want)
		}
	}
	for _, name := range []string{"main.go", ".env.example", "node_modules/x/key.pem", "testdata/server.key", "id_rsa.pub", "a/b/c/readme.md"} {
		put(name)
	}
	check(".", true, "")
	put("a/b/.env")
	check(".", true, "a/b/.env")
	check("a/b", true, "a/b/.env")
	check(".", false, "")
	check("a/b/c", true, "")
	put("a/credentials.json")
	check(".", false, "a/credentials.json")
	check("main.go", true, "")
	check("missing", true, "")
	for pattern, want := range map[string]string{"*": "", "a/*": "a/credentials.json", "a/*.json": "a/credentials.json", "a/*.go": "", "a/b/*": "", "a/b/.*": "a/b/.env", "*/*": "a/credentials.json"} {
		if want != "" {
			want = filepath.Join(dir, want)
		}
		if got, known := new(SecretTrees).SecretAmong(filepath.Join(dir, pattern)); got != want || !known {
			t.Errorf("SecretAmong(%s) = %q, %v; want %q", pattern, got, known, want)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "a/b/c/link")); err != nil {
		t.Fatal(err)
	}
	check("a/b/c", true, "")
}

func TestATreeThatIsTooLargeIsNotKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 12 {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for k := range 9 {
			if err := os.Mkdir(filepath.Join(sub, fmt.Sprint(k)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if path, known := (&SecretTrees{entries: 100}).SecretBeneath(dir, true); path != "" || known {
		t.Errorf("SecretBeneath = %q, %v; want not known", path, known)
	}
}
