package settings_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/agentcli/agent/internal/policy"
	"github.com/agentcli/agent/internal/settings"
)

func TestAReadOnlyProjectGivesAClearError(t *testing.T) {
	t.Parallel()
	h := project(t)
	for dir, perm := range map[string]os.FileMode{filepath.Dir(h.dir): 0o755, h.options.Root: 0o555} {
		if err := os.Chmod(dir, perm); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(h.options.Root, 0o700) })
	rules := parsed(t, policy.Allow, "Bash(make)")
	saved := make(chan error)
	go func() { // ends when it has saved, and its thread with it, so the lost rights stay lost
		runtime.LockOSThread()
		// For root nothing is read-only: go on as nobody, in this thread alone.
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); errno != 0 {
			saved <- errno
			return
		}
		_, err := h.save(settings.Local, rules...)
		saved <- err
	}()
	err := <-saved
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "writing settings: mkdir "+h.options.Root) {
		t.Errorf("error %v", err)
	}
	if got := h.shell("make"); got != policy.Ask {
		t.Errorf("the rule counts: %s", got)
	}
}
