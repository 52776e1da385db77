//go:build unix

package mcp

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCloseTakesTheWholeTreeDown(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	pids := filepath.Join(t.TempDir(), "pids")
	r.Add("", program(t, "s", "stubborn", "PIDS="+pids))
	r.wait()
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := r.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d > 4*time.Second {
		t.Errorf("closing took %v", d)
	}
	for _, f := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err == nil {
			t.Errorf("process %d is left", pid)
		}
	}
}
