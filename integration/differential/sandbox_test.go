package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	driverEnv  = "AGENT_DIFFERENTIAL_DRIVER" // the directory that a driver works from
	workInside = "/tmp/differential"
	homeInside = "/home/u"
	marker     = "/differential-command/" // a driver announces a command by changing to this directory, which doesn't exist
	perCommand = 2 * time.Second
)

// command is one command line to be run, in the directory Cwd.
type command struct {
	Cwd, Src string
}

// order is what a driver is told.
type order struct {
	Commands  []command
	Forbidden []string          // files and directories outside: none may be written to
	Outside   map[string]string // the namespaces outside
	Env       []string
}

// report is what a driver says.
type report struct {
	Confined string // why it isn't; empty: it is
	TimedOut []int
}

// namespaces that must not be shared.
var namespaces = []string{"net", "pid", "mnt", "ipc", "uts"}

func namespacesHere() map[string]string {
	out := map[string]string{}
	for _, n := range namespaces {
		out[n], _ = os.Readlink("/proc/self/ns/" + n)
	}
	return out
}

// need returns the path of a program; without it a quick run is skipped, and a
// soak or a run that demands the program fails.
func need(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		unconfined(t, name+" is missing")
	}
	return path
}

// unconfined ends a test that must not run: nothing is ever run outside of the
// sandbox.
func unconfined(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("AGENT_SOAK") != "" || slices.Contains(strings.Fields(os.Getenv("AGENT_TEST_REQUIRE")), "bwrap") {
		t.Fatalf("refusing to run commands without a sandbox: %s (install bubblewrap and strace, and allow user namespaces)", why)
	}
	t.Skipf("needs a sandbox: %s", why)
}

// sandbox runs commands apart from everything: in namespaces of their own,
// without a network, with a throw-away home as the only place to write to.
type sandbox struct {
	places
	work    string
	outside string // a directory that must stay as it is
	strace  []string
	bwrap   string
	batch   int
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	bwrap, strace := need(t, "bwrap"), need(t, "strace")
	dir := t.TempDir()
	s := &sandbox{places: newPlaces(t), work: dir, outside: filepath.Join(dir, "outside"), bwrap: bwrap}
	s.strace = []string{
		strace, "-f", "-qq", "-y", "-s", "400", "-e", "signal=none", "--seccomp-bpf",
		"-e", "trace=!" + strings.Join(untraced, ","), "-o", workInside + "/trace",
	}
	if err := os.MkdirAll(s.outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.outside, "canary"), []byte("sings\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.run(nil); err != nil {
		var held *notConfinedError
		if errors.As(err, &held) {
			t.Fatal(err) // it would have run unconfined
		}
		unconfined(t, err.Error())
	}
	return s
}

type notConfinedError struct{ why string }

func (e *notConfinedError) Error() string { return "the sandbox does not hold: " + e.why }

// outcome is what a batch did.
type outcome struct {
	effects  []effect
	timedOut []int
}

// run runs the commands one after another on a fresh copy of the home. All
// that they did beyond reading comes back with the index of the command.
func (s *sandbox) run(cmds []command) (outcome, string, error) {
	s.batch++
	dir := filepath.Join(s.work, fmt.Sprint("batch", s.batch))
	home := filepath.Join(dir, "home")
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Join(dir, "io"), 0o777); err != nil {
		return outcome{}, "", err
	}
	if out, err := exec.Command("cp", "-a", s.home, home).CombinedOutput(); err != nil {
		return outcome{}, "", fmt.Errorf("%w: %s", err, out)
	}
	before, err := digest(home)
	if err != nil {
		return outcome{}, "", err
	}
	r, err := s.drive(dir, cmds)
	if err != nil {
		return outcome{}, "", err
	}
	if r.Confined != "" {
		return outcome{}, "", &notConfinedError{r.Confined}
	}
	if b, err := os.ReadFile(filepath.Join(s.outside, "canary")); err != nil || string(b) != "sings\n" {
		return outcome{}, "", &notConfinedError{fmt.Sprintf("the canary outside was changed: %q, %v", b, err)}
	}
	log, err := os.Open(filepath.Join(dir, "io", "trace"))
	if err != nil {
		return outcome{}, "", err
	}
	defer log.Close()
	effects, ran, err := readTrace(log)
	if err != nil {
		return outcome{}, "", err
	}
	if ran != len(cmds) {
		return outcome{}, "", fmt.Errorf("%d of %d commands are in the trace", ran, len(cmds))
	}
	after, err := digest(home)
	if err != nil {
		return outcome{}, "", err
	}
	changed := difference(before, after)
	return outcome{effects, r.TimedOut}, changed, nil
}

func (s *sandbox) drive(dir string, cmds []command) (report, error) {
	self, err := os.Executable()
	if err != nil {
		return report{}, err
	}
	here, err := os.Getwd()
	if err != nil {
		return report{}, err
	}
	work := filepath.Join(dir, "io")
	o, err := json.Marshal(order{
		Commands:  cmds,
		Forbidden: []string{filepath.Join("/mnt", "canary"), "/mnt/new", filepath.Join(here, "escaped"), "/escaped", "/etc/escaped", "/usr/escaped", "/var/tmp/escaped", "/root/escaped"},
		Outside:   namespacesHere(),
		Env:       commandEnv,
	})
	if err != nil {
		return report{}, err
	}
	if err := os.WriteFile(filepath.Join(work, "order"), o, 0o666); err != nil {
		return report{}, err
	}
	args := []string{
		"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run",
		"--tmpfs", "/home", "--bind", filepath.Join(dir, "home"), homeInside,
		"--bind", work, workInside, "--ro-bind", s.outside, "/mnt", "--ro-bind", self, workInside + ".driver",
		"--clearenv", "--setenv", driverEnv, workInside, "--setenv", "PATH", systemPath, "--setenv", "GOMAXPROCS", "2", "--chdir", homeInside + "/project", "--",
	}
	args = append(args, s.strace...)
	args = append(args, workInside+".driver")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Duration(len(cmds))*perCommand)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bwrap, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	b, readErr := os.ReadFile(filepath.Join(work, "report"))
	if readErr != nil {
		return report{}, fmt.Errorf("bwrap or strace does not work here: %v: %s", err, said.Bytes())
	}
	var r report
	if err := json.Unmarshal(b, &r); err != nil {
		return report{}, err
	}
	if bytes.Contains(said.Bytes(), []byte("seccomp")) {
		return report{}, fmt.Errorf("strace: %s", said.Bytes())
	}
	return r, nil
}

// drive is the program inside of the sandbox.
func drive(dir string) int {
	b, err := os.ReadFile(filepath.Join(dir, "order"))
	var o order
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r := report{Confined: leak(&o)}
	if r.Confined == "" {
		for i, c := range o.Commands {
			_ = os.Chdir(marker + fmt.Sprint(i))
			if !runOne(c, o.Env) {
				r.TimedOut = append(r.TimedOut, i)
			}
		}
		_ = os.Chdir(marker + "end")
		killLeft()
	}
	out, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "report"), out, 0o666)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// leak says through what the sandbox isn't tight; empty if it holds.
func leak(o *order) string {
	for n, outside := range o.Outside {
		if inside, err := os.Readlink("/proc/self/ns/" + n); err != nil || inside == outside || outside == "" {
			return fmt.Sprintf("the %s namespace is shared (%s, %v)", n, inside, err)
		}
	}
	for _, p := range o.Forbidden {
		f, err := os.OpenFile(p, os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			_ = f.Close()
			return p + " can be written to"
		}
	}
	if err := os.Remove("/mnt/canary"); err == nil {
		return "the canary can be removed"
	}
	if b, err := os.ReadFile("/mnt/canary"); err != nil || string(b) != "sings\n" {
		return "the canary is not where it belongs"
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return "the network can't be looked at: " + err.Error()
	}
	for _, i := range interfaces {
		if i.Name != "lo" {
			return "there is the network interface " + i.Name
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	switch {
	case bytes.Contains(status, []byte("TracerPid:\t0\n")):
		return "nothing is traced"
	case !bytes.Contains(status, []byte("CapEff:\t0000000000000000\n")):
		return "there are capabilities"
	}
	if _, err := os.Stat("/run/docker.sock"); err == nil {
		return "there is a socket of the machine"
	}
	return ""
}

// runOne runs a command as the agent's shell does; false if it had to be
// killed. What it leaves behind in its process group is killed too.
func runOne(c command, env []string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), perCommand)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/bash", "--noprofile", "--norc", "-c", c.Src)
	cmd.Dir, cmd.Env = c.Cwd, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = writerOnly{io.Discard}
	cmd.Stderr = cmd.Stdout
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	_ = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return ctx.Err() == nil
}

// writerOnly makes a pipe out of what would otherwise be opened as a file.
type writerOnly struct{ io.Writer }

// killLeft ends what still runs, so that strace ends.
func killLeft() {
	self, tracer := os.Getpid(), os.Getppid()
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err == nil && pid > 2 && pid != self && pid != tracer {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// digest describes all files below a directory, but for when they were read.
func digest(dir string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := ""
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			content = string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			content, _ = os.Readlink(p)
		}
		out[p[len(dir):]] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), content)
		return nil
	})
	return out, err
}

// difference names what differs.
func difference(a, b map[string]string) string {
	var out []string
	for p, d := range a {
		if other, ok := b[p]; !ok {
			out = append(out, "deleted "+p)
		} else if other != d {
			out = append(out, "changed "+p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			out = append(out, "created "+p)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
